//! `GET /cosmos/tx/v1beta1/txs?query=`: the node's search for transactions, exact or refused.
//!
//! # Invariants
//! * All conditions but those of the height must hold in one event.
//! * A request reads at most [`MAX_TESTED`] records besides those of its page; a search that needs more is refused with the
//!   remedy, and never cut short.

use std::ops::{ControlFlow, Range};

use chain::comet::Event;
use schema::records::{self, Step};
use schema::search::{self, AttributeTxs, SEARCH};
use schema::tx::Txs;
use web::call::Call;
use web::http_error::HttpError;
use web::limits::lane;
use web::reply::Reply;

use super::heights::Heights;
use super::search_query::{Condition, Test, parse};
use super::tx_response::{self, TxParts};
use super::{go_hex, node_error, unsigned};
use crate::api::{block, tx};
use crate::array::{Array as _, Run, Stored};
use crate::indexer::{Indexer, View};
use crate::page_writer::PageWriter;
use crate::params::shown;

/// The code `INTERNAL` of gRPC, which a node's search sends with a 500.
const INTERNAL: u8 = 13;

/// Transactions of a page: the maximum and the default of nodes.
const MAX_LIMIT: u64 = 100;

/// Records that a search tests, at most.
const MAX_TESTED: u64 = 2_000;

/// Heights of a search that no list selects from, at most.
const MAX_HEIGHTS: u64 = 100;

/// The found transactions.
enum Found<'a> {
    Listed(Stored<'a, AttributeTxs>, Range<u64>),
    Some(Vec<u64>),
    Run(Run),
}

impl Found<'_> {
    fn len(&self) -> u64 {
        match self {
            Self::Listed(_, range) => range.end - range.start,
            Self::Some(seqs) => seqs.len() as u64,
            Self::Run(run) => run.len,
        }
    }

    /// Those at the places `range`.
    fn slice(&self, range: Range<u64>) -> Result<Vec<u64>, HttpError> {
        match self {
            Self::Listed(list, within) => {
                list.slice(within.start + range.start..within.start + range.end).map_err(HttpError::internal)
            }
            Self::Some(seqs) => {
                let place = |place| usize::try_from(place).unwrap_or(usize::MAX);
                Ok(seqs.get(place(range.start)..place(range.end)).unwrap_or_default().to_vec())
            }
            Self::Run(run) => run.slice(range).map_err(HttpError::internal),
        }
    }
}

/// The handler.
pub(super) fn search(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let descending = is_descending(call)?;
    let page = unsigned(call, "page")?.unwrap_or(1).max(1);
    let limit = unsigned(call, "limit")?.filter(|limit| *limit > 0).unwrap_or(MAX_LIMIT).min(MAX_LIMIT);
    let query = call.first("query").ok_or_else(|| node_error(INTERNAL, "query cannot be empty"))?;
    let failed = |message: String| node_error(INTERNAL, format!("failed to search for txs: {message}"));
    let conditions = parse(query).map_err(failed)?;
    let view = indexer.view()?;
    let found = match conditions.iter().find(|condition| condition.tag == "tx.hash") {
        Some(condition) => by_hash(indexer, &view, condition)?,
        None => found(indexer, &view, &conditions)?,
    };
    let total = found.len();
    let pages = total.div_ceil(limit).max(1);
    if page > pages {
        return Err(failed(format!("page should be within [1, {pages}] range, given {page}")));
    }
    let skipped = (page - 1) * limit;
    let len = limit.min(total - skipped.min(total));
    let mut seqs = if descending {
        found.slice(total - skipped - len..total - skipped)?
    } else {
        found.slice(skipped..skipped + len)?
    };
    if descending {
        seqs.reverse();
    }
    respond(indexer, &view, &seqs, total)
}

fn is_descending(call: &Call<'_>) -> Result<bool, HttpError> {
    match call.first("order_by") {
        None | Some("0" | "1" | "ORDER_BY_UNSPECIFIED" | "ORDER_BY_ASC") => Ok(false),
        Some("2" | "ORDER_BY_DESC") => Ok(true),
        Some(text) => Err(HttpError::bad_request(format!("{} is not a valid tx.OrderBy", shown(text)))),
    }
}

