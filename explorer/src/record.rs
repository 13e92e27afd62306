//! The members of the APIs' JSON that pages show.
//!
//! Members are optional where a record may lack them, so that an unusual record still has a page.

#![expect(clippy::struct_field_names, reason = "the names of the API")]

use serde::Deserialize;
use serde_json::value::RawValue;

/// `/status`.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    pub(crate) version: String,
    pub(crate) chain_id: String,
    pub(crate) height: u64,
    pub(crate) internal_tx_height: Option<u64>,
    pub(crate) rich_list_height: Option<u64>,
    pub(crate) rich_list_off: Option<String>,
}

/// A block.
#[derive(Deserialize)]
pub(crate) struct Block {
    pub(crate) height: String,
    pub(crate) hash: String,
    /// Milliseconds since the block before.
    pub(crate) block_time: String,
    pub(crate) timestamp: String,
    pub(crate) gas_used: String,
    pub(crate) gas_wanted: String,
    pub(crate) tx_count: String,
    pub(crate) total_fee: Vec<Coin>,
    pub(crate) proposer: Proposer,
}

/// `{"block":…}`.
#[derive(Deserialize)]
pub(crate) struct OneBlock {
    pub(crate) block: Block,
}

/// The proposer of a block.
#[derive(Deserialize)]
pub(crate) struct Proposer {
    pub(crate) moniker: String,
    pub(crate) operator_address: String,
}

/// An amount of a denom, in base units.
#[derive(Deserialize)]
pub(crate) struct Coin {
    pub(crate) denom: String,
    pub(crate) amount: String,
}

/// A Cosmos transaction.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Tx {
    pub(crate) txhash: String,
    pub(crate) height: String,
    pub(crate) codespace: String,
    pub(crate) code: u32,
    pub(crate) raw_log: String,
    pub(crate) gas_wanted: String,
    pub(crate) gas_used: String,
    pub(crate) timestamp: String,
    tx: Option<Box<RawValue>>,
    events: Option<Box<RawValue>>,
}

/// `{"tx":…}`.
#[derive(Deserialize)]
pub(crate) struct OneTx {
    pub(crate) tx: Tx,
}

/// The signed part of a transaction.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Signed {
    pub(crate) body: Body,
    pub(crate) auth_info: AuthInfo,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Body {
    pub(crate) memo: String,
    pub(crate) messages: Vec<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct AuthInfo {
    pub(crate) fee: Fee,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Fee {
    pub(crate) amount: Vec<Coin>,
    pub(crate) payer: String,
    pub(crate) granter: String,
}

/// An event.
#[derive(Deserialize)]
pub(crate) struct Event {
    #[serde(rename = "type", default)]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) attributes: Vec<Attribute>,
}

/// A key and its value.
#[derive(Deserialize)]
pub(crate) struct Attribute {
    #[serde(default)]
    pub(crate) key: String,
    pub(crate) value: Option<String>,
}

/// The type of a message.
#[derive(Deserialize)]
struct Typed {
    #[serde(rename = "@type")]
    kind: String,
}

impl Tx {
    /// The signed part; empty if the record has another form, as one that no descriptor decodes.
    pub(crate) fn signed(&self) -> Signed {
        parsed(self.tx.as_deref())
    }

    /// True if it is no transaction: data that the proposer put into the block, for example votes with oracle prices on
    /// chains with vote extensions. The chain cannot decode it, or finds no message in it, and refuses it.
    pub(crate) fn is_block_data(&self) -> bool {
        self.code != 0 && self.signed().body.messages.is_empty()
    }

    /// The events; empty if the record has another form.
    pub(crate) fn events(&self) -> Vec<Event> {
        parsed(self.events.as_deref())
    }
}

impl Body {
    /// The types of the messages, in order.
    pub(crate) fn types(&self) -> Vec<String> {
        self.messages.iter().map(|message| message_type(message)).collect()
    }
}

/// The type of a message; empty if it has none.
pub(crate) fn message_type(message: &RawValue) -> String {
    serde_json::from_str(message.get()).map(|Typed { kind }| kind).unwrap_or_default()
}

fn parsed<T: Default + for<'a> Deserialize<'a>>(json: Option<&RawValue>) -> T {
    json.and_then(|json| serde_json::from_str(json.get()).ok()).unwrap_or_default()
}

/// An EVM transaction.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EvmTx {
    pub(crate) block_number: String,
    pub(crate) contract_address: Option<String>,
    pub(crate) effective_gas_price: String,
    pub(crate) from: String,
    pub(crate) to: Option<String>,
    pub(crate) gas_used: String,
    pub(crate) logs: Vec<Log>,
    pub(crate) status: String,
    pub(crate) transaction_hash: String,
    pub(crate) transaction_index: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
}

/// `{"tx":…}`.
#[derive(Deserialize)]
pub(crate) struct OneEvmTx {
    pub(crate) tx: EvmTx,
}

/// A log of an EVM transaction.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Log {
    pub(crate) address: String,
    pub(crate) topics: Vec<String>,
    pub(crate) data: String,
    pub(crate) log_index: String,
}

/// A call frame.
#[derive(Deserialize)]
pub(crate) struct Frame {
    pub(crate) height: u64,
    pub(crate) hash: String,
    /// -1 for the first frame of a transaction.
    pub(crate) parent_index: i64,
    pub(crate) index: i64,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) input: String,
    pub(crate) output: String,
    pub(crate) value: String,
    #[serde(rename = "gasUsed")]
    pub(crate) gas_used: String,
}

/// A collection of NFTs.
#[derive(Deserialize)]
pub(crate) struct Collection {
    pub(crate) object_addr: String,
    pub(crate) collection: CollectionDetail,
    pub(crate) height: u64,
    pub(crate) timestamp: String,
}

/// `{"collection":…}`.
#[derive(Deserialize)]
pub(crate) struct OneCollection {
    pub(crate) collection: Collection,
}

#[derive(Deserialize)]
pub(crate) struct CollectionDetail {
    pub(crate) creator: String,
    pub(crate) name: String,
    pub(crate) origin_name: String,
    pub(crate) nfts: Handle,
}

#[derive(Deserialize)]
pub(crate) struct Handle {
    pub(crate) length: u64,
}

/// An NFT.
#[derive(Deserialize)]
pub(crate) struct Token {
    pub(crate) collection_addr: String,
    pub(crate) collection_name: String,
    pub(crate) object_addr: String,
    pub(crate) owner: String,
    pub(crate) nft: TokenDetail,
    pub(crate) height: u64,
    pub(crate) timestamp: String,
}

#[derive(Deserialize)]
pub(crate) struct TokenDetail {
    pub(crate) token_id: String,
    pub(crate) uri: String,
    #[serde(default)]
    pub(crate) uri_truncated: bool,
}

/// A holder of a denom.
#[derive(Deserialize)]
pub(crate) struct Holder {
    pub(crate) account: String,
    pub(crate) amount: String,
}
