//! The events of a block in the order in which the chain emitted them.
//!
//! Replaying effects (tokens, balances) event by event needs this order, block events included.

use crate::comet::{Event, ResultsResponse};

/// Every event with the index of its transaction (`None` for events of the block itself): first those before the
/// transactions, then the transactions' own, then those of the block's end.
///
/// A block event belongs to the end if its last attribute `mode` is `EndBlock`. The SDK appends that attribute, so an
/// earlier `mode` is the emitter's own; newer SDKs append `event_index` after it. A block event without a mode
/// counts as before the transactions.
pub fn in_order<'r, 'a>(
    results: &'r ResultsResponse<'a>,
) -> impl Iterator<Item = (Option<usize>, &'r Event<'a>)> {
    let of_block = |wanted: bool| {
        let events = results.finalize_block_events.iter();
        events.filter(move |event| is_of_the_end(event) == wanted).map(|event| (None, event))
    };
    let of_txs = results.txs_results.iter().enumerate();
    let of_txs = of_txs.flat_map(|(tx, result)| result.events.iter().map(move |event| (Some(tx), event)));
    of_block(false).chain(of_txs).chain(of_block(true))
}

/// True if a block event comes after the transactions.
pub fn is_of_the_end(event: &Event<'_>) -> bool {
    let mode = event.attributes.iter().rev().find(|attribute| attribute.key == "mode");
    mode.is_some_and(|mode| mode.value == "EndBlock")
}
