//! Which lists of the index `logs` are read for a filter.

use std::ops::Range;

use chain::evm::log_filter::LogFilter;
use schema::logs::{Content, Fingerprint, LogTxs};
use store::Snapshot;
use web::limits::lane;

use super::Error;
use super::merge::Merge;
use crate::array::union::Union;
use crate::array::{Array, Run};

/// Maximum number of lists that are read for a filter. With the limits of a request, some single part of a filter has fewer.
const MAX_LISTS: usize = 4096;

/// Lists that are longer than the shortest by this factor are not searched for their part within the range.
const MUCH_LONGER: u64 = 8;

/// Entries from which on a second selection of lists is read to skip some.
const MANY: u64 = 256;

/// The second selection is worth reading up to so many times the length of the first.
const WORTH: u64 = 16;

/// Candidates that are skipped at once. After so many the next one is returned whether it is in both selections or not, so that
/// the bound of candidates is one of the work for a request.
const MAX_SKIPS: usize = 64;

/// Work of finding the part of a list within the range, as bytes ([`lane::spend`]).
const LIST_WORK: u64 = 1024;

/// Parts of lists by which all matching transactions are found: each of them is in one of the lists.
pub(super) struct Plan {
    parts: Vec<(Fingerprint, Range<u64>)>,
    cost: u64,
}

/// Candidates of a filter, ascending.
pub(super) enum Candidates<'a> {
    /// All transactions of a range.
    All(Range<u64>),
    /// Those in a selection of lists.
    Of(Merge<'a, LogTxs>),
    /// Those in both, and some others.
    Both(Merge<'a, LogTxs>, Merge<'a, LogTxs>),
}

impl<'a> Candidates<'a> {
    /// Those of `filter` among the transactions `seqs`. `hash` is [`schema::logs::fingerprint`].
    pub(super) fn of(
        snapshot: &'a dyn Snapshot,
        filter: &LogFilter,
        seqs: Range<u64>,
        hash: fn(Content<'_>) -> Fingerprint,
    ) -> Result<Self, Error> {
        let selections = selections(filter, hash);
        if selections.is_empty() {
            return Ok(Self::All(seqs));
        }
        lane::spend(selections.iter().map(Vec::len).sum::<usize>() as u64 * LIST_WORK)?;
        let mut plans = plans(snapshot, selections, &seqs)?.into_iter();
        let Some(best) = plans.next() else { return Ok(Self::All(0..0)) };
        let first = Merge::new(snapshot, best.parts)?;
        match plans.next() {
            Some(second) if best.cost > MANY && second.cost / WORTH <= best.cost => {
                Ok(Self::Both(first, Merge::new(snapshot, second.parts)?))
            }
            _ => Ok(Self::Of(first)),
        }
    }

    /// The next one.
    pub(super) fn next(&mut self) -> Result<Option<u64>, Error> {
        match self {
            Self::All(rest) => Ok(rest.next()),
            Self::Of(merge) => Ok(merge.next()?),
            Self::Both(first, second) => {
                let mut next = first.next()?;
                for _ in 0..MAX_SKIPS {
                    let Some(seq) = next else { return Ok(None) };
                    match second.seek(seq)? {
                        None => return Ok(None),
                        Some(other) if other == seq => break,
                        Some(other) => next = first.seek(other)?,
                    }
                }
                Ok(next)
            }
        }
    }
}

/// The selections of lists of each of which one has every match.
fn selections(filter: &LogFilter, hash: fn(Content<'_>) -> Fingerprint) -> Vec<Vec<Fingerprint>> {
    let (addresses, topics) = (filter.addresses(), filter.topics());
    let mut selections = Vec::new();
    let mut add = |lists: usize, owners: &mut dyn Iterator<Item = Fingerprint>| {
        if (1..=MAX_LISTS).contains(&lists) {
            let mut owners: Vec<_> = owners.collect();
            // Equal fingerprints are one list.
            owners.sort_unstable();
            owners.dedup();
            selections.push(owners);
        }
    };
    let first = topics.first().map_or(&[][..], Vec::as_slice);
    let events =
        addresses.iter().flat_map(|address| first.iter().map(move |topic| Content::Event(address, topic)));
    add(addresses.len().saturating_mul(first.len()), &mut events.map(hash));
    add(addresses.len(), &mut addresses.iter().map(|address| hash(Content::Address(address))));
    for (place, any) in topics.iter().enumerate() {
        add(any.len(), &mut any.iter().map(|topic| hash(Content::Topic(place, topic))));
    }
    selections
}

/// The selections with their entries among `seqs`, the cheapest first. None if one of them has no entries.
fn plans(
    snapshot: &dyn Snapshot,
    selections: Vec<Vec<Fingerprint>>,
    seqs: &Range<u64>,
) -> Result<Vec<Plan>, Error> {
    let run = Run { first: seqs.start, len: seqs.end.saturating_sub(seqs.start) };
    let mut unions = Vec::with_capacity(selections.len());
    for owners in selections {
        unions.push(Union::<LogTxs>::new(snapshot, owners)?);
    }
    let Some(shortest) = unions.iter().map(Array::len).min().filter(|shortest| *shortest > 0) else {
        return Ok(Vec::new());
    };
    let mut plans = Vec::with_capacity(unions.len());
    for union in unions {
        if union.len() / MUCH_LONGER <= shortest {
            let within = union.within(run)?;
            if within.is_empty() {
                return Ok(Vec::new());
            }
            plans.push(Plan { cost: within.len(), parts: within.into_parts() });
        }
    }
    plans.sort_by_key(|plan| plan.cost);
    Ok(plans)
}
