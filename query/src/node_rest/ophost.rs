//! `opinit.ophost.v1` of a layer one: what the index of a rollup asks about its bridge.
//!
//! Outputs and claims follow from events. Settings change without one, so they are the node's last reply, which the ingest has asked for.
//!
//! # Invariants
//! * What may follow from an event before the first indexed block is 501 with the reason: clients of nodes then ask another address.
//! * A response that follows from blocks names the last of them in the SDK's header, so that a client sees that it is behind.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use chain::Timestamp;
use schema::bridge::BRIDGE;
use schema::ophost::{self, Bridge, ClaimHashes, OneProposal, ProposedOutputs};
use schemars::JsonSchema;
use serde_json::{Value, json};
use store::Message;
use web::call::Call;
use web::endpoint::{Endpoint, Param, Type};
use web::http_error::HttpError;
use web::reply::Reply;

use super::{TAG, UNKNOWN, node_error, unsigned};
use crate::indexer::{Indexer, View};
use crate::params::shown;

/// Outputs of a response without `pagination.limit`: the node's default.
const DEFAULT_LIMIT: u64 = 100;

/// Outputs of a response, at most.
const MAX_LIMIT: u64 = 1000;

/// The SDK's header with the height of the state that a response is of.
const STATE_HEIGHT: &str = "x-cosmos-block-height";

/// Base64 of a query, also with the alphabet for URLs, and without padding.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

const BRIDGE_ID: Param = Param::path("bridge_id", "The number of a bridge.");

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    TAG.list::<OphostMessage>(
        "/opinit/ophost/v1/bridges/{bridge_id}",
        "The settings of a bridge, as the node has sent them last.",
        &[BRIDGE_ID],
        bridge,
    ),
    TAG.list::<OphostMessage>(
        "/opinit/ophost/v1/bridges/{bridge_id}/outputs",
        "Outputs of a bridge that are not deleted, as a node lists them.",
        &[
            BRIDGE_ID,
            Param::query_or("pagination.limit", Type::Integer, "100", "How many outputs, at most 1,000."),
            Param::query_or("pagination.offset", Type::Integer, "0", "How many outputs to skip."),
            Param::query("pagination.key", Type::String, "next_key of the page before."),
            Param::query("pagination.reverse", Type::Boolean, "From the newest."),
            Param::query("pagination.count_total", Type::Boolean, "Whether to count them."),
        ],
        outputs,
    ),
    TAG.list::<OphostMessage>(
        "/opinit/ophost/v1/bridges/{bridge_id}/outputs/{output_index}",
        "One output that is not deleted.",
        &[BRIDGE_ID, Param::path("output_index", "The number of an output.")],
        output,
    ),
    TAG.list::<OphostMessage>(
        "/opinit/ophost/v1/bridges/{bridge_id}/withdrawals/claimed/by_hash",
        "Whether a withdrawal was claimed.",
        &[BRIDGE_ID, Param::query("withdrawal_hash", Type::String, "Its hash, base64.")],
        claimed,
    ),
];

/// A message of `opinit.ophost.v1`.
#[derive(JsonSchema)]
struct OphostMessage {
    #[expect(dead_code, reason = "the schema")]
    bridge_id: Value,
}

/// What a request is about.
struct Asked<'a> {
    view: View<'a>,
    number: u64,
    /// What events say of the bridge; nothing if none names it.
    bridge: Bridge,
    /// All events of the bridge are indexed.
    is_complete: bool,
    /// The first indexed block.
    from: u64,
    /// The last one.
    height: u64,
}

impl<'a> Asked<'a> {
    fn read(indexer: &'a Indexer, call: &Call<'_>) -> Result<Self, HttpError> {
        let number = path_number(call, "bridge_id")?;
        let view = indexer.view()?;
        view.require(&BRIDGE)?;
        let bridge =
            ophost::bridge(view.snapshot(), number).map_err(HttpError::internal)?.unwrap_or_default();
        let from = indexer.identity.start_height;
        let height = view.blocks()?.height;
        Ok(Self { view, number, is_complete: from <= 1 || bridge.created.is_some(), bridge, from, height })
    }

    /// The error for what may follow from an event before the first indexed block.
    fn unknown(&self, what: &str) -> HttpError {
        let Self { number, from, .. } = self;
        HttpError::not_implemented(format!(
            "{what} of bridge {number} may be older than block {from}, where the index begins: ask a node"
        ))
    }

    fn respond(&self, body: &Value) -> Reply {
        Reply::json(body.to_string()).with_header(STATE_HEIGHT, self.height.to_string())
    }

    /// The number of outputs that are not deleted: they are numbered from 1 without gaps.
    fn outputs(&self) -> Result<u64, HttpError> {
        if self.bridge.first_output == 0 && !self.is_complete {
            return Err(self.unknown("outputs"));
        }
        Ok(self.bridge.last_output)
    }

    /// The output with this number; `None` if it was deleted, or was not proposed yet.
    fn output(&self, number: u64) -> Result<Option<Value>, HttpError> {
        if number == 0 || number > self.outputs()? {
            return Ok(None);
        }
        if number < self.bridge.first_output {
            return Err(self.unknown(&format!("output {number}")));
        }
        let row = store::table::read::<ProposedOutputs>(self.view.snapshot(), &(self.number, number));
        let row = row.map_err(HttpError::internal)?;
        let proposal = row.and_then(|Message(mut row)| row.proposals.pop());
        let missing = || HttpError::internal(format!("output {number} of bridge {} is missing", self.number));
        Ok(Some(self.json(number, &proposal.ok_or_else(missing)?)))
    }

