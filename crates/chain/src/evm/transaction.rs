//! An Ethereum transaction, rebuilt from the record of the Cosmos transaction that wraps it.
//!
//! Every field is in that record. The hash proves them: a transaction whose hash is another one is not returned.

use alloy::hex;
use serde::Serialize;

use super::dialect::Dialect;
use super::envelope::Envelope;
use super::eth_form::{Authorization, EthForm, ethereum_chain_id, scaled, stand_in, stand_in_hash};
use super::eth_record::EthRecord;
use super::{Receipt, hex_quantity};
use crate::U256;
use crate::hash::Hash;
use crate::json;
use crate::serde_lenient::JsonText;

/// The chain id that a node prints for an unsigned transaction: it computes `(v - 35) / 2` of the absent `v` in 64 bits.
const NO_CHAIN: u64 = 0x7fff_ffff_ffff_ffee;

/// The chain of Ethereum transactions.
#[derive(Clone, Copy, Debug)]
pub struct EthChain<'a> {
    /// The EIP-155 id of the chain.
    pub id: u64,
    /// Prefix of its bech32 addresses.
    pub prefix: &'a str,
}

impl<'a> EthChain<'a> {
    /// The chain with this Cosmos id.
    pub fn new(chain_id: &str, prefix: &'a str) -> Self {
        Self { id: ethereum_chain_id(chain_id), prefix }
    }
}

/// An Ethereum transaction, or what a node shows in place of one.
#[derive(Debug)]
pub struct EthTransaction {
    chain_id: u64,
    cosmos: Hash,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// With its value in wei.
    Signed(Box<EthForm>, U256),
    /// As its sender signed it.
    Envelope(Box<Envelope>),
    /// The bytes of one whose type is unknown here.
    Unread(Vec<u8>),
    /// An empty transaction with the hash of the Cosmos transaction as its input.
    StandIn,
}

/// The fields of a transaction that lists show; zeros for what a node shows in place of one, whose input is the Cosmos hash.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary<'a> {
    /// The sender's number of it.
    pub nonce: u64,
    /// In wei.
    pub value: U256,
    /// The limit that its sender set.
    pub gas_limit: u64,
    /// The price per gas, or the highest one that its sender pays.
    pub gas_price: U256,
    /// The call data, or the code of a creation.
    pub input: &'a [u8],
    /// The recipient; `None` for a creation.
    pub to: Option<[u8; 20]>,
    /// False for what a node shows in place of a transaction.
    pub is_signed: bool,
    /// True if its frames begin with its own call, which on a minievm is within others.
    pub is_root: bool,
}

impl EthTransaction {
    /// The transaction `hash` in the record of a Cosmos transaction; `None` if it has another hash. `decimals` are those of the
    /// fee token to try first, and are set to those that were found.
    pub fn of_record(chain: &EthChain<'_>, record: &[u8], hash: &Hash, decimals: &mut u8) -> Option<Self> {
        let record = EthRecord::read(record)?;
        if stand_in_hash(&record.hash) == *hash {
            return Some(Self { chain_id: chain.id, cosmos: record.hash, kind: Kind::StandIn });
        }
        if let Some(raw) = record.raw(hash) {
            let Some(envelope) = Envelope::read(&raw) else {
                return Some(Self { chain_id: chain.id, cosmos: record.hash, kind: Kind::Unread(raw) });
            };
            let chain_id = envelope.chain_id.unwrap_or(chain.id);
            return Some(Self { chain_id, cosmos: record.hash, kind: Kind::Envelope(Box::new(envelope)) });
        }
        let form = record.form(chain.prefix)?;
        if !form.has_hash(chain.id, hash, decimals) {
            return None;
        }
        let value = scaled(form.value, *decimals)?;
        Some(Self { chain_id: chain.id, cosmos: record.hash, kind: Kind::Signed(Box::new(form), value) })
    }

    /// The hash of the Cosmos transaction.
    pub fn cosmos_hash(&self) -> &Hash {
        &self.cosmos
    }

