//! Our messages as hand-written protobuf: from their amino JSON to the bytes for a chain.
//!
//! Unknown members are refused, so a JSON member without a field cannot pass.

use messages::Msg;
use prost::Message;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _};

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Coin {
    #[prost(string, tag = "1")]
    pub(crate) denom: String,
    #[prost(string, tag = "2")]
    pub(crate) amount: String,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Send {
    #[prost(string, tag = "1")]
    pub(crate) from_address: String,
    #[prost(string, tag = "2")]
    pub(crate) to_address: String,
    #[prost(message, repeated, tag = "3")]
    pub(crate) amount: Vec<Coin>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Height {
    #[prost(uint64, tag = "1")]
    pub(crate) revision_number: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) revision_height: u64,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Transfer {
    #[prost(string, tag = "1")]
    pub(crate) source_port: String,
    #[prost(string, tag = "2")]
    pub(crate) source_channel: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) token: Option<Coin>,
    #[prost(string, tag = "4")]
    pub(crate) sender: String,
    #[prost(string, tag = "5")]
    pub(crate) receiver: String,
    #[prost(message, optional, tag = "6")]
    pub(crate) timeout_height: Option<Height>,
    #[prost(uint64, tag = "7")]
    #[serde(deserialize_with = "number")]
    pub(crate) timeout_timestamp: u64,
    #[prost(string, tag = "8")]
    pub(crate) memo: String,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NftTransfer {
    #[prost(string, tag = "1")]
    pub(crate) source_port: String,
    #[prost(string, tag = "2")]
    pub(crate) source_channel: String,
    #[prost(string, tag = "3")]
    pub(crate) class_id: String,
    #[prost(string, repeated, tag = "4")]
    pub(crate) token_ids: Vec<String>,
    #[prost(string, tag = "5")]
    pub(crate) sender: String,
    #[prost(string, tag = "6")]
    pub(crate) receiver: String,
    #[prost(message, optional, tag = "7")]
    pub(crate) timeout_height: Option<Height>,
    #[prost(uint64, tag = "8")]
    #[serde(deserialize_with = "number")]
    pub(crate) timeout_timestamp: u64,
    #[prost(string, tag = "9")]
    pub(crate) memo: String,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deposit {
    #[prost(string, tag = "1")]
    pub(crate) sender: String,
    #[prost(uint64, tag = "2")]
    #[serde(deserialize_with = "number")]
    pub(crate) bridge_id: u64,
    #[prost(string, tag = "3")]
    pub(crate) to: String,
    #[prost(message, optional, tag = "4")]
    pub(crate) amount: Option<Coin>,
    #[prost(bytes = "vec", tag = "5")]
    #[serde(default, deserialize_with = "base64")]
    pub(crate) data: Vec<u8>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Withdrawal {
    #[prost(string, tag = "1")]
    pub(crate) sender: String,
    #[prost(string, tag = "2")]
    pub(crate) to: String,
    #[prost(message, optional, tag = "4")]
    pub(crate) amount: Option<Coin>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Migration {
    #[prost(string, tag = "1")]
    pub(crate) sender: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) amount: Option<Coin>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    #[prost(string, tag = "1")]
    pub(crate) sender: String,
    #[prost(string, tag = "2")]
    pub(crate) contract_addr: String,
    #[prost(string, tag = "3")]
    pub(crate) input: String,
    #[prost(string, tag = "4")]
    pub(crate) value: String,
    #[prost(string, repeated, tag = "5")]
    pub(crate) access_list: Vec<String>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Execute {
    #[prost(string, tag = "1")]
    pub(crate) sender: String,
    #[prost(string, tag = "2")]
    pub(crate) module_address: String,
    #[prost(string, tag = "3")]
    pub(crate) module_name: String,
    #[prost(string, tag = "4")]
    pub(crate) function_name: String,
    #[prost(string, repeated, tag = "5")]
    pub(crate) type_args: Vec<String>,
    #[prost(bytes = "vec", repeated, tag = "6")]
    #[serde(deserialize_with = "base64s")]
    pub(crate) args: Vec<Vec<u8>>,
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

fn decoded<E: serde::de::Error>(text: &str) -> Result<Vec<u8>, E> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).map_err(E::custom)
}

fn base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    decoded(&String::deserialize(deserializer)?)
}

fn base64s<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Vec<u8>>, D::Error> {
    Vec::<String>::deserialize(deserializer)?.iter().map(|text| decoded(text)).collect()
}

fn of<T: Message + DeserializeOwned>(msg: &Msg) -> T {
    serde_json::from_str(&msg.msg).unwrap_or_else(|error| panic!("{error}: {}", msg.msg))
}

/// A transfer of ours; its unused timeout height is omitted, as by wallets.
pub(crate) fn transfer(msg: &Msg) -> Transfer {
    let mut transfer: Transfer = of(msg);
    assert_eq!(transfer.timeout_height, Some(Height::default()));
    transfer.timeout_height = None;
    transfer
}

/// The bytes of a message.
pub(crate) fn encode(msg: &Msg) -> Vec<u8> {
    match msg.type_url {
        "/cosmos.bank.v1beta1.MsgSend" => of::<Send>(msg).encode_to_vec(),
        "/ibc.applications.transfer.v1.MsgTransfer" => transfer(msg).encode_to_vec(),
        "/opinit.ophost.v1.MsgInitiateTokenDeposit" => of::<Deposit>(msg).encode_to_vec(),
        "/opinit.opchild.v1.MsgInitiateTokenWithdrawal" => of::<Withdrawal>(msg).encode_to_vec(),
        "/opinit.opchild.v1.MsgMigrateToken" => of::<Migration>(msg).encode_to_vec(),
        "/minievm.evm.v1.MsgCall" => of::<Call>(msg).encode_to_vec(),
        "/initia.move.v1.MsgExecute" => of::<Execute>(msg).encode_to_vec(),
        other => panic!("no protobuf form of {other} here"),
    }
}
