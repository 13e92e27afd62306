//! Forks and rollbacks: a reset node, a chain restored with another history, an endpoint on its own fork. The index
//! ends equal to one of the final history alone, or stops with the reason.

use std::sync::Arc;
use std::time::Duration;

use ingest::{Config, Error, Verify};
use node::{Endpoints, Limits, Node};
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::digest::TableDigest;
use schema::meta::{self, Rewinds};
use store::{MemStore, Store};
use testkit::live::Live;
use testkit::{indexed, recording};

fn open(name: &str) -> Arc<Recording> {
    Arc::new(Recording::open(&recording(name)).unwrap())
}

/// A database and an index of a replayed chain.
struct Scene {
    store: Arc<MemStore>,
    config: Config,
    played: Vec<ReplayNode>,
}

impl Scene {
    /// One node for each of `chains`, all of which show `shown`; the blocks come from all, the rest from the first.
    async fn of(chains: &[&Arc<Recording>], shown: u64) -> Self {
        let mut played = Vec::new();
        for chain in chains {
            let options = Options { up_to: Some(shown), ..Options::default() };
            let node = ReplayNode::start(Arc::clone(chain), Addresses::default(), options);
            played.push(node.await.unwrap());
        }
        let config = indexed::config(chains[0]).unwrap();
        Self { store: Arc::new(MemStore::new()), config, played }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::<MemStore>::clone(&self.store)
    }

    fn node(&self) -> Arc<Node> {
        let mut all = Endpoints::default();
        for played in &self.played {
            let one = indexed::endpoints(played).unwrap();
            all.comet.extend(one.comet);
            if all.rest.is_empty() {
                (all.rest, all.json_rpc) = (one.rest, one.json_rpc);
            }
        }
        Arc::new(Node::new(all, Limits::default()).unwrap())
    }

    async fn live(&self) -> Live {
        Live::start(self.node(), self.config.clone(), self.store()).await.unwrap()
    }

    fn digest(&self) -> Vec<TableDigest> {
        indexed::digest(&*self.store).unwrap()
    }

    fn rewinds(&self) -> u64 {
        let snapshot = self.store.snapshot().unwrap();
        meta::read::<Rewinds>(&*snapshot).unwrap().unwrap_or_default().count
    }
}

/// The index of `chain` alone, up to `height`.
async fn undisturbed(chain: &Arc<Recording>, height: u64) -> Vec<TableDigest> {
    let scene = Scene::of(&[chain], height).await;
    let mut live = scene.live().await;
    live.reach(chain, height).await.unwrap();
    live.stop().await.unwrap();
    scene.digest()
}

