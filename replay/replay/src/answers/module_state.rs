//! The state of IBC and of the optimistic bridge at any height, derived from the events up to it.
//!
//! Behaviour of ibc-go 8 (`core/04-channel/keeper/grpc_query.go`) and OPinit 1 (`x/ophost`, `x/opchild`). What happened
//! before the first recorded height is unknown to a recording, as to a chain that began there.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sha3::Sha3_256;

use super::rest_reply::{error, ok, unknown};
use super::{HttpReply, View};
use crate::recording::{Bridging, query_pairs};

/// `codes.NotFound` of gRPC.
const NOT_FOUND: u8 = 5;

/// The answer to a `GET` of `path` in the state of `height`; none if it is not about these modules, or about a channel
/// without packets, whose state has to be recorded.
pub(super) fn answer(view: View<'_>, path: &str, query: &str, height: u64) -> Option<HttpReply> {
    let all = || view.recording.bridging();
    // Not before the path is known: a state that lags is counted.
    let state = || {
        let height = view.state_of(height);
        let events = &all()[..all().partition_point(|event| event.height <= height)];
        State { view, events, height }
    };
    let has_packets = |end: &End<'_>| all().iter().any(|event| end.is(event, "src") || end.is(event, "dst"));
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match parts[..] {
        ["ibc", "core", "channel", "v1", "channels", channel, "ports", port, item, sequence] => {
            let end = Some(End { port, channel }).filter(has_packets)?;
            state().packet(&end, item, sequence.parse().ok()?)
        }
        ["ibc", "core", "channel", "v1", "channels", channel, "ports", port, "next_sequence"] => {
            Some(state().next_sequence(&Some(End { port, channel }).filter(has_packets)?))
        }
        ["opinit", "ophost", "v1", "bridges", bridge, "outputs"] => state().outputs(bridge, query),
        ["opinit", "ophost", "v1", "bridges", bridge, "outputs", index] => {
            state().output(bridge, index.parse().ok()?)
        }
        ["opinit", "ophost", "v1", "bridges", bridge, "withdrawals", "claimed", "by_hash"] => {
            state().claimed(bridge, query)
        }
        ["opinit", "opchild", "v1", "next_l1_sequence"] => Some(state().next_l1_sequence()),
        _ => None,
    }
}

struct State<'a> {
    view: View<'a>,
    events: &'a [Bridging],
    height: u64,
}

/// An end of a channel.
struct End<'a> {
    port: &'a str,
    channel: &'a str,
}

impl End<'_> {
    /// Whether it is the end of an event's packet on this side, `src` or `dst`.
    fn is(&self, event: &Bridging, side: &str) -> bool {
        event.get(&format!("packet_{side}_port")) == self.port
            && event.get(&format!("packet_{side}_channel")) == self.channel
    }
}

