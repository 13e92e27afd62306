//! Bridges of a layer one, with their outputs, deposits, claims and batches.

use schema::ophost::{self, Batches, Bridge, Bridges, ClaimNumbers, Claims, L1Deposits, ProposedOutputs};
use schema::tx::Txs;
use serde::Deserialize;
use store::key::{All, Text};
use store::{Message, Order, Snapshot};
use web::call::Call;
use web::http_error::HttpError;
use web::reply::Reply;

use super::{BY_BRIDGE, OF_CLAIMS, PAGES, list, run, write_each};
use crate::api::ListRequest;
use crate::array::Stored;
use crate::array::set::InMemory;
use crate::bridge_record;
use crate::cursor::Space;
use crate::indexer::Indexer;
use crate::page_writer::PageWriter;
use crate::params::Paging;
use crate::record;
use crate::v1;

/// Bridges of a layer one: each costs a fee.
const MAX_BRIDGES: usize = 10_000;

/// The bridge that a request names.
pub(super) fn bridge_id(call: &Call<'_>) -> Option<u64> {
    call.first("bridge_id")?.parse().ok().filter(|number| *number > 0)
}

fn needed(call: &Call<'_>) -> Result<u64, HttpError> {
    bridge_id(call)
        .ok_or_else(|| HttpError::bad_request("bridge_id is needed: the number of a bridge, from 1"))
}

/// A bridge by its events. Operators that only events before the index name are those of the node's last reply.
fn known(snapshot: &dyn Snapshot, number: u64) -> Result<Bridge, HttpError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Reply {
        bridge_config: Config,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Config {
        proposer: String,
        challenger: String,
        batch_info: BatchInfo,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct BatchInfo {
        submitter: String,
        chain_type: String,
    }
    let bridge = ophost::bridge(snapshot, number).map_err(HttpError::internal)?;
    let mut bridge = bridge.ok_or_else(|| {
        HttpError::not_found(format!("[NOT_FOUND] bridge not found: {number} (no indexed event names it)"))
    })?;
    let reply = ophost::bridge_reply(snapshot, number).map_err(HttpError::internal)?;
    let Reply { bridge_config: Config { proposer, challenger, batch_info } } =
        reply.and_then(|reply| serde_json::from_slice(&reply).ok()).unwrap_or_default();
    for (of_events, of_node) in [
        (&mut bridge.proposer, proposer),
        (&mut bridge.challenger, challenger),
        (&mut bridge.submitter, batch_info.submitter),
        (&mut bridge.batch_chain, batch_info.chain_type),
    ] {
        if of_events.is_empty() {
            *of_events = of_node;
        }
    }
    Ok(bridge)
}

pub(super) fn bridges(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let request = list(indexer, call, &[PAGES])?;
    let rows = store::table::rows::<Bridges>(request.snapshot(), &All, Order::Asc, MAX_BRIDGES);
    let numbers: Vec<u64> = rows.map_err(HttpError::internal)?.iter().map(|(number, _)| *number).collect();
    request.respond("bridges", &InMemory(numbers.iter().collect()), None, |out, numbers| {
        write_each(out, numbers, |number| {
            let Bridge {
                creator,
                proposer,
                challenger,
                submitter,
                batch_chain,
                last_output,
                last_deposit,
                ..
            } = known(request.snapshot(), number)?;
            Ok(v1::Bridge {
                bridge_id: number,
                creator,
                proposer,
                challenger,
                submitter,
                batch_chain,
                last_output,
                last_deposit,
            })
        })
    })
}

pub(super) fn deposits(request: &ListRequest<'_, u64>, number: u64) -> Result<Reply, HttpError> {
    let bridge = known(request.snapshot(), number)?;
    let all = run(bridge.first_deposit, bridge.last_deposit);
    request.respond("deposits", &all, None, |out, numbers| {
        write_each(out, numbers, |sequence| {
            let row =
                bridge_record::stored::<L1Deposits, _>(request.snapshot(), &(number, sequence), sequence)?;
            Ok(bridge_record::initiated(sequence, row))
        })
    })
}

pub(super) fn deposit(
    snapshot: &dyn Snapshot,
    bridge: u64,
    sequence: u64,
) -> Result<Option<v1::BridgeDeposit>, HttpError> {
    let row = store::table::read::<L1Deposits>(snapshot, &(bridge, sequence)).map_err(HttpError::internal)?;
    Ok(row.map(|Message(row)| bridge_record::initiated(sequence, row)))
}

pub(super) fn outputs(request: &ListRequest<'_, u64>, number: u64) -> Result<Reply, HttpError> {
    let bridge = known(request.snapshot(), number)?;
    let all = run(bridge.first_output, bridge.newest_output);
    request.respond("outputs", &all, None, |out, numbers| {
        write_each(out, numbers, |output| {
            let row =
                bridge_record::stored::<ProposedOutputs, _>(request.snapshot(), &(number, output), output)?;
            Ok(bridge_record::proposed(output, &row))
        })
    })
}

pub(super) fn output(
    snapshot: &dyn Snapshot,
    bridge: u64,
    output: u64,
) -> Result<Option<v1::BridgeOutput>, HttpError> {
    let row =
        store::table::read::<ProposedOutputs>(snapshot, &(bridge, output)).map_err(HttpError::internal)?;
    Ok(row.map(|Message(row)| bridge_record::proposed(output, &row)))
}

pub(super) fn claims(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let number = needed(call)?;
    let request = list(indexer, call, OF_CLAIMS)?;
    let bridge = known(request.snapshot(), number)?;
    let write = |out: &mut PageWriter, numbers: &[u64]| {
        write_each(out, numbers, |claim| {
            let row = bridge_record::stored::<Claims, _>(request.snapshot(), &(number, claim), claim)?;
            Ok(bridge_record::claim(number, row))
        })
    };
    let sequence = call.first("l2_sequence").and_then(|text| text.parse::<u64>().ok());
    let Some(sequence) = sequence.filter(|sequence| *sequence > 0) else {
        return request.respond("claims", &run(1, bridge.claims), None, write);
    };
    let claim = store::table::read::<ClaimNumbers>(request.snapshot(), &(number, sequence));
    let claim = claim.map_err(HttpError::internal)?;
    request.respond("claims", &InMemory(claim.iter().collect()), None, write)
}

pub(super) fn batches(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let number = needed(call)?;
    drop(list(indexer, call, BY_BRIDGE)?);
    let request = ListRequest::with(indexer, Paging::read(call, Space::Txs)?)?;
    let submitter = known(request.snapshot(), number)?.submitter;
    if submitter.is_empty() {
        return Err(HttpError::not_found(format!(
            "[NOT_FOUND] the submitter of bridge {number} is not known: its events are older than the index, and the node has not replied about it"
        )));
    }
    let all = Stored::<Batches>::all(request.snapshot(), Text(submitter)).map_err(HttpError::internal)?;
    request.records("txs", &all, record::records::<Txs>)
}
