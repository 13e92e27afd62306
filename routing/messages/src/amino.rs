//! Amino JSON messages of Cosmos chains, as wallets sign them.
//!
//! Members have the names and the order of the protobuf fields; 64-bit numbers are strings, bytes are base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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

/// A call of a function of a Move module.
#[derive(Serialize)]
pub(crate) struct Execute {
    sender: String,
    module_address: String,
    module_name: &'static str,
    function_name: &'static str,
    type_args: [(); 0],
    args: Vec<String>,
}

impl Execute {
    pub(crate) fn new(sender: String, function: Function) -> Self {
        let Function { args, function_name, module_address, module_name, type_args } = function;
        Self { sender, module_address, module_name, function_name, type_args, args }
    }
}

/// A function of a Move module with its arguments, in the form of a packet's memo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_field_names, reason = "the names of the wire")]
pub(crate) struct Function {
    /// BCS, base64.
    args: Vec<String>,
    function_name: &'static str,
    module_address: String,
    module_name: &'static str,
    type_args: [(); 0],
}

impl Function {
    pub(crate) fn new(
        address: &str,
        module: &'static str,
        function: &'static str,
        args: Vec<String>,
    ) -> Self {
        let module_address = address.to_owned();
        Self { args, function_name: function, module_address, module_name: module, type_args: [] }
    }

    /// `address::module::function`.
    pub(crate) fn path(&self) -> String {
        format!("{}::{}::{}", self.module_address, self.module_name, self.function_name)
    }
}

/// BCS of a Move argument.
#[expect(clippy::expect_used, reason = "stated in the message")]
pub(crate) fn bytes_of<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    bcs::to_bytes(value).expect("numbers, texts and short lists have a BCS form")
}

/// A Move argument as the base64 text of a `MsgExecute`.
pub(crate) fn argument<T: Serialize + ?Sized>(value: &T) -> String {
    STANDARD.encode(bytes_of(value))
}

/// JSON of a struct of this crate.
#[expect(clippy::expect_used, reason = "stated in the message")]
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("structs of texts and lists have no key that is not text")
}