/// Indexes the chain up to `from`, and restores it with another history above `at` up to height `to`.
async fn follows_a_restored_chain(name: &str, from: u64, at: u64, to: u64) {
    let chain = open(name);
    let other = Arc::new(chain.forked(at, 3).unwrap());
    let mut scene = Scene::of(&[&chain], from).await;
    // Recordings are older than a day.
    scene.config.undo.time = Duration::from_hours(24 * 365 * 100);
    let mut live = scene.live().await;
    live.reach(&chain, from).await.unwrap();
    scene.played[0].switch(Arc::clone(&other), to).unwrap();
    live.reach(&other, to).await.unwrap();
    live.stop().await.unwrap();
    assert_eq!(scene.digest(), undisturbed(&other, to).await);
    assert!(scene.rewinds() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_chain_that_is_longer_is_followed() {
    follows_a_restored_chain("evm-scenario", 150, 120, 200).await;
    follows_a_restored_chain("move-scenario", 40, 20, 50).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_chain_that_is_shorter_is_followed() {
    follows_a_restored_chain("evm-scenario", 150, 100, 130).await;
    follows_a_restored_chain("evm-scenario", 150, 149, 150).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_chain_is_followed_from_heights_that_were_committed_together() {
    follows_a_restored_chain("l1-l2/l2", 800, 150, 790).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_chain_beyond_the_undo_log_ends_the_index_with_the_remedies() {
    let chain = open("l1-l2/l2");
    let other = Arc::new(chain.forked(150, 3).unwrap());
    let scene = Scene::of(&[&chain], 800).await;
    let mut live = scene.live().await;
    live.reach(&chain, 800).await.unwrap();
    let before = scene.digest();
    scene.played[0].switch(Arc::clone(&other), 810).unwrap();
    let error = live.failure().await.unwrap().to_string();
    for words in ["cannot go back to height 150", "cairn db restore", "cairn db reindex", "undo_horizon"] {
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(scene.digest(), before, "nothing is removed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_that_changed_while_the_index_was_stopped_is_followed() {
    let chain = open("evm-scenario");
    let other = Arc::new(chain.forked(90, 5).unwrap());
    let scene = Scene::of(&[&chain], 120).await;
    let mut live = scene.live().await;
    live.reach(&chain, 120).await.unwrap();
    live.stop().await.unwrap();
    let mut taken_back = Vec::new();
    for shown in [110, 140] {
        scene.played[0].switch(Arc::clone(&other), shown).unwrap();
        let mut live = scene.live().await;
        live.reach(&other, shown).await.unwrap();
        live.stop().await.unwrap();
        assert_eq!(scene.digest(), undisturbed(&other, shown).await);
        taken_back.push(scene.rewinds());
    }
    assert!(taken_back[0] > 0 && taken_back[0] == taken_back[1], "the second start takes nothing back");
}

/// The first endpoint at the head is on a fork; `honest` others follow later. Block 149 has no transactions, so that it
/// is indexed without replies of other services.
async fn a_false_last_block_is_taken_back(honest: usize, verify: Verify) {
    let chain = open("evm-scenario");
    let other = Arc::new(chain.forked(148, 3).unwrap());
    let mut chains = vec![&chain; honest];
    chains.push(&other);
    let mut scene = Scene::of(&chains, 148).await;
    scene.config.verify = verify;
    let node = scene.node();
    let mut live = Live::start(Arc::clone(&node), scene.config.clone(), scene.store()).await.unwrap();
    live.reach(&chain, 148).await.unwrap();
    let (liar, honest) = scene.played.split_last().unwrap();
    liar.show(149).unwrap();
    live.reach(&other, 149).await.unwrap();
    for node in honest {
        node.show(155).unwrap();
    }
    live.reach(&chain, 155).await.unwrap();
    live.stop().await.unwrap();
    assert_eq!(scene.digest(), undisturbed(&chain, 155).await);
    let false_answers: Vec<_> =
        node.comet.endpoints().iter().map(|endpoint| endpoint.false_answers).collect();
    assert!(
        false_answers.iter().take(honest.len()).all(|false_answers| *false_answers == 0),
        "{false_answers:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_majority_of_endpoints_wins_over_the_first_one() {
    for _ in 0..3 {
        a_false_last_block_is_taken_back(2, Verify::Hashes).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn signatures_win_over_the_first_endpoint() {
    for _ in 0..3 {
        a_false_last_block_is_taken_back(1, Verify::Signatures { trusted: None }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn digests_of_an_abandoned_history_are_not_checked_against_the_next_one() {
    let chain = open("evm-scenario");
    let other = Arc::new(chain.forked(140, 3).unwrap());
    let mut scene = Scene::of(&[&chain], 150).await;
    let mut taken_back = Vec::new();
    for (of, verify, height) in
        [(&chain, Verify::Hashes, 150), (&other, Verify::Off, 150), (&other, Verify::Hashes, 160)]
    {
        scene.config.verify = verify;
        scene.played[0].switch(Arc::clone(of), height).unwrap();
        let mut live = scene.live().await;
        live.reach(of, height).await.unwrap();
        live.stop().await.unwrap();
        taken_back.push(scene.rewinds());
    }
    assert_eq!(scene.digest(), undisturbed(&other, 160).await);
    assert!(0 < taken_back[1] && taken_back[1] == taken_back[2], "{taken_back:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_common_ancestor_is_found_among_answers_about_other_heights() {
    let chain = open("evm-scenario");
    let other = Arc::new(chain.forked(140, 3).unwrap());
    let scene = Scene::of(&[&chain], 150).await;
    let mut live = scene.live().await;
    live.reach(&chain, 150).await.unwrap();
    scene.played[0].set_faults(vec!["other-height@0.5".parse().unwrap()]);
    scene.played[0].switch(Arc::clone(&other), 160).unwrap();
    live.reach(&other, 160).await.unwrap();
    live.stop().await.unwrap();
    assert!(scene.played[0].faulted() > 0);
    assert_eq!(scene.digest(), undisturbed(&other, 160).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_node_that_repeats_the_same_blocks_causes_no_rewind() {
    let chain = open("evm-scenario");
    let scene = Scene::of(&[&chain], 120).await;
    let mut live = scene.live().await;
    live.reach(&chain, 120).await.unwrap();
    for shown in [60, 90, 119, 120, 150] {
        scene.played[0].show(shown).unwrap();
    }
    live.reach(&chain, 150).await.unwrap();
    live.stop().await.unwrap();
    assert_eq!(scene.digest(), undisturbed(&chain, 150).await);
    assert_eq!(scene.rewinds(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_endpoint_on_a_fork_is_not_followed() {
    let chain = open("evm-scenario");
    let other = Arc::new(chain.forked(100, 9).unwrap());
    let scene = Scene::of(&[&chain, &chain], 120).await;
    let node = scene.node();
    let mut live = Live::start(Arc::clone(&node), scene.config.clone(), scene.store()).await.unwrap();
    live.reach(&chain, 120).await.unwrap();
    scene.played[1].switch(Arc::clone(&other), 125).unwrap();
    scene.played[0].show(140).unwrap();
    live.reach(&chain, 140).await.unwrap();
    scene.played[1].switch(Arc::clone(&other), 160).unwrap();
    scene.played[0].show(170).unwrap();
    live.reach(&chain, 170).await.unwrap();
    live.stop().await.unwrap();
    assert_eq!(scene.digest(), undisturbed(&chain, 170).await);
    assert_eq!(scene.rewinds(), 0);
    let false_answers: Vec<bool> =
        node.comet.endpoints().iter().map(|endpoint| endpoint.false_answers > 0).collect();
    assert_eq!(false_answers, [false, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_that_differs_too_far_back_ends_the_ingest_with_the_reason() {
    let chain = open("evm-scenario");
    let other = Arc::new(chain.forked(80, 1).unwrap());
    let mut scene = Scene::of(&[&chain], 150).await;
    scene.config.max_rewind = 60;
    let mut live = scene.live().await;
    live.reach(&chain, 150).await.unwrap();
    let before = scene.digest();
    scene.played[0].switch(other, 160).unwrap();
    let error = live.failure().await.unwrap();
    assert!(matches!(error, Error::TooDeep { last: 150, lowest: 90, max_rewind: 60 }), "{error:?}");
    assert!(error.to_string().contains("max_rewind"), "{error}");
    assert_eq!(scene.digest(), before, "nothing is removed");
}