fn respond(indexer: &Indexer, view: &View<'_>, seqs: &[u64], total: u64) -> Result<Reply, HttpError> {
    let mut txs = br#"{"txs":["#.to_vec();
    let mut page = PageWriter::new(br#"],"tx_responses":["#.to_vec(), seqs.len(), indexer.page_bytes);
    let mut one = Vec::new();
    let written = tx_response::each(indexer, view, seqs, &mut page, |page, parts: &TxParts<'_>| {
        one.clear();
        parts.write_response(&mut one);
        let more = page.record(&one)?;
        if more.is_continue() {
            if txs.last() != Some(&b'[') {
                txs.push(b',');
            }
            parts.write_tx(&mut txs);
        }
        Ok(more)
    })?;
    if written < seqs.len() {
        let remedy = format!("ask for fewer: limit={written}");
        return Err(refused(&format!("the page has more than {} bytes", indexer.page_bytes), &remedy));
    }
    let (responses, _) = page.finish(false);
    let total = format!(r#"],"pagination":null,"total":"{total}"}}"#);
    Ok(Reply::json([txs, responses, total.into_bytes()].concat()))
}

/// 400 with the remedy.
fn refused(reason: &str, remedy: &str) -> HttpError {
    HttpError::bad_request(format!("this search is not answered by the index, because {reason}: {remedy}"))
}

fn by_hash<'a>(
    indexer: &Indexer,
    view: &View<'_>,
    condition: &Condition<'_>,
) -> Result<Found<'a>, HttpError> {
    let failed = |message: String| node_error(INTERNAL, format!("failed to search for txs: {message}"));
    let hash = go_hex(condition.test.text())
        .map_err(|error| failed(format!("error during searching for a hash in the query: {error}")))?;
    if hash.is_empty() {
        return Err(failed("error while retrieving the result: transaction hash cannot be empty".to_owned()));
    }
    let found = match <[u8; 32]>::try_from(hash) {
        Ok(hash) => tx::find(indexer, view, &hash, b"")?.map(|(seq, _)| seq),
        Err(_) => None,
    };
    if found.is_none() && indexer.identity.start_height > 1 {
        let from = indexer.identity.start_height;
        let reason = format!("the transaction is not indexed, and blocks before height {from} are not");
        return Err(refused(&reason, "ask a node that has them"));
    }
    Ok(Found::Some(found.into_iter().collect()))
}

fn found<'a>(
    indexer: &Indexer,
    view: &'a View<'_>,
    conditions: &[Condition<'_>],
) -> Result<Found<'a>, HttpError> {
    let heights = Heights::of(conditions).map_err(|(reason, remedy)| refused(&reason, &remedy))?;
    let events: Vec<&Condition<'_>> =
        conditions.iter().filter(|condition| condition.tag != "tx.height").collect();
    for condition in &events {
        supported(condition)?;
    }
    let (first, last) = (indexer.identity.start_height, view.blocks()?.height);
    let Some(wanted) = heights.within(last) else { return Ok(Found::Run(Run::EMPTY)) };
    if first > 1 && *wanted.start() < first {
        let reason = format!("blocks before height {first} are not indexed");
        return Err(refused(&reason, &format!("add tx.height >= {first}, or ask a node that has them")));
    }
    let run = run(view, wanted.clone().into_inner())?;
    if events.is_empty() {
        return Ok(Found::Run(run));
    }
    let Some(list) = shortest(view, &events)? else {
        let number = wanted.end() - wanted.start() + 1;
        if number > MAX_HEIGHTS || run.len > MAX_TESTED {
            let reason = format!(
                "no condition is an equality of a listed attribute, and its {number} heights have {} transactions (at most \
                 {MAX_HEIGHTS} and {MAX_TESTED})",
                run.len
            );
            let listed = search::LISTED.join(", ");
            return Err(refused(
                &reason,
                &format!("add tx.height >= a AND tx.height <= b, or an equality of one of {listed}"),
            ));
        }
        let all = run.slice(0..run.len).map_err(HttpError::internal)?;
        return Ok(Found::Some(tested(indexer, view, &all, &events)?));
    };
    let start = list.position(&run.first).map_err(HttpError::internal)?;
    let end = list.position(&run.first.saturating_add(run.len)).map_err(HttpError::internal)?;
    if events.len() == 1 {
        return Ok(Found::Listed(list, start..end));
    }
    if end - start > MAX_TESTED {
        let reason = format!(
            "its most selective condition selects {} transactions, of which at most {MAX_TESTED} are tested for the others",
            end - start
        );
        return Err(refused(&reason, "add tx.height >= a AND tx.height <= b, or ask for one condition"));
    }
    let candidates = list.slice(start..end).map_err(HttpError::internal)?;
    Ok(Found::Some(tested(indexer, view, &candidates, &events)?))
}

