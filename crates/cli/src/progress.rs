//! Progress reports of the indexer: a progress bar on a terminal, otherwise a log line every few seconds.
//!
//! # Invariants
//! * Nothing is written per block or per request.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use ingest::Marks;
use node::EndpointState;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::logging::Screen;

/// How often the bar moves.
const DRAW_EVERY: Duration = Duration::from_millis(200);

/// How often a line is logged while catching up.
const LOG_EVERY: Duration = Duration::from_secs(5);

/// How often a line is logged at the chain's head, as a sign of life, and while nothing moves.
const LOG_AT_HEAD_EVERY: Duration = Duration::from_mins(1);

/// The window of the rates.
const RATE_OVER: Duration = Duration::from_secs(10);

/// This many blocks behind after having been at the head is catching up again: 10 s to some minutes of a chain.
const BEHIND: u64 = 100;

/// The heights of all lanes at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Snapshot {
    /// The height of the chain, or of the blocks if the node is behind them.
    target: u64,
    /// The height of the node.
    node: u64,
    blocks: u64,
    txs: u64,
    /// The last height with internal transactions, if they are indexed.
    calls: Option<u64>,
    /// The last height that the rich list has, if there is one.
    rich: Option<u64>,
    /// The height that everything has.
    done: u64,
}

impl Snapshot {
    fn of(marks: &Marks) -> Self {
        let (blocks, node) = (*marks.blocks.borrow(), marks.chain.borrow().height);
        Self {
            target: node.max(blocks.height),
            node,
            blocks: blocks.height,
            txs: blocks.records,
            calls: marks.has_calls.then(|| marks.calls.borrow().height),
            rich: marks.has_rich_list.then(|| marks.rich.borrow().height),
            done: marks.done(),
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
            // Heights are below 2^53 for as long as there will be chains.
            #[expect(clippy::cast_precision_loss)]
            if let Some(height) = height {
                metrics::gauge!("cairn_height", "of" => lane).set(height as f64);
            }
        }
    }

    fn behind(&self) -> u64 {
        self.target - self.done
    }

    /// Whether all lanes are at the head of the chain. If the node is behind the index, the head is unknown.
    fn is_at_head(&self) -> bool {
        self.behind() == 0 && self.node >= self.blocks
    }
}

/// Reports until dropped. Sets `caught_up` when all lanes first reach the head of the chain.
pub(crate) async fn report(
    marks: Marks,
    heads: watch::Receiver<Arc<[EndpointState]>>,
    screen: Screen,
    caught_up: watch::Sender<bool>,
) -> Infallible {
    let mut ticks = interval(if screen.is_drawn() { DRAW_EVERY } else { Duration::from_secs(1) });
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut reporter = Reporter::new(screen, caught_up);
    let mut moved = marks.clone();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            // At the head at once, not at the next tick; until then commits come often.
            () = head(&mut moved), if !reporter.at_head => {}
        }
        let is_node_down = heads.borrow().iter().all(|endpoint| endpoint.down_since.is_some());
        reporter.see(Instant::now(), Snapshot::of(&marks), is_node_down);
    }
}

/// Waits until all lanes are at the head of the chain.
async fn head(marks: &mut Marks) {
    while !Snapshot::of(marks).is_at_head() {
        marks.moved().await;
    }
}

struct Reporter {
    screen: Screen,
    caught_up: watch::Sender<bool>,
    bar: Option<ProgressBar>,
    window: RateWindow,
    at_head: bool,
    logged: Option<Instant>,
}

impl Reporter {
    fn new(screen: Screen, caught_up: watch::Sender<bool>) -> Self {
        Self { screen, caught_up, bar: None, window: RateWindow::default(), at_head: false, logged: None }
    }

    fn see(&mut self, now: Instant, snapshot: Snapshot, is_node_down: bool) {
        self.window.see(now, snapshot);
        snapshot.measure();
        if snapshot.is_at_head() && !self.at_head {
            self.arrive(now, snapshot);
        } else if self.at_head && snapshot.behind() >= BEHIND {
            self.at_head = false;
        }
        if !self.at_head && self.screen.is_drawn() {
            self.draw(snapshot);
        } else if self.is_due(now, snapshot) && !is_node_down {
            // Where the chain stands while the node is down is not known; the log has the outage already.
            self.log(now, snapshot);
        }
    }

