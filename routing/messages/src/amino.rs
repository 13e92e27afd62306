//! Amino JSON messages of Cosmos chains, as wallets sign them.
//!
//! Members have the names and the order of the protobuf fields; 64-bit numbers are strings, bytes are base64.

use chain::U256;
use serde::Serialize;

use crate::request::Msg;

/// Type URL of [`Call`].
pub(crate) const CALL: &str = "/minievm.evm.v1.MsgCall";

impl Msg {
    pub(crate) fn new(type_url: &'static str, content: &impl Serialize) -> Self {
        Self { type_url, msg: json(content) }
    }
}

/// `cosmos.base.v1beta1.Coin`.
#[derive(Serialize)]
pub(crate) struct Coin {
    pub(crate) denom: String,
    pub(crate) amount: String,
}

impl Coin {
    pub(crate) fn new(denom: &str, amount: U256) -> Self {
        Self { denom: denom.to_owned(), amount: amount.to_string() }
    }
}

#[derive(Serialize)]
pub(crate) struct BankSend {
    pub(crate) from_address: String,
    pub(crate) to_address: String,
    pub(crate) amount: [Coin; 1],
}

/// An ICS-20 transfer, which times out by time only, never by height.
#[derive(Serialize)]
pub(crate) struct Transfer {
    pub(crate) source_port: String,
    pub(crate) source_channel: String,
    pub(crate) token: Coin,
    pub(crate) sender: String,
    pub(crate) receiver: String,
    pub(crate) timeout_height: Never,
    /// Unix time in nanoseconds. A number in JSON would lose digits in JavaScript.
    pub(crate) timeout_timestamp: String,
    pub(crate) memo: String,
}

/// An ICS-721 transfer, which times out by time only.
#[derive(Serialize)]
pub(crate) struct NftTransfer {
    pub(crate) source_port: String,
    pub(crate) source_channel: String,
    pub(crate) class_id: String,
    pub(crate) token_ids: Vec<String>,
    pub(crate) sender: String,
    pub(crate) receiver: String,
    pub(crate) timeout_height: Never,
    /// Unix time in nanoseconds.
    pub(crate) timeout_timestamp: String,
    pub(crate) memo: String,
}

/// `ibc.core.client.v1.Height` that is not set: `{}`.
#[derive(Serialize)]
pub(crate) struct Never {}

#[derive(Serialize)]
pub(crate) struct Deposit {
    pub(crate) sender: String,
    pub(crate) bridge_id: String,
    pub(crate) to: String,
    pub(crate) amount: Coin,
    /// Base64.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) data: String,
}

#[derive(Serialize)]
pub(crate) struct Withdrawal {
    pub(crate) sender: String,
    pub(crate) to: String,
    pub(crate) amount: Coin,
}

#[derive(Serialize)]
pub(crate) struct Migration {
    pub(crate) sender: String,
    pub(crate) amount: Coin,
}

/// A call of a contract on a minievm chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Call {
    pub(crate) sender: String,
    #[serde(flatten)]
    pub(crate) input: Invocation,
}

/// Contract call, in the same form as message and as packet memo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Invocation {
    pub(crate) contract_addr: String,
    /// Hex with `0x`.
    pub(crate) input: String,
    /// Base units of the chain's coin.
    pub(crate) value: String,
    pub(crate) access_list: [(); 0],
}

impl Invocation {
    pub(crate) fn new(contract: &str, calldata: &[u8]) -> Self {
        Self {
            contract_addr: contract.to_owned(),
            input: alloy::hex::encode_prefixed(calldata),
            value: "0".to_owned(),
            access_list: [],
        }
    }

    pub(crate) fn with_value(self, value: U256) -> Self {
        Self { value: value.to_string(), ..self }
    }
}

/// A function of a Move module.
#[derive(Serialize)]
pub(crate) struct Execute {
    pub(crate) sender: String,
    pub(crate) module_address: String,
    pub(crate) module_name: &'static str,
    pub(crate) function_name: &'static str,
    pub(crate) type_args: [(); 0],
    /// BCS, base64.
    pub(crate) args: Vec<String>,
}

/// JSON of a struct of this crate.
#[expect(clippy::expect_used, reason = "stated in the message")]
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("structs of texts and lists have no key that is not text")
}