    /// Its fields that lists show.
    pub fn summary(&self) -> Summary<'_> {
        match &self.kind {
            Kind::StandIn => Summary { input: &self.cosmos, ..Summary::default() },
            Kind::Unread(_) => Summary { is_signed: true, is_root: true, ..Summary::default() },
            Kind::Signed(form, value) => Summary {
                nonce: form.nonce,
                value: *value,
                gas_limit: form.gas_limit,
                gas_price: form.fee_cap,
                input: &form.input,
                to: form.to,
                is_signed: true,
                is_root: false,
            },
            Kind::Envelope(envelope) => Summary {
                nonce: envelope.nonce,
                value: envelope.value,
                gas_limit: envelope.gas_limit,
                gas_price: envelope.fee_cap,
                input: &envelope.input,
                to: envelope.to,
                is_signed: true,
                is_root: true,
            },
        }
    }

    /// Its bytes (EIP-2718). A node omits the authorizations of type 4, so that its bytes have another hash.
    pub fn raw(&self, dialect: Dialect) -> Vec<u8> {
        match &self.kind {
            Kind::StandIn => stand_in(&self.cosmos),
            Kind::Envelope(envelope) => envelope.raw.clone(),
            Kind::Unread(raw) => raw.clone(),
            Kind::Signed(form, value) => {
                let shows = dialect == Dialect::Fixed;
                form.encoded_with(self.chain_id, value, if shows { &form.authorizations } else { &[] })
            }
        }
    }

    /// Appends the JSON of the transaction with this receipt.
    pub fn write_json(&self, out: &mut Vec<u8>, receipt: &Receipt<'_>, dialect: Dialect) {
        let fixed = dialect == Dialect::Fixed;
        let common = Json {
            block_hash: &receipt.block_hash,
            block_number: &receipt.block_number,
            from: &receipt.from,
            hash: &receipt.transaction_hash,
            transaction_index: &receipt.transaction_index,
            ..Json::default()
        };
        let (form, value) = match &self.kind {
            Kind::Signed(form, value) => (form, value),
            Kind::Envelope(envelope) => return write_envelope(out, envelope, receipt, common),
            Kind::Unread(_) => return json::push(out, &Known::of(receipt)),
            Kind::StandIn => {
                let zero = || hex_quantity(0);
                let json = Json {
                    gas: zero(),
                    gas_price: zero(),
                    max_fee_per_gas: Some(zero()),
                    max_priority_fee_per_gas: Some(zero()),
                    input: hex::encode_prefixed(self.cosmos),
                    nonce: zero(),
                    value: zero(),
                    kind: zero(),
                    chain_id: Some(hex_quantity(if fixed { self.chain_id } else { NO_CHAIN })),
                    v: zero(),
                    r: zero(),
                    s: zero(),
                    ..common
                };
                return json::push(out, &json);
            }
        };
        let legacy = form.kind == 0;
        let v = hex_quantity(form.v(self.chain_id));
        let tip = if matches!(form.kind, 2 | 4) { form.tip_cap } else { form.fee_cap };
        let access = form.access_list.iter().map(Access::of);
        let authorizations = form.authorizations.iter().map(Authorized::of);
        let json = Json {
            gas: hex_quantity(form.gas_limit),
            gas_price: quantity(&form.fee_cap),
            max_fee_per_gas: Some(quantity(&form.fee_cap)),
            max_priority_fee_per_gas: Some(quantity(&tip)),
            input: hex::encode_prefixed(&form.input),
            nonce: hex_quantity(form.nonce),
            to: form.to.map(hex::encode_prefixed),
            value: quantity(value),
            kind: hex_quantity(u64::from(form.kind)),
            access_list: (!legacy).then(|| access.collect()),
            authorization_list: (fixed && form.kind == 4).then(|| authorizations.collect()),
            chain_id: Some(hex_quantity(self.chain_id)),
            y_parity: (!legacy).then(|| v.clone()),
            v,
            r: quantity(&form.r()),
            s: quantity(&form.s()),
            ..common
        };
        json::push(out, &json);
    }
}

