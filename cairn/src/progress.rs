//! Progress reports of the indexer: a progress bar on a terminal, otherwise a log line every few seconds.
//!
//! # Invariants
//! * Nothing is written per block or per request.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use ingest::ProgressReceivers;
use node::EndpointState;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::logging::Screen;

/// Interval between redraws of the bar.
const DRAW_EVERY: Duration = Duration::from_millis(200);

/// Interval between log lines while catching up.
const LOG_EVERY: Duration = Duration::from_secs(5);

/// Interval between log lines at the head, as a sign of life, and while nothing moves.
const LOG_AT_HEAD_EVERY: Duration = Duration::from_mins(1);

/// An index that was at the head and is this many blocks behind is catching up again: 10 s to some minutes of a chain.
const BEHIND: u64 = 100;

/// The heights of all lanes at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Snapshot {
    /// The height of the chain, or of the index if the node is behind it.
    target: u64,
    /// The height of the node.
    node: u64,
    blocks: u64,
    txs: u64,
    /// The last height with internal transactions, if they are indexed.
    calls: Option<u64>,
    /// The last height of the rich list, if there is one.
    rich: Option<u64>,
    /// The last height that all lanes have indexed.
    done: u64,
    /// True if a lane is stopped, so that nobody knows when it continues.
    is_stopped: bool,
}

impl Snapshot {
    fn read(marks: &ProgressReceivers) -> Self {
        let (blocks, node) = (*marks.blocks.borrow(), marks.chain.borrow().height);
        Self {
            target: node.max(blocks.height),
            node,
            blocks: blocks.height,
            txs: blocks.records,
            calls: marks.has_calls.then(|| marks.calls.borrow().height),
            rich: marks.has_rich_list.then(|| marks.rich.borrow().height),
            done: marks.done(),
            is_stopped: !marks.stopped().is_empty(),
        }
    }

    fn measure(&self) {
        let lanes = [
            ("chain", Some(self.target)),
            ("blocks", Some(self.blocks)),
            ("internal_txs", self.calls),
            ("rich_list", self.rich),
        ];
        for (lane, height) in lanes {
            // Real heights are below 2^53.
            #[expect(clippy::cast_precision_loss)]
            if let Some(height) = height {
                metrics::gauge!("cairn_height", "of" => lane).set(height as f64);
            }
        }
    }

    /// The rates since `earlier`, which was `elapsed` ago.
    fn since(&self, earlier: &Self, elapsed: Duration) -> Rates {
        let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let per_s = |units: u64| units.saturating_mul(1_000).checked_div(millis).unwrap_or(0);
        let grown = |of: fn(&Self) -> Option<u64>| Some(of(self)?.saturating_sub(of(earlier)?));
        let (blocks, done) =
            (self.blocks.saturating_sub(earlier.blocks), self.done.saturating_sub(earlier.done));
        let (calls, rich) = (grown(|s| s.calls), grown(|s| s.rich));
        Rates {
            blocks: per_s(blocks),
            txs: per_s(self.txs.saturating_sub(earlier.txs)),
            calls: calls.map(per_s),
            rich: rich.map(per_s),
            remaining: self
                .behind()
                .saturating_mul(millis)
                .checked_div(done)
                .map(Duration::from_millis)
                .filter(|_| !self.is_stopped),
            is_zero: [Some(blocks), calls, rich].into_iter().flatten().all(|grown| grown == 0),
        }
    }

    fn behind(&self) -> u64 {
        self.target - self.done
    }

    /// True if all lanes are at the head of the chain. If the node is behind the index, the head is unknown.
    fn is_at_head(&self) -> bool {
        self.behind() == 0 && self.node >= self.blocks
    }
}

/// Reports until dropped. Sets `caught_up` when all lanes first reach the head of the chain.
pub(crate) async fn report(
    marks: ProgressReceivers,
    heads: watch::Receiver<Arc<[EndpointState]>>,
    screen: Screen,
    caught_up: watch::Sender<bool>,
) -> Infallible {
    let mut ticks = interval(if screen.is_drawn() { DRAW_EVERY } else { Duration::from_secs(1) });
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut reporter = Reporter { screen, caught_up, bar: None, at_head: false, last: None };
    let mut moved = marks.clone();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            // Reports at the head at once, not at the next tick; until then commits are frequent.
            () = head(&mut moved), if !reporter.at_head => {}
        }
        let is_node_down = heads.borrow().iter().all(|endpoint| endpoint.down_since.is_some());
        reporter.see(Instant::now(), Snapshot::read(&marks), is_node_down);
    }
}

/// Waits until all lanes are at the head of the chain.
async fn head(marks: &mut ProgressReceivers) {
    while !Snapshot::read(marks).is_at_head() {
        marks.moved().await;
    }
}

struct Reporter {
    screen: Screen,
    caught_up: watch::Sender<bool>,
    bar: Option<ProgressBar>,
    at_head: bool,
    /// The start of the interval of the rates: the last line, or the first snapshot.
    last: Option<(Instant, Snapshot)>,
}

