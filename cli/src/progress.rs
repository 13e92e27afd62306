//! How far the ingest has come: a bar on a terminal, a log line every few seconds elsewhere.
//!
//! What must hold: nothing is written per block or per request.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use ingest::Marks;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::logging::Screen;

/// How often the bar moves.
const DRAW_EVERY: Duration = Duration::from_millis(200);

/// How often a line is logged while catching up.
const LOG_EVERY: Duration = Duration::from_secs(5);

/// How often a line is logged at the chain's head, as a sign of life.
const LOG_AT_HEAD_EVERY: Duration = Duration::from_mins(1);

/// Rates are over this long.
const RATE_OVER: Duration = Duration::from_secs(10);

/// This many blocks behind after having been at the head is catching up again: 10 s to some minutes of a chain.
const BEHIND: u64 = 100;

/// Where everything stands at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standing {
    /// The height of the chain.
    target: u64,
    blocks: u64,
    txs: u64,
    /// The last height with internal transactions, if they are indexed.
    calls: Option<u64>,
    /// The last height that the rich list has, if there is one.
    rich: Option<u64>,
    /// The height that everything has.
    done: u64,
}

impl Standing {
    fn of(marks: &Marks) -> Self {
        let blocks = *marks.blocks.borrow();
        Self {
            target: marks.chain.borrow().height.max(blocks.height),
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
}

/// Reports for as long as it is polled. Tells `caught_up` when the index first has all that the chain has.
pub(crate) async fn report(marks: Marks, screen: Screen, caught_up: watch::Sender<bool>) -> Infallible {
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
        reporter.see(Instant::now(), Standing::of(&marks));
    }
}

/// Waits until all lanes have what the chain has.
async fn head(marks: &mut Marks) {
    while Standing::of(marks).behind() > 0 {
        marks.moved().await;
    }
}

struct Reporter {
    screen: Screen,
    caught_up: watch::Sender<bool>,
    bar: Option<ProgressBar>,
    pace: Pace,
    at_head: bool,
    logged: Option<Instant>,
}

impl Reporter {
    fn new(screen: Screen, caught_up: watch::Sender<bool>) -> Self {
        Self { screen, caught_up, bar: None, pace: Pace::default(), at_head: false, logged: None }
    }

    fn see(&mut self, now: Instant, standing: Standing) {
        self.pace.see(now, standing);
        standing.measure();
        if standing.behind() == 0 && !self.at_head {
            self.arrive(now, standing);
        } else if self.at_head && standing.behind() >= BEHIND {
            self.at_head = false;
        }
        if !self.at_head && self.screen.is_drawn() {
            self.draw(standing);
        } else if self.is_due(now) {
            self.log(now, standing);
        }
    }

    fn arrive(&mut self, now: Instant, standing: Standing) {
        self.hide();
        self.at_head = true;
        self.logged = Some(now);
        tracing::info!(
            height = standing.blocks,
            txs = standing.txs,
            internal_tx_height = standing.calls,
            rich_list_height = standing.rich,
            "caught up"
        );
        self.caught_up.send_replace(true);
    }

    fn is_due(&self, now: Instant) -> bool {
        let every = if self.at_head { LOG_AT_HEAD_EVERY } else { LOG_EVERY };
        self.logged.is_none_or(|logged| now.duration_since(logged) >= every)
    }

    fn log(&mut self, now: Instant, standing: Standing) {
        let Standing { target, blocks: height, calls: internal_tx_height, rich: rich_list_height, .. } =
            standing;
        // The first line would have no rates.
        if self.logged.replace(now).is_none() {
            return;
        }
        if self.at_head {
            tracing::info!(height, internal_tx_height, rich_list_height, "at the head");
            return;
        }
        let rates = self.pace.rates();
        tracing::info!(
            height,
            target,
            internal_tx_height,
            rich_list_height,
            blocks_per_s = rates.blocks,
            txs_per_s = rates.txs,
            eta_s = rates.remaining(standing.behind()).map(|eta| eta.as_secs()),
            "catching up"
        );
    }

    fn draw(&mut self, standing: Standing) {
        let bars = self.screen.bars();
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} blocks  {msg}");
            bars.add(
                ProgressBar::new(standing.target)
                    .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())),
            )
        });
        let rates = self.pace.rates();
        let left = match rates.remaining(standing.behind()) {
            Some(left) => format!("{} left", indicatif::HumanDuration(left)),
            None => "waiting".to_owned(),
        };
        bar.set_length(standing.target);
        bar.set_position(standing.done);
        bar.set_message(format!("{} blocks/s  {} txs/s  {left}", rates.blocks, rates.txs));
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

/// What was seen in the last [`RATE_OVER`].
#[derive(Debug, Default)]
struct Pace(VecDeque<(Instant, Standing)>);

/// Speeds, in whole numbers a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rates {
    /// Blocks done in all lanes.
    blocks: u64,
    txs: u64,
    /// Blocks done in a thousand seconds, for a remaining time that is right on a slow node too.
    per_kilosecond: u64,
}

impl Pace {
    fn see(&mut self, now: Instant, standing: Standing) {
        self.0.push_back((now, standing));
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
        let blocks = to.done.saturating_sub(from.done);
        Rates {
            blocks: per(blocks, 1_000),
            txs: per(to.txs.saturating_sub(from.txs), 1_000),
            per_kilosecond: per(blocks, 1_000_000),
        }
    }
}

impl Rates {
    /// How long `blocks` take; `None` while nothing moves.
    fn remaining(&self, blocks: u64) -> Option<Duration> {
        blocks.saturating_mul(1_000).checked_div(self.per_kilosecond).map(Duration::from_secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(blocks: u64, calls: u64) -> Standing {
        Standing { target: 1_000, blocks, txs: 10 * blocks, calls: Some(calls), rich: None, done: calls }
    }

    #[test]
    fn rates_are_of_the_slowest_lane_and_over_the_last_seconds_only() {
        let start = Instant::now();
        let second = |n| start + Duration::from_secs(n);
        let mut pace = Pace::default();
        assert_eq!(pace.rates(), Rates::default());
        pace.see(second(0), at(0, 0));
        pace.see(second(100), at(200, 100));
        pace.see(second(110), at(400, 150));
        let rates = pace.rates();
        assert_eq!((rates.blocks, rates.txs), (5, 200));
        assert_eq!(rates.remaining(850), Some(Duration::from_secs(170)));
    }

    #[test]
    fn nothing_moving_has_no_remaining_time() {
        let start = Instant::now();
        let mut pace = Pace::default();
        pace.see(start, at(5, 5));
        assert_eq!(pace.rates().remaining(995), None);
        pace.see(start + Duration::from_secs(3), at(5, 5));
        assert_eq!(pace.rates().remaining(995), None);
    }

    #[test]
    fn a_slow_node_still_has_a_remaining_time() {
        let start = Instant::now();
        let mut pace = Pace::default();
        pace.see(start, at(5, 5));
        pace.see(start + Duration::from_secs(10), at(6, 6));
        assert_eq!(pace.rates().blocks, 0);
        assert_eq!(pace.rates().remaining(10), Some(Duration::from_secs(100)));
    }
}
