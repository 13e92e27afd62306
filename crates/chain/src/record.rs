//! The final JSON of a block and of a Cosmos transaction, as the API shows them.
//!
//! Generated once at ingest and spliced into responses byte for byte; clients of the deployed server rely on the order and form of
//! the members.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::address::valoper;
use crate::comet::{Event, TxResult};
use crate::hash::Hash;
use crate::json::{push, push_hex_upper, push_list, push_member, push_number};
use crate::serde_lenient::{JsonText, list, number};
use crate::time::Timestamp;

/// The proposer of a block; empty texts if unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proposer {
    /// The validator's name.
    pub moniker: String,
    /// Always empty on rollups.
    pub identity: String,
    /// `…valoper…` address of the operator.
    pub operator_address: String,
}

impl Proposer {
    /// The validator with a consensus address of which nothing else is known: its operator is that address itself.
    pub fn unnamed(prefix: &str, address: &[u8; 20]) -> Self {
        Self { operator_address: valoper(prefix, address), ..Self::default() }
    }
}

/// The members of a block in the API.
#[derive(Debug, Clone, Copy)]
pub struct BlockRecord<'a> {
    /// The chain.
    pub chain_id: &'a str,
    /// The height.
    pub height: u64,
    /// The `CometBFT` hash.
    pub hash: &'a Hash,
    /// Milliseconds since the parent block; 0 for the first block of a chain or of an index.
    pub block_time_ms: u64,
    /// The header's time.
    pub timestamp: Timestamp,
    /// Sum over the results of all transactions; too wide to overflow.
    pub gas_used: i128,
    /// Sum over the results of all transactions; too wide to overflow.
    pub gas_wanted: i128,
    /// Raw transactions in the block, including those that do not decode.
    pub tx_count: u64,
    /// `(denom, amount)` sorted by denom: see [`crate::fee::FeeTotals`].
    pub total_fee: &'a [(String, String)],
    /// The proposer.
    pub proposer: &'a Proposer,
}

