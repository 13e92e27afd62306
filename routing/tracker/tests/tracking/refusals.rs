//! Limits of registered transactions that no node has seen, and retention.

use std::net::IpAddr;
use std::sync::Arc;

use replay::{Addresses, Call, ReplayNode};
use tracker::{Limit, Options, Refused, Tracker};

use crate::life::after;
use crate::silent::until;
use crate::whole::afterwards;
use crate::world::{L1, RECORDED_L1, Services, World, chains, endpoints};

const SUCCESS: &str = "7C27A135DF17CB9A54ED67E84174690BEBFD034E579D20F1960C9FC430791DF9";

fn client(number: u8) -> IpAddr {
    [192, 0, 2, number].into()
}

fn junk(number: u32) -> String {
    format!("{number:064x}")
}

fn limited(world: &World, unseen_per_client: usize, unseen_per_chain: usize) -> (Tracker, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { unseen_per_client, unseen_per_chain, ..Options::default() };
    (Tracker::open(dir.path(), world.registry.clone(), options).unwrap(), dir)
}

#[tokio::test]
async fn a_client_has_a_limit_of_unseen_hashes_and_a_seen_one_frees_a_slot() {
    let world = World::whole(Services::All).await;
    let (tracker, _dir) = limited(&world, 3, 1_000);
    let now = afterwards();
    tracker.track_for(Some(client(1)), L1, SUCCESS, now).unwrap();
    for number in 0..2 {
        tracker.track_for(Some(client(1)), L1, &junk(number), now).unwrap();
    }
    let refused = tracker.track_for(Some(client(1)), L1, &junk(2), now);
    assert!(matches!(refused, Err(Refused::TooMany(Limit::Client(3)))), "{refused:?}");
    assert_eq!(tracker.status(L1, &junk(2)).unwrap(), None);
    // A repeated registration does not count, and other clients are not affected.
    tracker.track_for(Some(client(1)), L1, &junk(1), now).unwrap();
    tracker.track_for(Some(client(2)), L1, &junk(2), now).unwrap();
    tracker.track_for(None, L1, &junk(3), now).unwrap();
    tracker.poll_due(now).await.unwrap();
    tracker.track_for(Some(client(1)), L1, &junk(4), now).unwrap();
    assert!(tracker.track_for(Some(client(1)), L1, &junk(5), now).is_err());
    // A deletion frees a slot too.
    for minutes in [6, 70] {
        tracker.poll_due(after(now, minutes * 60)).await.unwrap();
    }
    assert_eq!(tracker.status(L1, &junk(0)).unwrap(), None);
    for number in 10..13 {
        tracker.track_for(Some(client(1)), L1, &junk(number), after(now, 4_200)).unwrap();
    }
}

#[tokio::test]
async fn a_chain_has_a_limit_and_an_abandoned_hash_frees_a_slot_also_after_a_restart() {
    let world = World::whole(Services::All).await;
    let (tracker, dir) = limited(&world, 1_000, 4);
    let now = afterwards();
    for number in 0..4 {
        tracker.track_for(Some(client(1)), L1, &junk(number), now).unwrap();
    }
    let refused = |tracker: &Tracker| {
        let refused = tracker.track_for(Some(client(2)), L1, &junk(4), now);
        assert!(matches!(refused, Err(Refused::TooMany(Limit::Chain(4)))), "{refused:?}");
    };
    refused(&tracker);
    tracker.poll_due(now).await.unwrap();
    drop(tracker);
    let options = Options { unseen_per_chain: 4, ..Options::default() };
    let tracker = Tracker::open(dir.path(), world.registry.clone(), options).unwrap();
    refused(&tracker);
    tracker.poll_due(after(now, 301)).await.unwrap();
    for number in 4..8 {
        tracker.track_for(Some(client(2)), L1, &junk(number), after(now, 301)).unwrap();
    }
    let left: Vec<_> = (0..8).map(|number| tracker.status(L1, &junk(number)).unwrap().is_some()).collect();
    assert_eq!(left, [false, false, false, false, true, true, true, true]);
    let refused = tracker.track_for(Some(client(2)), L1, &junk(8), after(now, 301));
    assert!(matches!(refused, Err(Refused::TooMany(Limit::Chain(4)))), "{refused:?}");
}

