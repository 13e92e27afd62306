//! The JSON of a transaction's signed part, as the node's REST prints it: the cosmos-sdk's `cosmos.tx.v1beta1.Tx`. In
//! [`crate::v1::Tx`] it is a text. A record may lack any member, for example if no descriptor decodes it.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use serde_with::{DefaultOnNull, serde_as};

use crate::v1::Coin;

/// The signed transaction (cosmos.tx.v1beta1.Tx).
#[serde_as(schemars = false)]
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "tx.SignedTx", transform = all_optional)]
pub struct SignedTx {
    /// First; `/cosmos.tx.v1beta1.Tx`.
    #[serde(rename = "@type")]
    pub kind: String,
    /// What it does.
    #[serde_as(deserialize_as = "DefaultOnNull")]
    #[schemars(with = "Option<Body>")]
    pub body: Body,
    /// Signers and fee.
    #[serde_as(deserialize_as = "DefaultOnNull")]
    #[schemars(with = "Option<AuthInfo>")]
    pub auth_info: AuthInfo,
    /// In base64, one for each signer.
    pub signatures: Vec<String>,
}

/// What a transaction does (cosmos.tx.v1beta1.TxBody).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "tx.Body", transform = all_optional)]
pub struct Body {
    /// In the order of their execution.
    #[schemars(with = "Vec<Message>")]
    pub messages: Vec<Box<RawValue>>,
    /// Free text of the sender.
    pub memo: String,
    /// The last height at which it counts; "0" for any.
    #[schemars(regex(pattern = "^[0-9]+$"))]
    pub timeout_height: String,
    /// Options that a chain must know.
    #[schemars(with = "Vec<Message>")]
    pub extension_options: Vec<Box<RawValue>>,
    /// Options that a chain may ignore.
    #[schemars(with = "Vec<Message>")]
    pub non_critical_extension_options: Vec<Box<RawValue>>,
}

/// A message: its type, and the members of that type.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(rename = "tx.Message", transform = all_optional)]
pub struct Message {
    /// For example /cosmos.bank.v1beta1.MsgSend.
    #[serde(rename = "@type")]
    pub kind: String,
}

/// Signers and fee (cosmos.tx.v1beta1.AuthInfo).
#[serde_as(schemars = false)]
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "tx.AuthInfo", transform = all_optional)]
pub struct AuthInfo {
    /// Public key, mode and sequence of each signer.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub signer_infos: Vec<Box<RawValue>>,
    /// What was paid.
    #[serde_as(deserialize_as = "DefaultOnNull")]
    #[schemars(with = "Option<Fee>")]
    pub fee: Fee,
    /// Out of use.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub tip: Option<Box<RawValue>>,
}

/// A fee (cosmos.tx.v1beta1.Fee).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "tx.Fee", transform = all_optional)]
pub struct Fee {
    /// Empty for none.
    pub amount: Vec<Coin>,
    /// Decimal.
    #[schemars(regex(pattern = "^[0-9]+$"))]
    pub gas_limit: String,
    /// Bech32; empty for the first signer.
    pub payer: String,
    /// Bech32; empty for none.
    pub granter: String,
}

fn all_optional(schema: &mut schemars::Schema) {
    schema.remove("required");
}