/// Appends the JSON of a block.
pub fn write_block_record(out: &mut Vec<u8>, block: &BlockRecord<'_>) {
    push_member(out, r#"{"chain_id":"#, block.chain_id);
    push_quoted(out, r#","height":"#, block.height);
    out.extend_from_slice(br#","hash":""#);
    push_hex_upper(out, block.hash);
    push_quoted(out, r#"","block_time":"#, block.block_time_ms);
    push_member(out, r#","timestamp":"#, &block.timestamp.seconds());
    push_quoted(out, r#","gas_used":"#, block.gas_used);
    push_quoted(out, r#","gas_wanted":"#, block.gas_wanted);
    push_quoted(out, r#","tx_count":"#, block.tx_count);
    out.extend_from_slice(br#","total_fee":"#);
    push_list(out, block.total_fee, |out, (denom, amount)| {
        push_member(out, r#"{"denom":"#, denom);
        push_member(out, r#","amount":"#, amount);
        out.push(b'}');
    });
    push_proposer(out, block.proposer);
    out.push(b'}');
}

fn push_proposer(out: &mut Vec<u8>, proposer: &Proposer) {
    push_member(out, r#","proposer":{"moniker":"#, &proposer.moniker);
    push_member(out, r#","identity":"#, &proposer.identity);
    push_member(out, r#","operator_address":"#, &proposer.operator_address);
    out.push(b'}');
}

/// The JSON of a block with the proposer `to` in place of `from`; `None` if it has another one.
pub fn with_proposer(json: &[u8], from: &Proposer, to: &Proposer) -> Option<Vec<u8>> {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    push_proposer(&mut before, from);
    push_proposer(&mut after, to);
    let rest = json.strip_suffix(b"}")?.strip_suffix(&before[..])?;
    Some([rest, &after, b"}"].concat())
}

/// Appends the JSON of a Cosmos transaction.
///
/// `tx_json` is the finished JSON of the `tx` member and is spliced unchanged. Fails only if the result's data
/// is not base64; then `out` is unchanged.
pub fn write_tx_record(
    out: &mut Vec<u8>,
    hash: &Hash,
    height: u64,
    result: &TxResult<'_>,
    tx_json: &[u8],
    time: Timestamp,
) -> Result<(), base64::DecodeError> {
    let data = result.data_bytes()?;
    out.extend_from_slice(br#"{"txhash":""#);
    push_hex_upper(out, hash);
    push_quoted(out, r#"","height":"#, height);
    push_member(out, r#","codespace":"#, &result.codespace);
    out.extend_from_slice(br#","code":"#);
    push_number(out, result.code);
    out.extend_from_slice(br#","data":""#);
    push_hex_upper(out, &data);
    push_member(out, r#"","raw_log":"#, &result.log);
    out.extend_from_slice(br#","logs":"#);
    push_logs(out, &result.log);
    push_member(out, r#","info":"#, &result.info);
    push_quoted(out, r#","gas_wanted":"#, result.gas_wanted);
    push_quoted(out, r#","gas_used":"#, result.gas_used);
    out.extend_from_slice(br#","tx":"#);
    out.extend_from_slice(tx_json);
    push_member(out, r#","timestamp":"#, &time.nanos());
    out.extend_from_slice(br#","events":"#);
    push(out, &result.events);
    out.push(b'}');
    Ok(())
}

/// The hash and the code of the result in a record of [`write_tx_record`]. They are among its first bytes, and no others are read: a
/// record may be large. `None` if it is no such record.
pub fn hash_and_code(record: &[u8]) -> Option<(&str, u32)> {
    const HASH_DIGITS: usize = 64;
    let (hash, rest) = record.strip_prefix(br#"{"txhash":""#)?.split_at_checked(HASH_DIGITS)?;
    let rest = rest.strip_prefix(br#"","height":""#)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = rest[digits..].strip_prefix(br#"","codespace":"#)?;
    let mut codespace = serde_json::Deserializer::from_slice(rest).into_iter::<IgnoredAny>();
    codespace.next()?.ok()?;
    let rest = rest.get(codespace.byte_offset()..)?.strip_prefix(br#","code":"#)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let code = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    Some((std::str::from_utf8(hash).ok()?, code))
}

/// An entry of the log that cosmos-sdk before 0.50 wrote.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct OldLog<'a> {
    #[serde(deserialize_with = "number")]
    msg_index: u64,
    log: JsonText<'a>,
    #[serde(deserialize_with = "list")]
    events: Vec<Event<'a>>,
}

/// Appends the old log's entries, and `[]` for a log that is anything else.
fn push_logs(out: &mut Vec<u8>, log: &str) {
    let is_array = log.trim_start().starts_with('[');
    let entries = is_array.then(|| serde_json::from_str::<Vec<OldLog<'_>>>(log).unwrap_or_default());
    push_list(out, entries.iter().flatten(), |out, entry| {
        out.extend_from_slice(br#"{"msg_index":"#);
        push_number(out, entry.msg_index);
        push_member(out, r#","log":"#, &entry.log);
        out.extend_from_slice(br#","events":"#);
        push_list(out, &entry.events, push_old_event);
        out.push(b'}');
    });
}

fn push_old_event(out: &mut Vec<u8>, event: &Event<'_>) {
    push_member(out, r#"{"type":"#, &event.kind);
    out.extend_from_slice(br#","attributes":"#);
    push_list(out, &event.attributes, |out, attribute| {
        push_member(out, r#"{"key":"#, &attribute.key);
        push_member(out, r#","value":"#, &attribute.value);
        out.push(b'}');
    });
    out.push(b'}');
}

fn push_quoted(out: &mut Vec<u8>, lead: &str, number: impl itoa::Integer) {
    out.extend_from_slice(lead.as_bytes());
    out.push(b'"');
    push_number(out, number);
    out.push(b'"');
}
