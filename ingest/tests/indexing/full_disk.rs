//! A full disk: commits fail, reads continue, and the ingest resumes when there is space again, whatever it was about
//! to write.

use std::sync::Arc;

use node::{Limits, Node};
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::block::hash_at;
use schema::digest::TableDigest;
use store::{MemStore, Store};
use testkit::full_disk_store::FullDiskStore;
use testkit::live::{Live, hash_of};
use testkit::{indexed, recording};

fn chain() -> Arc<Recording> {
    Arc::new(Recording::open(&recording("evm-scenario")).unwrap())
}

async fn play(chain: &Arc<Recording>, shown: u64) -> ReplayNode {
    let options = Options { up_to: Some(shown), ..Options::default() };
    ReplayNode::start(Arc::clone(chain), Addresses::default(), options).await.unwrap()
}

async fn live(played: &ReplayNode, chain: &Recording, disk: &Arc<FullDiskStore>) -> Live {
    let node = Arc::new(Node::new(indexed::endpoints(played).unwrap(), Limits::default()).unwrap());
    let store: Arc<dyn Store> = Arc::<FullDiskStore>::clone(disk);
    Live::start(node, indexed::config(chain).unwrap(), store).await.unwrap()
}

async fn undisturbed(chain: &Arc<Recording>, height: u64) -> Vec<TableDigest> {
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let options = Options { up_to: Some(height), ..Options::default() };
    indexed::index(Arc::clone(chain), options, Arc::clone(&store)).await.unwrap();
    indexed::digest(&*store).unwrap()
}

/// Waits until a commit has met the full disk.
async fn refused(disk: &FullDiskStore) {
    disk.refused().wait_for(|refused| *refused > 0).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_blocks_wait_and_reads_continue() {
    let chain = chain();
    let played = play(&chain, 80).await;
    let disk = Arc::new(FullDiskStore::new(Arc::new(MemStore::new())));
    let mut live = live(&played, &chain, &disk).await;
    live.reach(&chain, 80).await.unwrap();
    disk.set_full(true);
    played.show(120).unwrap();
    refused(&disk).await;
    let snapshot = disk.snapshot().unwrap();
    assert_eq!(hash_at(&*snapshot, 80).unwrap(), Some(hash_of(&chain, 80).unwrap()));
    assert_eq!(hash_at(&*snapshot, 81).unwrap(), None);
    drop(snapshot);
    disk.set_full(false);
    live.reach(&chain, 120).await.unwrap();
    live.stop().await.unwrap();
    assert_eq!(indexed::digest(&*disk).unwrap(), undisturbed(&chain, 120).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewind_waits_for_free_space() {
    let chain = chain();
    let other = Arc::new(chain.forked(90, 3).unwrap());
    let played = play(&chain, 120).await;
    let disk = Arc::new(FullDiskStore::new(Arc::new(MemStore::new())));
    let mut live = live(&played, &chain, &disk).await;
    live.reach(&chain, 120).await.unwrap();
    disk.set_full(true);
    played.switch(Arc::clone(&other), 130).unwrap();
    refused(&disk).await;
    let ours = hash_at(&*disk.snapshot().unwrap(), 120).unwrap();
    assert_eq!(ours, Some(hash_of(&chain, 120).unwrap()), "a history is whole until it is removed");
    disk.set_full(false);
    live.reach(&other, 130).await.unwrap();
    live.stop().await.unwrap();
    assert_eq!(indexed::digest(&*disk).unwrap(), undisturbed(&other, 130).await);
}