    fn json(&self, number: u64, proposal: &OneProposal) -> Value {
        let source = proposal.source.clone().unwrap_or_default();
        json!({
            "bridge_id": self.number.to_string(),
            "output_index": number.to_string(),
            "output_proposal": {
                "output_root": STANDARD.encode(&proposal.root),
                "l1_block_number": source.height.to_string(),
                "l1_block_time": in_groups(&Timestamp::from_unix_nanos(source.time).nanos()),
                "l2_block_number": proposal.l2_block.to_string(),
            },
        })
    }
}

fn bridge(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let asked = Asked::read(indexer, call)?;
    let reply = ophost::bridge_reply(asked.view.snapshot(), asked.number).map_err(HttpError::internal)?;
    if let Some(reply) = reply {
        return Ok(Reply::json(reply));
    }
    if asked.is_complete && asked.bridge == Bridge::default() {
        return Err(not_found(&format!("key '{}'", asked.number), "BridgeConfig"));
    }
    Err(HttpError::not_implemented(format!(
        "settings of bridge {} are not known: no indexed event names it, or the node was not asked yet; ask a node",
        asked.number
    )))
}

fn outputs(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let asked = Asked::read(indexer, call)?;
    let last = asked.outputs()?;
    let is_reverse = call.boolean("pagination.reverse", false);
    let limit = unsigned(call, "pagination.limit")?.filter(|limit| *limit > 0);
    let offset = unsigned(call, "pagination.offset")?.unwrap_or(0);
    let key = call.first("pagination.key").map(|text| bytes::<8>("pagination.key", text)).transpose()?;
    if let Some(limit) = limit.filter(|limit| *limit > MAX_LIMIT) {
        return Err(HttpError::bad_request(format!(
            "pagination.limit is {limit}, at most {MAX_LIMIT} outputs are given at once: follow next_key"
        )));
    }
    if key.is_some() && offset > 0 {
        return Err(HttpError::bad_request(
            "pagination.key does not go with pagination.offset: give one of both",
        ));
    }
    let first = match key.map(u64::from_be_bytes) {
        Some(number) => number,
        None if is_reverse => last.saturating_sub(offset),
        None => offset.saturating_add(1),
    };
    let counts = call.boolean("pagination.count_total", false) || limit.is_none();
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    let (mut found, mut number) = (Vec::new(), first);
    while (1..=last).contains(&number) && (found.len() as u64) < limit {
        found.extend(asked.output(number)?);
        number = if is_reverse { number - 1 } else { number + 1 };
    }
    let next = (1..=last).contains(&number).then(|| STANDARD.encode(number.to_be_bytes()));
    let total = if counts && key.is_none() { last } else { 0 };
    let pagination = json!({ "next_key": next, "total": total.to_string() });
    Ok(asked.respond(&json!({ "output_proposals": found, "pagination": pagination })))
}

fn output(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let asked = Asked::read(indexer, call)?;
    let number = path_number(call, "output_index")?;
    let found = asked.output(number)?;
    let key = || format!("key '(\"{}\", \"{number}\")'", asked.number);
    found.map(|output| asked.respond(&output)).ok_or_else(|| not_found(&key(), "Output"))
}

fn claimed(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let asked = Asked::read(indexer, call)?;
    let text = call.first("withdrawal_hash").unwrap_or_default();
    let hash = bytes::<32>("withdrawal_hash", text)?;
    let row = store::table::read::<ClaimHashes>(asked.view.snapshot(), &(asked.number, hash));
    let is_claimed = row.map_err(HttpError::internal)?.is_some();
    if !is_claimed && !asked.is_complete {
        return Err(asked.unknown("a claim of this withdrawal"));
    }
    Ok(asked.respond(&json!({ "claimed": is_claimed })))
}

/// The node's error for a key that a collection of its module does not have.
fn not_found(key: &str, message: &str) -> HttpError {
    node_error(
        UNKNOWN,
        format!(
            "collections: not found: {key} of type github.com/cosmos/gogoproto/opinit.ophost.v1.{message}"
        ),
    )
}

fn path_number(call: &Call<'_>, name: &str) -> Result<u64, HttpError> {
    let text = call.text(name);
    text.parse().map_err(|error| {
        HttpError::bad_request(format!(
            "type mismatch, parameter: {name}, error: strconv.ParseUint: parsing \"{}\": {}",
            shown(text),
            super::go_syntax(&error)
        ))
    })
}

/// `N` bytes in base64.
fn bytes<const N: usize>(name: &str, text: &str) -> Result<[u8; N], HttpError> {
    let standard = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
    let of_urls = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);
    let decoded = standard.decode(text).or_else(|_| of_urls.decode(text)).ok();
    decoded.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| {
        HttpError::bad_request(format!("{name} is `{}`: must be the base64 of {N} bytes", shown(text)))
    })
}

/// A time as the JSON of protobuf has it: its fraction has digits in groups of three.
fn in_groups(time: &str) -> String {
    let Some((seconds, fraction)) = time.trim_end_matches('Z').split_once('.') else {
        return time.to_owned();
    };
    let digits = fraction.len().next_multiple_of(3);
    format!("{seconds}.{fraction:0<digits$}Z")
}