impl Reporter {
    fn see(&mut self, now: Instant, snapshot: Snapshot, is_node_down: bool) {
        snapshot.measure();
        if snapshot.is_at_head() && !self.at_head {
            return self.arrive(now, snapshot);
        }
        if self.at_head && snapshot.behind() >= BEHIND {
            self.at_head = false;
        }
        let (begun, earlier) = *self.last.get_or_insert((now, snapshot));
        let elapsed = now.duration_since(begun);
        let rates = snapshot.since(&earlier, elapsed);
        // At the head of the blocks, a stalled lane has logged the reason.
        let waits = snapshot.target - snapshot.blocks < BEHIND && rates.remaining.is_none();
        let rests = self.at_head || rates.is_zero || waits;
        let is_due = elapsed >= if rests { LOG_AT_HEAD_EVERY } else { LOG_EVERY };
        if is_due {
            self.last = Some((now, snapshot));
        }
        if !self.at_head && self.screen.is_drawn() {
            self.draw(snapshot, is_due.then_some(rates));
        } else if is_due && !is_node_down {
            // While the node is down, the height of the chain is unknown, and the outage is in the log already.
            self.log(snapshot, rates);
        }
    }

    fn arrive(&mut self, now: Instant, snapshot: Snapshot) {
        self.hide();
        self.at_head = true;
        self.last = Some((now, snapshot));
        tracing::info!(
            height = snapshot.blocks,
            txs = snapshot.txs,
            internal_tx_height = snapshot.calls,
            rich_list_height = snapshot.rich,
            "caught up"
        );
        self.caught_up.send_replace(true);
    }

    fn log(&self, snapshot: Snapshot, rates: Rates) {
        let Snapshot { target, node, blocks: height, .. } = snapshot;
        let (internal_tx_height, rich_list_height) = (snapshot.calls, snapshot.rich);
        if node < height {
            tracing::warn!(height, node_height = node, "the node is behind the index");
        } else if self.at_head {
            tracing::info!(height, internal_tx_height, rich_list_height, "at the head");
        } else if rates.is_zero {
            tracing::warn!(height, target, internal_tx_height, rich_list_height, "no progress");
        } else {
            tracing::info!(
                height,
                target,
                internal_tx_height,
                rich_list_height,
                blocks_per_s = rates.blocks,
                txs_per_s = rates.txs,
                internal_tx_blocks_per_s = rates.calls,
                rich_list_blocks_per_s = rates.rich,
                eta_s = rates.remaining.map(|eta| eta.as_secs()),
                "catching up"
            );
        }
    }

    /// Redraws the bar; the rates next to it change only if `rates` are given.
    fn draw(&mut self, snapshot: Snapshot, rates: Option<Rates>) {
        let bars = self.screen.bars();
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} blocks  {msg}");
            let bar = ProgressBar::new(snapshot.target);
            bars.add(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
        });
        bar.set_length(snapshot.target);
        bar.set_position(snapshot.done);
        if let Some(rates) = rates {
            let left = match rates.remaining {
                Some(left) => format!("{} left", indicatif::HumanDuration(left)),
                None => "waiting".to_owned(),
            };
            let traces = rates.calls.map(|calls| format!("traces {calls}/s  ")).unwrap_or_default();
            bar.set_message(format!("blocks {}/s  txs {}/s  {traces}{left}", rates.blocks, rates.txs));
        }
    }

    fn hide(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.hide();
    }
}

/// Rates of each lane, in whole numbers a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rates {
    blocks: u64,
    txs: u64,
    /// Blocks whose internal transactions are indexed.
    calls: Option<u64>,
    /// Blocks in the rich list.
    rich: Option<u64>,
    /// Time until all lanes are at the head; `None` while the slowest is stalled.
    remaining: Option<Duration>,
    /// True if all lanes are stalled.
    is_zero: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(blocks: u64, calls: u64) -> Snapshot {
        let (target, txs) = (1_000, 10 * blocks);
        Snapshot {
            target,
            node: target,
            blocks,
            txs,
            calls: Some(calls),
            rich: None,
            done: calls,
            is_stopped: false,
        }
    }

    fn rates(from: Snapshot, to: Snapshot, seconds: u64) -> Rates {
        to.since(&from, Duration::from_secs(seconds))
    }

    #[test]
    fn rates_are_of_each_lane() {
        let rates = rates(at(200, 100), at(400, 150), 10);
        assert_eq!((rates.blocks, rates.txs, rates.calls, rates.rich), (20, 200, Some(5), None));
        assert_eq!(rates.remaining, Some(Duration::from_secs(170)), "of the slowest lane");
    }

    #[test]
    fn blocks_have_a_rate_while_traces_are_stalled() {
        let moving = rates(at(5, 5), at(300, 5), 5);
        assert_eq!(
            (moving.blocks, moving.calls, moving.is_zero, moving.remaining),
            (59, Some(0), false, None)
        );
        assert!(rates(at(300, 5), at(300, 5), 10).is_zero);
    }

    #[test]
    fn an_index_whose_node_is_behind_it_is_not_at_the_head() {
        let whole = Snapshot { done: 1_000, ..at(1_000, 1_000) };
        assert!(whole.is_at_head());
        assert!(!Snapshot { node: 450, ..whole }.is_at_head());
        assert!(!at(1_000, 999).is_at_head());
    }

    #[test]
    fn stalled_lanes_have_no_remaining_time() {
        assert_eq!(rates(at(5, 5), at(5, 5), 3).remaining, None);
        assert_eq!(rates(at(5, 5), at(5, 5), 0).remaining, None);
        let stopped = Snapshot { is_stopped: true, ..at(5, 9) };
        assert_eq!(rates(at(5, 5), stopped, 3).remaining, None, "it moved before it stopped");
    }

    #[test]
    fn a_slow_node_still_has_a_remaining_time() {
        let slow = rates(at(5, 5), at(6, 6), 10);
        assert_eq!((slow.blocks, slow.remaining), (0, Some(Duration::from_secs(9_940))));
    }
}
