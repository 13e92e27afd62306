//! Blocks become visible one by one in the order of their times, with kills in between and with a node that is down for
//! a while. The end is the same, no evidence appears early, and no state goes back.

use std::collections::BTreeMap;

use chain::Timestamp;
use serde_json::Value;

use crate::expected::{Source, expected, heights, sent_at};
use crate::order::{check_forward, check_visible};
use crate::whole::{afterwards, check_end};
use crate::world::{Block, L1, L2, World, blocks};

/// A world whose blocks become visible one by one, with its followed transfers.
struct Play {
    world: World,
    /// Registrations by time.
    waiting: Vec<(Timestamp, Source)>,
    answers: BTreeMap<Source, Value>,
    heights: crate::world::Heights,
}

impl Play {
    fn of(world: World, sources: impl IntoIterator<Item = Source>) -> Self {
        let mut waiting: Vec<_> = sources.into_iter().map(|source| (sent_at(&source), source)).collect();
        waiting.sort();
        waiting.reverse();
        Self { world, waiting, answers: BTreeMap::new(), heights: heights() }
    }

    /// Shows the block, registers the transactions sent in it (before they are seen), and polls.
    async fn step(&mut self, block: &Block) {
        // A wallet registers a transaction when it is sent.
        while self.waiting.last().is_some_and(|(time, _)| *time <= block.time) {
            let (time, source) = self.waiting.pop().unwrap();
            self.world.tracker().track(&source.0, &source.1, time).unwrap();
            let answer = self.world.status(&source.0, &source.1);
            assert_eq!(answer["state"], "STATE_SUBMITTED");
            self.answers.insert(source, answer);
        }
        self.world.node(block.chain).show(block.height).unwrap();
        self.look(block.time).await;
    }

    async fn look(&mut self, now: Timestamp) {
        let polled = self.world.tracker().poll_due(now).await.unwrap();
        assert!(polled.next_due.is_none_or(|due| due > now));
        if polled.changed == 0 {
            return;
        }
        let mut changed = 0;
        for (source, before) in &mut self.answers {
            let after = self.world.status(&source.0, &source.1);
            if *before == after {
                continue;
            }
            changed += 1;
            check_forward_as_recorded(before, &after);
            check_visible(&after, &self.heights, |chain| self.world.node(chain).shown());
            *before = after;
        }
        assert_eq!(changed, polled.changed);
    }

    /// By then the slowest polling interval of a pending transfer is a minute.
    async fn wait_for_the_rest(&mut self) {
        let end = afterwards().unix_nanos();
        for minutes in 1..=3 {
            self.look(Timestamp::from_unix_nanos(end + minutes * 61_000_000_000)).await;
        }
        assert!(self.waiting.is_empty());
    }
}

/// As [`check_forward`]; only an output that was deleted goes back, and no other part of its withdrawal.
fn check_forward_as_recorded(before: &Value, after: &Value) {
    let phase = |status: &Value, at: usize| {
        let withdrawal = &status["transfer_sequence"][at]["op_init_transfer"]["withdrawal"];
        let phase = withdrawal["phase"].as_str().map(str::to_owned);
        phase.map(|phase| {
            (
                ["INITIATED", "PROPOSED", "PROVABLE", "CLAIMED"].iter().position(|p| *p == phase).unwrap(),
                withdrawal["l2_sequence"] == "10",
            )
        })
    };
    for at in 0..2 {
        if let (Some((was, is_deleted)), Some((is, _))) = (phase(before, at), phase(after, at)) {
            assert!(was <= is || (is_deleted && was == 1 && is == 0), "{before} became {after}");
        }
    }
    check_forward(before, after);
}

#[tokio::test]
async fn block_by_block_every_transfer_reaches_its_recorded_end_and_never_goes_back() {
    let mut play = Play::of(World::at_the_beginning().await, expected().into_keys());
    for block in &blocks() {
        play.step(block).await;
    }
    play.wait_for_the_rest().await;
    check_end(&play.world);
    play.world.check_missing();
}

#[tokio::test]
async fn after_kills_at_random_steps_every_transfer_reaches_the_same_end() {
    // A linear congruential generator: the steps are the same in every run.
    let mut seed: u64 = 20_261_121;
    let mut play = Play::of(World::at_the_beginning().await, expected().into_keys());
    for block in &blocks() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if (seed >> 33).is_multiple_of(16) {
            play.world.restart();
        }
        play.step(block).await;
    }
    play.wait_for_the_rest().await;
    check_end(&play.world);
}

/// The sources of a forwarded packet that fails at its last hop, of a deposit that is refused and withdrawn, and of
/// two packets in one transaction.
fn a_few() -> [Source; 3] {
    [
        (L1, "99BAC572842794DBDC1007ECE1CAECD0BB0406FE0411099E65578C71790C21D1"),
        (L1, "76F583F6C84AC15AD7AEEF6739E35B5FF7F22CAB087EE38C89D97456212F4FA2"),
        (L1, "BC8EB6400BBEBD3D4AA04479C32528E91664C6C5C17FF14027D94E0102C2E3D4"),
    ]
    .map(|(chain, hash)| (chain.to_owned(), hash.to_owned()))
}

#[tokio::test]
async fn after_kills_at_every_step_selected_transfers_reach_the_same_end() {
    let wanted = expected();
    let mut play = Play::of(World::at_the_beginning().await, a_few());
    for block in &blocks() {
        let is_about =
            play.answers.values().any(|answer| !answer["state"].as_str().unwrap().contains("COMPLETED"))
                || play.waiting.last().is_some_and(|(time, _)| time.millis_since(block.time) < 2_000);
        if is_about {
            play.world.restart();
        }
        play.step(block).await;
    }
    for source in a_few() {
        let answer = play.world.status(&source.0, &source.1);
        assert_eq!(answer["transfers"].as_array().unwrap().len(), wanted[&source].len());
        for (transfer, wanted) in answer["transfers"].as_array().unwrap().iter().zip(&wanted[&source]) {
            assert_eq!(transfer["state"], wanted["state"]);
            assert_eq!(transfer["transfer_asset_release"], wanted["transfer_asset_release"]);
        }
    }
}

/// Follows all transfers while a node is down from one minute of the recording to another.
async fn with_a_node_down(chain: &'static str, from: &str, to: &str) {
    let (from, to) = (Timestamp::parse(from).unwrap(), Timestamp::parse(to).unwrap());
    let mut play = Play::of(World::at_the_beginning().await, expected().into_keys());
    let mut was_down = false;
    for block in &blocks() {
        let is_down = (from..to).contains(&block.time);
        let node = play.world.node(chain);
        if is_down != was_down {
            if is_down {
                node.down();
            } else {
                node.up();
            }
            was_down = is_down;
        }
        play.step(block).await;
    }
    play.wait_for_the_rest().await;
    check_end(&play.world);
}

#[tokio::test]
async fn the_rollups_node_may_be_down_for_minutes() {
    with_a_node_down(L2, "2026-11-21T08:04:25Z", "2026-11-21T08:07:13Z").await;
}

#[tokio::test]
async fn the_l1s_node_may_be_down_for_minutes() {
    with_a_node_down(L1, "2026-11-21T08:04:55Z", "2026-11-21T08:08:10Z").await;
}
