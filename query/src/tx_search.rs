//! A node's search for transactions by their events, exact or refused.
//!
//! # Invariants
//! * All conditions but those of the height must hold in one event.
//! * A search tests at most [`MAX_TESTED`] records; one that needs more is refused with the remedy, and never cut short.

mod conditions;
mod criteria;
mod heights;
mod number;

use std::ops::{ControlFlow, Range};

use chain::comet::Event;
use schema::records::{self, Step};
use schema::search::{self, AttributeTxs, SEARCH};
use schema::tx::Txs;
use web::http_error::HttpError;
use web::limits::lane;

pub(crate) use self::conditions::parse;
use self::conditions::{Condition, Test};
pub(crate) use self::criteria::Criteria;
pub(crate) use self::heights::Heights;
use crate::api::{block, tx};
use crate::array::{Array as _, Run, Stored};
use crate::indexer::{Indexer, View};
use crate::node_text::go_hex;

/// Records that a search tests, at most.
pub(crate) const MAX_TESTED: u64 = 2_000;

/// Why a search has no result.
#[derive(Debug)]
pub enum Error {
    /// A node has no result either, with this text.
    Invalid(String),
    /// The index does not tell the result: the reason and the remedy.
    Refused(String),
    /// The index is not there, the database is damaged, or the request is to run in another lane.
    Failed(HttpError),
}

impl From<HttpError> for Error {
    fn from(error: HttpError) -> Self {
        Self::Failed(error)
    }
}

/// The place of a page in a result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Its number, from 1.
    pub(crate) page: i64,
    /// Transactions of a page, at least 1.
    pub(crate) limit: u64,
    pub(crate) descending: bool,
}

/// A part of a result.
pub(crate) struct Page {
    /// The sequences of its transactions.
    pub(crate) seqs: Vec<u64>,
    /// The transactions of the whole result.
    pub(crate) total: u64,
}

/// The page at `place` of what `query` finds.
pub(crate) fn search(indexer: &Indexer, view: &View<'_>, query: &str, place: Place) -> Result<Page, Error> {
    let conditions = parse(query).map_err(Error::Invalid)?;
    let found = match conditions.iter().find(|condition| condition.tag == "tx.hash") {
        Some(condition) => by_hash(indexer, view, condition)?,
        None => found(indexer, view, &conditions)?,
    };
    let Place { page, limit, descending } = place;
    let total = found.len();
    let skipped = skipped(total, page, limit).map_err(Error::Invalid)?;
    let len = limit.min(total.saturating_sub(skipped));
    let range = if descending { total - skipped - len..total - skipped } else { skipped..skipped + len };
    let mut seqs = found.slice(range)?;
    if descending {
        seqs.reverse();
    }
    Ok(Page { seqs, total })
}

/// The rows before a page; otherwise the error of a node.
pub(crate) fn skipped(total: u64, page: i64, limit: u64) -> Result<u64, String> {
    let pages = total.div_ceil(limit).max(1);
    let before =
        u64::try_from(page).ok().filter(|page| (1..=pages).contains(page)).map(|page| (page - 1) * limit);
    before.ok_or_else(|| format!("page should be within [1, {pages}] range, given {page}"))
}

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

/// The error of a search that the index does not answer.
pub(crate) fn refused(reason: &str, remedy: &str) -> Error {
    Error::Refused(format!("this search is not answered by the index, because {reason}: {remedy}"))
}

fn by_hash<'a>(indexer: &Indexer, view: &View<'_>, condition: &Condition<'_>) -> Result<Found<'a>, Error> {
    let hash = go_hex(condition.test.text()).map_err(|error| {
        Error::Invalid(format!("error during searching for a hash in the query: {error}"))
    })?;
    if hash.is_empty() {
        let text = "error while retrieving the result: transaction hash cannot be empty";
        return Err(Error::Invalid(text.to_owned()));
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
) -> Result<Found<'a>, Error> {
    let heights =
        Heights::of(conditions, "tx.height").map_err(|(reason, remedy)| refused(&reason, &remedy))?;
    let criteria = Criteria::of(conditions, "tx.height")?;
    let (first, last) = (indexer.identity.start_height, view.blocks()?.height);
    let Some(wanted) = heights.within(last) else { return Ok(Found::Run(Run::EMPTY)) };
    if first > 1 && *wanted.start() < first {
        let reason = format!("blocks before height {first} are not indexed");
        return Err(refused(&reason, &format!("add tx.height >= {first}, or ask a node that has them")));
    }
    let run = run(view, wanted.into_inner())?;
    if criteria.is_empty() {
        return Ok(Found::Run(run));
    }
    let Some(list) = shortest(view, &criteria.conditions)? else {
        if run.len > MAX_TESTED {
            let reason = format!(
                "no condition is an equality of a listed attribute, and its heights have {} transactions, of which at most \
                 {MAX_TESTED} are tested",
                run.len
            );
            let listed = search::LISTED.join(", ");
            return Err(refused(
                &reason,
                &format!("add tx.height >= a AND tx.height <= b, or an equality of one of {listed}"),
            ));
        }
        let all = run.slice(0..run.len).map_err(HttpError::internal)?;
        return Ok(Found::Some(tested(indexer, view, &all, &criteria)?));
    };
    let start = list.position(&run.first).map_err(HttpError::internal)?;
    let end = list.position(&run.first.saturating_add(run.len)).map_err(HttpError::internal)?;
    if criteria.len() == 1 {
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
    Ok(Found::Some(tested(indexer, view, &candidates, &criteria)?))
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
    conditions: &[Condition<'_>],
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

/// Those of `seqs` that have an event in which the criteria hold.
fn tested(
    indexer: &Indexer,
    view: &View<'_>,
    seqs: &[u64],
    criteria: &Criteria<'_>,
) -> Result<Vec<u64>, Error> {
    let (mut found, mut failed, mut rest) = (Vec::new(), None, seqs.iter());
    records::walk::<Txs>(view.snapshot(), &indexer.codec, seqs, &mut |step| {
        let Step::Record(record) = step else { return ControlFlow::Continue(()) };
        let matched = lane::spend(record.len() as u64)
            .map_err(Error::from)
            .and_then(|()| any(&search::events(record).map_err(HttpError::internal)?, criteria));
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

/// Whether the criteria hold in one of the events; an error if none tells it.
pub(crate) fn any(events: &[Event<'_>], criteria: &Criteria<'_>) -> Result<bool, Error> {
    let mut unclear = None;
    for event in events {
        match criteria.hold(event) {
            Ok(false) => {}
            Err(error) => unclear = Some(error),
            Ok(true) => return Ok(true),
        }
    }
    unclear.map_or(Ok(false), Err)
}