#[tokio::test]
async fn a_transaction_found_during_its_deletion_is_kept() {
    let world = World::whole(Services::All).await;
    let slow = replay::Options {
        up_to: Some(RECORDED_L1.first()),
        faults: vec!["delay=100ms".parse().unwrap()],
        ..replay::Options::default()
    };
    let l1 = ReplayNode::start(Arc::clone(&RECORDED_L1), Addresses::default(), slow).await.unwrap();
    let all = |node| endpoints(node, Services::All);
    let registry = chains(all(&l1), all(&world.l2)).finish("test".to_owned());
    let (_keep, registry) = tokio::sync::watch::channel(Arc::new(registry));
    let dir = tempfile::tempdir().unwrap();
    let options = Options { unseen_per_chain: 1, ..Options::default() };
    let tracker = Tracker::open(dir.path(), registry, options).unwrap();
    let start = afterwards();
    tracker.track_for(Some(client(1)), L1, SUCCESS, start).unwrap();
    tracker.poll_due(after(start, 301)).await.unwrap();
    l1.show(RECORDED_L1.last()).unwrap();
    let asked = l1.call_count(Call::CometTx);
    let others = async {
        until("the node to be asked again", || l1.call_count(Call::CometTx) > asked).await;
        tracker.track_for(Some(client(2)), L1, &junk(1), after(start, 1_000)).unwrap();
        assert_eq!(tracker.status(L1, SUCCESS).unwrap(), None);
    };
    let (polled, ()) = tokio::join!(tracker.poll_due(after(start, 901)), others);
    polled.unwrap();
    let answer: serde_json::Value =
        serde_json::from_slice(&tracker.status(L1, SUCCESS).unwrap().unwrap()).unwrap();
    assert_eq!(answer["state"], "STATE_COMPLETED_SUCCESS");
    // It no longer counts as unseen.
    tracker.poll_due(after(start, 1_301)).await.unwrap();
    tracker.track_for(Some(client(1)), L1, &junk(2), after(start, 1_301)).unwrap();
    let refused = tracker.track_for(Some(client(1)), L1, &junk(3), after(start, 1_301));
    assert!(matches!(refused, Err(Refused::TooMany(Limit::Chain(1)))), "{refused:?}");
}

#[tokio::test]
async fn a_made_up_hash_costs_a_bounded_number_of_polls() {
    let world = World::whole(Services::All).await;
    let (tracker, _dir) = limited(&world, 10, 10);
    let (mut now, mut looks) = (afterwards(), 0);
    tracker.track_for(Some(client(1)), L1, &junk(1), now).unwrap();
    loop {
        let polled = tracker.poll_due(now).await.unwrap();
        looks += polled.polled;
        let Some(next) = polled.next_due else { break };
        now = next;
    }
    assert_eq!(tracker.status(L1, &junk(1)).unwrap(), None);
    let minutes = now.millis_since(afterwards()) / 60_000;
    assert!((20..=25).contains(&looks) && minutes == 65, "{looks} looks, {minutes} minutes");
}

#[tokio::test]
async fn a_finished_transfer_is_kept_for_the_configured_time() {
    let world = World::whole(Services::All).await;
    let now = afterwards();
    world.tracker().track(L1, SUCCESS, now).unwrap();
    let other = "0x9b8c0d8520e06bc72eb6a0899c7274aa3ff800e08a84338a5ec8100a54b99c8f";
    world.tracker().track(crate::world::L2, other, now).unwrap();
    world.tracker().poll_due(now).await.unwrap();
    let day = 24 * 3_600;
    world.tracker().poll_due(after(now, 29 * day)).await.unwrap();
    assert!(world.tracker().status(L1, SUCCESS).unwrap().is_some());
    world.tracker().poll_due(after(now, 31 * day)).await.unwrap();
    assert_eq!(world.tracker().status(L1, SUCCESS).unwrap(), None);
    assert_eq!(world.tracker().status(crate::world::L2, other).unwrap(), None);
}
