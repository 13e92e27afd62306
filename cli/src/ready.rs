//! What `/readyz` says: whether the program should be given requests.
//!
//! What must hold: nobody is asked and nothing is read from a disk for it.

use std::sync::Arc;
use std::time::Duration;

use ingest::Marks;
use node::EndpointState;
use tokio::sync::watch;
use tokio::time::Instant;

/// A follower catches up every few milliseconds; after this long without, what it serves is old.
const FOLLOWER_LAG: Duration = Duration::from_secs(5);

/// The node tells its height every few seconds; after this long without, nobody knows how far behind we are.
const SILENCE: Duration = Duration::from_mins(1);

/// Ready while the blocks are indexed up to `lag` below what the node last said of itself, and it said so lately. Lanes
/// that come after the blocks do not matter.
pub(crate) fn at_head(
    marks: Marks,
    heads: watch::Receiver<Arc<[EndpointState]>>,
    lag: u64,
) -> impl Fn() -> Result<(), String> {
    move || {
        not_silent(heads.borrow().iter().filter_map(|endpoint| endpoint.seen))?;
        let (chain, blocks) = (marks.chain.borrow().height, marks.blocks.borrow().height);
        let behind = chain.saturating_sub(blocks);
        if behind <= lag {
            return Ok(());
        }
        Err(format!(
            "indexed up to {blocks}, {behind} blocks behind the node; ready within {lag} (ready_lag)"
        ))
    }
}

/// Ready while somebody was heard of lately, or nobody was to be heard of yet.
fn not_silent(heard: impl Iterator<Item = Instant>) -> Result<(), String> {
    match heard.max().map(|at| at.elapsed()).filter(|ago| *ago > SILENCE) {
        Some(ago) => Err(format!("no endpoint of the node has told its height for {} s", ago.as_secs())),
        None => Ok(()),
    }
}

/// Ready while the last time that the follower caught up with its database is recent.
pub(crate) fn keeping_up(caught_up: watch::Receiver<Instant>) -> impl Fn() -> Result<(), String> {
    move || {
        let ago = caught_up.borrow().elapsed();
        if ago <= FOLLOWER_LAG {
            return Ok(());
        }
        Err(format!("the database was last followed {} s ago; ready within {FOLLOWER_LAG:?}", ago.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use ingest::Mark;

    use super::*;

    #[test]
    fn an_index_is_ready_within_its_lag() {
        let mark = |height| watch::Sender::new(Mark { height, records: 0 });
        let (chain, blocks, nothing) = (mark(100), mark(0), mark(0));
        let marks = Marks {
            chain: chain.subscribe(),
            blocks: blocks.subscribe(),
            calls: nothing.subscribe(),
            rich: nothing.subscribe(),
            has_calls: true,
            has_rich_list: true,
        };
        let (_endpoints, heads) = watch::channel(Arc::default());
        let ready = at_head(marks, heads, 10);
        let reason = "indexed up to 0, 100 blocks behind the node; ready within 10 (ready_lag)";
        assert_eq!(ready(), Err(reason.to_owned()));
        for (height, is_ready) in [(89, false), (90, true), (101, true)] {
            blocks.send_replace(Mark { height, records: 0 });
            assert_eq!(ready().is_ok(), is_ready, "{height}");
        }
        chain.send_replace(Mark { height: 200, records: 0 });
        assert!(ready().is_err());
    }

    #[test]
    fn an_index_whose_node_is_silent_is_not_ready() {
        let now = Instant::now();
        let long_ago = now.checked_sub(SILENCE + Duration::from_secs(3)).unwrap();
        let reason = "no endpoint of the node has told its height for 63 s";
        assert_eq!(not_silent([long_ago, long_ago].into_iter()), Err(reason.to_owned()));
        assert_eq!(not_silent([long_ago, now].into_iter()), Ok(()), "one is enough");
        assert_eq!(not_silent(std::iter::empty()), Ok(()));
    }

    #[test]
    fn a_follower_is_ready_while_it_follows() {
        let now = Instant::now();
        let long_ago = now.checked_sub(FOLLOWER_LAG + Duration::from_secs(2)).unwrap();
        let (caught_up, last) = watch::channel(long_ago);
        let ready = keeping_up(last);
        assert_eq!(ready(), Err("the database was last followed 7 s ago; ready within 5s".to_owned()));
        caught_up.send_replace(now);
        assert_eq!(ready(), Ok(()));
    }
}