    fn arrive(&mut self, now: Instant, snapshot: Snapshot) {
        self.hide();
        self.at_head = true;
        self.logged = Some(now);
        tracing::info!(
            height = snapshot.blocks,
            txs = snapshot.txs,
            internal_tx_height = snapshot.calls,
            rich_list_height = snapshot.rich,
            "caught up"
        );
        self.caught_up.send_replace(true);
    }

    fn is_due(&self, now: Instant, snapshot: Snapshot) -> bool {
        let rates = self.window.rates();
        // Where the blocks are at the head, a lane that stands still has logged the reason.
        let waits = snapshot.target - snapshot.blocks < BEHIND && rates.per_kilosecond == 0;
        let rests = self.at_head || rates.is_zero() || waits;
        let every = if rests { LOG_AT_HEAD_EVERY } else { LOG_EVERY };
        self.logged.is_none_or(|logged| now.duration_since(logged) >= every)
    }

    fn log(&mut self, now: Instant, snapshot: Snapshot) {
        let Snapshot { target, node, blocks: height, .. } = snapshot;
        let (internal_tx_height, rich_list_height) = (snapshot.calls, snapshot.rich);
        // The first line would have no rates.
        if self.logged.replace(now).is_none() {
            return;
        }
        if node < height {
            tracing::warn!(height, node_height = node, "the node is behind the index");
            return;
        }
        if self.at_head {
            tracing::info!(height, internal_tx_height, rich_list_height, "at the head");
            return;
        }
        let rates = self.window.rates();
        if rates.is_zero() {
            tracing::warn!(height, target, internal_tx_height, rich_list_height, "no progress");
            return;
        }
        tracing::info!(
            height,
            target,
            internal_tx_height,
            rich_list_height,
            blocks_per_s = rates.blocks,
            txs_per_s = rates.txs,
            internal_tx_blocks_per_s = rates.calls,
            rich_list_blocks_per_s = rates.rich,
            eta_s = rates.remaining(snapshot.behind()).map(|eta| eta.as_secs()),
            "catching up"
        );
    }

    fn draw(&mut self, snapshot: Snapshot) {
        let bars = self.screen.bars();
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} blocks  {msg}");
            bars.add(
                ProgressBar::new(snapshot.target)
                    .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())),
            )
        });
        let rates = self.window.rates();
        let left = match rates.remaining(snapshot.behind()) {
            Some(left) => format!("{} left", indicatif::HumanDuration(left)),
            None => "waiting".to_owned(),
        };
        bar.set_length(snapshot.target);
        bar.set_position(snapshot.done);
        let traces = rates.calls.map(|calls| format!("traces {calls}/s  ")).unwrap_or_default();
        bar.set_message(format!("blocks {}/s  txs {}/s  {traces}{left}", rates.blocks, rates.txs));
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

/// Snapshots of the last [`RATE_OVER`].
#[derive(Debug, Default)]
struct RateWindow(VecDeque<(Instant, Snapshot)>);

/// Speeds of each lane, in whole numbers a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rates {
    blocks: u64,
    txs: u64,
    /// Blocks whose internal transactions are done.
    calls: Option<u64>,
    /// Blocks that the rich list has.
    rich: Option<u64>,
    /// Blocks done in all lanes in a thousand seconds, for a remaining time that is right on a slow node too.
    per_kilosecond: u64,
    /// Blocks done in any lane.
    moved: u64,
}

impl RateWindow {
    fn see(&mut self, now: Instant, snapshot: Snapshot) {
        self.0.push_back((now, snapshot));
        while self.0.len() > 2 && now.duration_since(self.0[1].0) >= RATE_OVER {
            self.0.pop_front();
        }
    }

