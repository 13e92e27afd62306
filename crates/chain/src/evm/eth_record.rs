//! The fields of an Ethereum transaction in the stored record of the Cosmos transaction that wraps it.
//!
//! Nothing here decides whether a node shows the transaction: the caller compares the hash.

use alloy::primitives::keccak256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::eth_form::{Access, Authorization, EthForm, address};
use super::eth_tx::Memo;
use super::ethermint_tx;
use super::log::bytes;
use crate::U256;
use crate::hash::{Hash, parse_hash};
use crate::serde_lenient::{JsonText, list, number};

/// A record's members of which the fields are made.
pub(crate) struct EthRecord<'a> {
    /// The hash of the Cosmos transaction.
    pub(crate) hash: Hash,
    tx: Tx<'a>,
}

impl<'a> EthRecord<'a> {
    /// Reads a record; `None` if it is of a transaction that no descriptor decodes.
    pub(crate) fn read(record: &'a [u8]) -> Option<Self> {
        let Record { txhash, tx } = serde_json::from_slice(record).ok()?;
        Some(Self { hash: parse_hash(&txhash).ok()??, tx })
    }

    /// The bytes of the transaction `hash` in a message of cosmos/evm or ethermint; `None` if there is none.
    pub(crate) fn raw(&self, hash: &Hash) -> Option<Vec<u8>> {
        self.tx.body.messages.iter().find_map(|message| {
            // Most messages are others: a search is cheaper than parsing.
            memchr::memmem::find(message.get().as_bytes(), b".MsgEthereumTx\"")?;
            let message: EthereumMessage<'_> = serde_json::from_str(message.get()).ok()?;
            let raw = match message.raw.strip_prefix("0x") {
                Some(raw) => hex::decode(raw).ok()?,
                None => ethermint_tx::raw_of_json(message.data?)?,
            };
            (keccak256(&raw).0 == *hash).then_some(raw)
        })
    }

    /// The transaction, if the record has all of its fields.
    pub(crate) fn form(&self, prefix: &str) -> Option<EthForm> {
        let Tx { body, auth_info, signatures } = &self.tx;
        let ([message], [info], [signature]) =
            (&body.messages[..], &auth_info.signer_infos[..], &signatures[..])
        else {
            return None;
        };
        let memo = Memo::read(&body.memo)?;
        let message: Message<'_> = serde_json::from_str(message.get()).ok()?;
        let (to, input) = match &*message.kind {
            "/minievm.evm.v1.MsgCall" => (Some(address(&message.contract_addr, prefix)?), &message.input),
            "/minievm.evm.v1.MsgCreate" => (None, &message.code),
            _ => return None,
        };
        let decimal = |text: &str| U256::from_str_radix(text, 10).ok();
        Some(EthForm {
            kind: memo.kind,
            fee_cap: decimal(memo.gas_fee_cap.get())?,
            tip_cap: decimal(memo.gas_tip_cap.get())?,
            gas_limit: memo.gas_limit,
            nonce: info.sequence,
            sender: address(&message.sender, prefix)?,
            to,
            input: hex::decode(input.strip_prefix("0x")?).ok()?,
            value: if message.value.is_empty() { U256::ZERO } else { decimal(&message.value)? },
            access_list: message.access_list.iter().map(AccessTuple::read).collect::<Option<_>>()?,
            authorizations: message.auth_list.iter().map(SetCode::read).collect::<Option<_>>()?,
            signature: read_signature(signature)?,
        })
    }
}

/// A signature has 64 bytes if the node has lost the parity.
fn read_signature(text: &str) -> Option<[u8; 65]> {
    let (mut signature, bytes) = ([0; 65], BASE64.decode(text).ok()?);
    if !matches!(bytes.len(), 64 | 65) {
        return None;
    }
    signature[..bytes.len()].copy_from_slice(&bytes);
    Some(signature)
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Record<'a> {
    txhash: JsonText<'a>,
    tx: Tx<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Tx<'a> {
    body: Body<'a>,
    auth_info: AuthInfo,
    #[serde(deserialize_with = "list")]
    signatures: Vec<JsonText<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Body<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
    memo: JsonText<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AuthInfo {
    #[serde(deserialize_with = "list")]
    signer_infos: Vec<SignerInfo>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SignerInfo {
    #[serde(deserialize_with = "number")]
    sequence: u64,
}

/// The members of `MsgCall` and of `MsgCreate`.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Message<'a> {
    #[serde(rename = "@type")]
    kind: JsonText<'a>,
    sender: JsonText<'a>,
    contract_addr: JsonText<'a>,
    code: JsonText<'a>,
    input: JsonText<'a>,
    value: JsonText<'a>,
    #[serde(deserialize_with = "list")]
    access_list: Vec<AccessTuple<'a>>,
    #[serde(deserialize_with = "list")]
    auth_list: Vec<SetCode<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct AccessTuple<'a> {
    address: JsonText<'a>,
    #[serde(deserialize_with = "list")]
    storage_keys: Vec<JsonText<'a>>,
}

impl AccessTuple<'_> {
    fn read(&self) -> Option<Access> {
        let keys = self.storage_keys.iter().map(|key| bytes(key)).collect::<Option<_>>()?;
        Some((bytes(&self.address)?, keys))
    }
}

/// The member of `MsgEthereumTx` that has the transaction.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct EthereumMessage<'a> {
    raw: JsonText<'a>,
    /// Its fields, where there is no `raw`.
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// An authorization of EIP-7702 (`minievm.evm.v1.SetCodeAuthorization`).
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SetCode<'a> {
    chain_id: JsonText<'a>,
    address: JsonText<'a>,
    #[serde(deserialize_with = "number")]
    nonce: u64,
    signature: JsonText<'a>,
}

impl SetCode<'_> {
    fn read(&self) -> Option<Authorization> {
        Some(Authorization {
            chain_id: U256::from_str_radix(&self.chain_id, 10).ok()?,
            address: bytes(&self.address)?,
            nonce: self.nonce,
            signature: BASE64.decode(self.signature.as_bytes()).ok()?.try_into().ok()?,
        })
    }
}