/// Appends the JSON of a transaction as its sender signed it, in the form of go-ethereum.
fn write_envelope(out: &mut Vec<u8>, envelope: &Envelope, receipt: &Receipt<'_>, common: Json<'_>) {
    let (typed, dynamic) = (envelope.kind != 0, envelope.kind >= 2);
    let price = if dynamic { receipt.effective_gas_price.clone() } else { quantity(&envelope.fee_cap) };
    let json = Json {
        gas: hex_quantity(envelope.gas_limit),
        gas_price: price,
        max_fee_per_gas: dynamic.then(|| quantity(&envelope.fee_cap)),
        max_priority_fee_per_gas: dynamic.then(|| quantity(&envelope.tip_cap)),
        input: hex::encode_prefixed(&envelope.input),
        nonce: hex_quantity(envelope.nonce),
        to: envelope.to.map(hex::encode_prefixed),
        value: quantity(&envelope.value),
        kind: hex_quantity(u64::from(envelope.kind)),
        access_list: typed.then(|| envelope.access_list.iter().map(Access::of).collect()),
        authorization_list: (envelope.kind == 4)
            .then(|| envelope.authorizations.iter().map(Authorized::of).collect()),
        chain_id: envelope.chain_id.map(hex_quantity),
        y_parity: typed.then(|| quantity(&envelope.v)),
        v: quantity(&envelope.v),
        r: quantity(&envelope.r),
        s: quantity(&envelope.s),
        ..common
    };
    json::push(out, &json);
}

fn quantity(number: &U256) -> JsonText<'static> {
    format!("{number:#x}").into()
}

/// The members in the order of the node (`minievm:jsonrpc/types/tx.go`).
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Json<'a> {
    block_hash: &'a str,
    block_number: &'a str,
    from: &'a str,
    gas: JsonText<'a>,
    gas_price: JsonText<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_fee_per_gas: Option<JsonText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_priority_fee_per_gas: Option<JsonText<'a>>,
    hash: &'a str,
    input: String,
    nonce: JsonText<'a>,
    to: Option<String>,
    transaction_index: &'a str,
    value: JsonText<'a>,
    #[serde(rename = "type")]
    kind: JsonText<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    access_list: Option<Vec<Access>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authorization_list: Option<Vec<Authorized>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chain_id: Option<JsonText<'a>>,
    v: JsonText<'a>,
    r: JsonText<'a>,
    s: JsonText<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    y_parity: Option<JsonText<'a>>,
}

/// The members of a transaction that do not depend on its type: what is unknown is left out, not shown as nothing.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Known<'a> {
    block_hash: &'a str,
    block_number: &'a str,
    from: &'a str,
    hash: &'a str,
    transaction_index: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
}

impl<'a> Known<'a> {
    fn of(receipt: &'a Receipt<'_>) -> Self {
        Self {
            block_hash: &receipt.block_hash,
            block_number: &receipt.block_number,
            from: &receipt.from,
            hash: &receipt.transaction_hash,
            transaction_index: &receipt.transaction_index,
            kind: &receipt.kind,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Access {
    address: String,
    storage_keys: Vec<String>,
}

impl Access {
    fn of((address, keys): &super::eth_form::Access) -> Self {
        let storage_keys = keys.iter().map(hex::encode_prefixed).collect();
        Self { address: hex::encode_prefixed(address), storage_keys }
    }
}

/// An authorization in the form of go-ethereum; a node omits them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Authorized {
    chain_id: JsonText<'static>,
    address: String,
    nonce: JsonText<'static>,
    y_parity: JsonText<'static>,
    r: JsonText<'static>,
    s: JsonText<'static>,
}

impl Authorized {
    fn of(authorization: &Authorization) -> Self {
        let signature = &authorization.signature;
        Self {
            chain_id: quantity(&authorization.chain_id),
            address: hex::encode_prefixed(authorization.address),
            nonce: hex_quantity(authorization.nonce),
            y_parity: hex_quantity(u64::from(signature[64])),
            r: quantity(&U256::from_be_slice(&signature[..32])),
            s: quantity(&U256::from_be_slice(&signature[32..64])),
        }
    }
}