    fn rates(&self) -> Rates {
        let (Some((start, from)), Some((end, to))) = (self.0.front(), self.0.back()) else {
            return Rates::default();
        };
        let millis = end.duration_since(*start).as_millis();
        let per = |units: u64, millis_per_unit: u128| {
            let rate = (u128::from(units) * millis_per_unit).checked_div(millis).unwrap_or(0);
            u64::try_from(rate).unwrap_or(u64::MAX)
        };
        let grown = |of: fn(&Snapshot) -> Option<u64>| Some(of(to)?.saturating_sub(of(from)?));
        let (blocks, calls, rich) =
            (to.blocks.saturating_sub(from.blocks), grown(|s| s.calls), grown(|s| s.rich));
        Rates {
            blocks: per(blocks, 1_000),
            txs: per(to.txs.saturating_sub(from.txs), 1_000),
            calls: calls.map(|calls| per(calls, 1_000)),
            rich: rich.map(|rich| per(rich, 1_000)),
            per_kilosecond: per(to.done.saturating_sub(from.done), 1_000_000),
            moved: blocks + calls.unwrap_or(0) + rich.unwrap_or(0),
        }
    }
}

impl Rates {
    /// Whether no lane moves.
    fn is_zero(&self) -> bool {
        self.moved == 0
    }

    /// How long `blocks` take; `None` while nothing moves.
    fn remaining(&self, blocks: u64) -> Option<Duration> {
        blocks.saturating_mul(1_000).checked_div(self.per_kilosecond).map(Duration::from_secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(blocks: u64, calls: u64) -> Snapshot {
        let (target, txs) = (1_000, 10 * blocks);
        Snapshot { target, node: target, blocks, txs, calls: Some(calls), rich: None, done: calls }
    }

    #[test]
    fn rates_are_of_each_lane_and_over_the_last_seconds_only() {
        let start = Instant::now();
        let second = |n| start + Duration::from_secs(n);
        let mut pace = RateWindow::default();
        assert_eq!(pace.rates(), Rates::default());
        pace.see(second(0), at(0, 0));
        pace.see(second(100), at(200, 100));
        pace.see(second(110), at(400, 150));
        let rates = pace.rates();
        assert_eq!((rates.blocks, rates.txs, rates.calls, rates.rich), (20, 200, Some(5), None));
        assert_eq!(rates.remaining(850), Some(Duration::from_secs(170)), "of the slowest lane");
    }

    #[test]
    fn blocks_have_a_rate_while_traces_stand_still() {
        let start = Instant::now();
        let mut pace = RateWindow::default();
        pace.see(start, at(5, 5));
        pace.see(start + Duration::from_secs(5), at(300, 5));
        let rates = pace.rates();
        assert_eq!((rates.blocks, rates.calls, rates.is_zero()), (59, Some(0), false));
        assert_eq!(rates.remaining(995), None);
        pace.see(start + Duration::from_secs(50), at(300, 5));
        pace.see(start + Duration::from_mins(1), at(300, 5));
        assert!(pace.rates().is_zero());
    }

    #[test]
    fn an_index_whose_node_is_behind_it_is_not_at_the_head() {
        let whole = Snapshot { done: 1_000, ..at(1_000, 1_000) };
        assert!(whole.is_at_head());
        assert!(!Snapshot { node: 450, ..whole }.is_at_head());
        assert!(!at(1_000, 999).is_at_head());
    }

    #[test]
    fn nothing_moving_has_no_remaining_time() {
        let start = Instant::now();
        let mut pace = RateWindow::default();
        pace.see(start, at(5, 5));
        assert_eq!(pace.rates().remaining(995), None);
        pace.see(start + Duration::from_secs(3), at(5, 5));
        assert_eq!(pace.rates().remaining(995), None);
    }

    #[test]
    fn a_slow_node_still_has_a_remaining_time() {
        let start = Instant::now();
        let mut pace = RateWindow::default();
        pace.see(start, at(5, 5));
        pace.see(start + Duration::from_secs(10), at(6, 6));
        assert_eq!(pace.rates().blocks, 0);
        assert_eq!(pace.rates().remaining(10), Some(Duration::from_secs(100)));
    }
}