/// An error for a condition that the index cannot test as a node does.
fn supported(condition: &Condition<'_>) -> Result<(), HttpError> {
    let tag = shown(condition.tag);
    match condition.test {
        Test::Exists | Test::Contains(_) | Test::Equals(_) => Ok(()),
        // A node compares the digits as it prints the number.
        Test::EqualsNumber(digits) if digits == "0" || !digits.starts_with('0') && !digits.contains('.') => {
            Ok(())
        }
        Test::EqualsNumber(_) => Err(refused(&format!("the number of {tag} has another form"), "quote it")),
        _ => Err(refused(
            &format!("it compares {tag} with a number or a time"),
            "compare by =, CONTAINS or EXISTS; only tx.height has ranges",
        )),
    }
}

/// The transactions of the blocks at `heights`, which are indexed.
fn run(view: &View<'_>, (first, last): (u64, u64)) -> Result<Run, HttpError> {
    let at = |height| {
        block::at(view, height)?.ok_or_else(|| HttpError::internal(format!("block {height} is missing")))
    };
    let (first, last) = (at(first)?, at(last)?);
    Ok(Run { first: first.first_tx, len: (last.first_tx + last.txs).saturating_sub(first.first_tx) })
}

/// The shortest list of a condition; `None` if no condition has one.
fn shortest<'a>(
    view: &'a View<'_>,
    conditions: &[&Condition<'_>],
) -> Result<Option<Stored<'a, AttributeTxs>>, HttpError> {
    let mut shortest: Option<Stored<'a, AttributeTxs>> = None;
    for condition in conditions {
        let (Test::Equals(value) | Test::EqualsNumber(value)) = condition.test else { continue };
        let Some(key) = search::attribute_key(condition.tag, value) else { continue };
        view.require(&SEARCH)?;
        let list = Stored::<AttributeTxs>::all(view.snapshot(), key).map_err(HttpError::internal)?;
        if shortest.as_ref().is_none_or(|shortest| list.len() < shortest.len()) {
            shortest = Some(list);
        }
    }
    Ok(shortest)
}

/// Those of `seqs` that have an event in which all conditions hold.
fn tested(
    indexer: &Indexer,
    view: &View<'_>,
    seqs: &[u64],
    conditions: &[&Condition<'_>],
) -> Result<Vec<u64>, HttpError> {
    let (mut found, mut failed, mut rest) = (Vec::new(), None, seqs.iter());
    records::walk::<Txs>(view.snapshot(), &indexer.codec, seqs, &mut |step| {
        let Step::Record(record) = step else { return ControlFlow::Continue(()) };
        let matched = lane::spend(record.len() as u64).and_then(|()| {
            let events = search::events(record).map_err(HttpError::internal)?;
            Ok(events.iter().any(|event| holds(event, conditions)))
        });
        match (matched, rest.next()) {
            (Ok(true), Some(seq)) => found.push(*seq),
            (Ok(_), _) => {}
            (Err(error), _) => {
                failed = Some(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })
    .map_err(HttpError::internal)?;
    failed.map_or(Ok(found), Err)
}

/// Whether all conditions hold in an event.
fn holds(event: &Event<'_>, conditions: &[&Condition<'_>]) -> bool {
    conditions.iter().all(|condition| {
        let key = condition.tag.strip_prefix(&*event.kind).and_then(|rest| rest.strip_prefix('.'));
        key.is_some_and(|key| {
            let mut values = event.attributes.iter().filter(|attribute| &*attribute.key == key);
            values.any(|attribute| match condition.test {
                Test::Exists => true,
                Test::Contains(part) => attribute.value.contains(part),
                Test::Equals(value) | Test::EqualsNumber(value) => &*attribute.value == value,
                _ => false,
            })
        })
    })
}