impl<'a> State<'a> {
    fn events_of<'k>(&self, kind: &'k str) -> impl DoubleEndedIterator<Item = &'a Bridging> + use<'a, 'k> {
        self.events.iter().filter(move |event| event.kind == kind)
    }

    fn packet(&self, end: &End<'_>, item: &str, sequence: u64) -> Option<HttpReply> {
        let one = |kind, side| {
            let is_it = move |event: &&Bridging| {
                end.is(event, side) && event.number("packet_sequence") == Some(sequence)
            };
            self.events_of(kind).find(is_it)
        };
        let absent =
            |what: &str| error(StatusCode::NOT_FOUND, NOT_FOUND, &format!("packet {what} hash not found"));
        Some(match item {
            // An ordered channel counts its packets, and keeps no receipts.
            "packet_receipts" => {
                let received = one("recv_packet", "dst").is_some_and(|event| !is_ordered(event));
                self.proved(json!({ "received": received }))
            }
            "packet_acks" => match one("write_acknowledgement", "dst") {
                Some(event) => {
                    let hash = Sha256::digest(bytes(event, "packet_ack"));
                    self.proved(json!({ "acknowledgement": STANDARD.encode(hash) }))
                }
                None => absent("acknowledgement"),
            },
            "packet_commitments" => {
                let is_over = || one("acknowledge_packet", "src").or_else(|| one("timeout_packet", "src"));
                match one("send_packet", "src").filter(|_| is_over().is_none()) {
                    Some(event) => self.proved(json!({ "commitment": STANDARD.encode(commitment(event)) })),
                    None => absent("commitment"),
                }
            }
            _ => return None,
        })
    }

    fn next_sequence(&self, end: &End<'_>) -> HttpReply {
        let received = || self.events_of("recv_packet").filter(|event| end.is(event, "dst"));
        let sent = || self.events_of("send_packet").filter(|event| end.is(event, "src"));
        let ordered = received().chain(sent()).any(is_ordered);
        let next = if ordered { 1 + received().count() } else { 0 };
        self.proved(json!({ "next_sequence_receive": next.to_string() }))
    }

    fn proved(&self, mut answer: Value) -> HttpReply {
        let id = &self.view.recording.summary().chain_id;
        let revision = id.rsplit_once('-').and_then(|(_, number)| number.parse::<u64>().ok()).unwrap_or(0);
        let height = self.height.to_string();
        answer["proof"] = Value::Null;
        answer["proof_height"] =
            json!({ "revision_number": revision.to_string(), "revision_height": height });
        ok(&[&answer.to_string()])
    }

    /// The outputs of a bridge that were not deleted, in ascending order.
    fn live_outputs(&self, bridge: &str) -> Vec<Value> {
        let mut live: Vec<(u64, Value)> = Vec::new();
        for event in self.events.iter().filter(|event| event.get("bridge_id") == bridge) {
            let Some(index) = event.number("output_index") else { continue };
            match event.kind.as_str() {
                "delete_output" => live.retain(|(known, _)| *known < index),
                "propose_output" => live.push((index, proposal(event, bridge, index))),
                _ => {}
            }
        }
        live.into_iter().map(|(_, output)| output).collect()
    }

    fn outputs(&self, bridge: &str, query: &str) -> Option<HttpReply> {
        let pairs = query_pairs(query)?;
        let value =
            |name: &str| pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let mut outputs = self.live_outputs(bridge);
        if value("pagination.reverse") == Some("true") {
            outputs.reverse();
        }
        let offset = value("pagination.offset").unwrap_or("0").parse::<usize>().ok()?;
        outputs.drain(..offset.min(outputs.len()));
        outputs.truncate(value("pagination.limit").unwrap_or("100").parse().ok()?);
        let answer = json!({ "output_proposals": outputs, "pagination": { "next_key": null, "total": "0" } });
        Some(ok(&[&answer.to_string()]))
    }

    /// None for an output from before the first height, which has to be recorded.
    fn output(&self, bridge: &str, index: u64) -> Option<HttpReply> {
        let indexes = |output: &Value| output["output_index"].as_str()?.parse::<u64>().ok();
        let live = self.live_outputs(bridge);
        let is_earlier = live.first().and_then(indexes).is_some_and(|first| index < first);
        let found = live.into_iter().find(|output| indexes(output) == Some(index));
        match found {
            Some(output) => Some(ok(&[&output.to_string()])),
            None if is_earlier => None,
            None => Some(unknown(&format!(
                "collections: not found: key '(\"{bridge}\", \"{index}\")' of type github.com/cosmos/gogoproto/opinit.ophost.v1.Output"
            ))),
        }
    }

    fn claimed(&self, bridge: &str, query: &str) -> Option<HttpReply> {
        let pairs = query_pairs(query)?;
        let (_, wanted) = pairs.iter().find(|(name, _)| name == "withdrawal_hash")?;
        let wanted = STANDARD.decode(wanted).ok()?;
        let claims =
            self.events_of("finalize_token_withdrawal").filter(|event| event.get("bridge_id") == bridge);
        let claimed = claims.filter_map(withdrawal_hash).any(|hash| hash[..] == wanted);
        Some(ok(&[&json!({ "claimed": claimed }).to_string()]))
    }

    fn next_l1_sequence(&self) -> HttpReply {
        let done =
            self.events_of("finalize_token_deposit").filter_map(|event| event.number("l1_sequence")).max();
        ok(&[&json!({ "next_l1_sequence": (done.unwrap_or(0) + 1).to_string() }).to_string()])
    }
}

fn is_ordered(event: &Bridging) -> bool {
    event.get("packet_channel_ordering") == "ORDER_ORDERED"
}

/// The bytes of an attribute that is also there in hex.
fn bytes(event: &Bridging, key: &str) -> Vec<u8> {
    match hex::decode(event.get(&format!("{key}_hex"))) {
        Ok(bytes) if !bytes.is_empty() => bytes,
        _ => event.get(key).as_bytes().to_vec(),
    }
}

/// `CommitPacket` of ibc-go: time and height of the timeout, and the hash of the data.
fn commitment(event: &Bridging) -> [u8; 32] {
    let height = event.get("packet_timeout_height");
    let (revision, height) = height.split_once('-').unwrap_or(("0", "0"));
    let numbers = [event.get("packet_timeout_timestamp"), revision, height];
    let mut whole = Sha256::new();
    for number in numbers {
        whole.update(number.parse().unwrap_or(0_u64).to_be_bytes());
    }
    whole.chain_update(Sha256::digest(bytes(event, "packet_data"))).finalize().into()
}

fn proposal(event: &Bridging, bridge: &str, index: u64) -> Value {
    let root = hex::decode(event.get("output_root")).unwrap_or_default();
    json!({
        "bridge_id": bridge,
        "output_index": index.to_string(),
        "output_proposal": {
            "output_root": STANDARD.encode(root),
            "l1_block_number": event.height.to_string(),
            "l1_block_time": in_groups(&event.time),
            "l2_block_number": event.get("l2_block_number"),
        },
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

/// The leaf of a claimed withdrawal (`GenerateWithdrawalHash` of OPinit).
fn withdrawal_hash(event: &Bridging) -> Option<[u8; 32]> {
    let hash = |bytes: &[u8]| -> [u8; 32] { Sha3_256::digest(bytes).into() };
    let mut leaf = Vec::new();
    leaf.extend(event.number("bridge_id")?.to_be_bytes());
    leaf.extend(event.number("l2_sequence")?.to_be_bytes());
    for key in ["from", "to", "l1_denom"] {
        leaf.extend(hash(event.get(key).as_bytes()));
    }
    leaf.extend(event.number("amount")?.to_be_bytes());
    Some(hash(&hash(&leaf)))
}
