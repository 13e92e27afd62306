//! Registration, abandonment, revival and the polling schedule: without a node that answers, or without nodes.

use std::sync::Arc;
use std::time::Duration;

use chain::{Timestamp, Vm};
use registry::{Builder, ChainKind, Endpoints};
use tempfile::TempDir;
use tokio::sync::watch;
use tracker::{Options, Refused, StatusError, Tracker};

use crate::expected::expected;
use crate::whole::afterwards;
use crate::world::{L1, L2, RECORDED_L1, RECORDED_L2, Services, UNDER_WAY, World, chain};

const HASH: &str = "87782A6A7C4EF4232FFC5B7C8204398AE73870049D8DC58E0146EFCAC3901979";

pub(crate) fn after(start: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_unix_nanos(start.unix_nanos() + seconds * 1_000_000_000)
}

/// A tracker of chains without nodes.
fn alone() -> (Tracker, TempDir) {
    let mut builder = Builder::new();
    for (id, kind, vm) in [
        ("interwoven-1", ChainKind::Cosmos, Vm::Move),
        ("yominet-1", ChainKind::Cosmos, Vm::Evm),
        ("1", ChainKind::Evm, Vm::None),
    ] {
        builder.chain(chain(id, kind, vm, Endpoints::default())).unwrap();
    }
    let (_, registry) = watch::channel(Arc::new(builder.finish("test".to_owned())));
    let dir = TempDir::new().unwrap();
    (Tracker::open(dir.path(), registry, Options::default()).unwrap(), dir)
}

#[test]
fn a_hash_is_accepted_in_every_spelling_and_returned_in_that_of_its_chain() {
    let (tracker, _dir) = alone();
    let now = Timestamp::from_unix_nanos(1);
    let lower = HASH.to_lowercase();
    let cases = [
        ("interwoven-1", lower.clone(), HASH.to_owned()),
        ("interwoven-1", format!("0x{HASH}"), HASH.to_owned()),
        ("interwoven-1", format!("0X{lower}"), HASH.to_owned()),
        ("1", format!("0x{HASH}"), format!("0x{lower}")),
        ("1", HASH.to_owned(), format!("0x{lower}")),
        ("yominet-1", format!("0x{HASH}"), format!("0x{lower}")),
        // Registered already, so the response is the same.
        ("yominet-1", lower, format!("0x{}", HASH.to_lowercase())),
    ];
    for (chain, given, shown) in cases {
        let tracked = tracker.track(chain, &given, now).unwrap();
        assert_eq!(tracked.tx_hash, shown, "{chain} {given}");
        assert_eq!(tracked.explorer_link, format!("https://scan.test/{chain}/txs/{shown}"));
        assert!(tracker.status(chain, &given).unwrap().is_some());
    }
}

#[test]
fn an_invalid_hash_or_chain_is_refused_and_an_unregistered_one_has_no_status() {
    let (tracker, _dir) = alone();
    let now = Timestamp::from_unix_nanos(1);
    assert!(matches!(tracker.track("nowhere-1", HASH, now), Err(Refused::UnknownChain)));
    for bad in ["", "0x", "xyz", &HASH[1..], &format!("{HASH}0"), &HASH.replace('8', "g")] {
        assert!(matches!(tracker.track("interwoven-1", bad, now), Err(Refused::BadHash(_))), "{bad}");
        assert!(matches!(tracker.status("interwoven-1", bad), Err(StatusError::BadHash(_))), "{bad}");
    }
    assert_eq!(tracker.status("interwoven-1", HASH).unwrap(), None);
    assert_eq!(tracker.status("nowhere-1", HASH).unwrap(), None);
    tracker.track("interwoven-1", HASH, now).unwrap();
    assert_eq!(tracker.status("yominet-1", HASH).unwrap(), None);
}

#[tokio::test]
async fn a_transaction_that_no_node_has_is_abandoned_after_five_minutes_and_revived_by_registration() {
    let world = World::whole(Services::All).await;
    let start = afterwards();
    world.tracker().track(L1, HASH, start).unwrap();
    let state = |world: &World| world.status(L1, HASH)["state"].as_str().unwrap().to_owned();
    world.tracker().poll_due(after(start, 299)).await.unwrap();
    assert_eq!(state(&world), "STATE_SUBMITTED");
    let polled = world.tracker().poll_due(after(start, 309)).await.unwrap();
    let answer = world.status(L1, HASH);
    assert_eq!((&answer["state"], &answer["status"]), (&"STATE_ABANDONED".into(), &"STATE_ABANDONED".into()));
    assert_eq!(answer["error"]["message"], "transaction not seen for 309 seconds");
    // It is still polled, rarely, for an hour.
    assert_eq!(polled.next_due, Some(after(start, 909)));
    world.tracker().track(L1, HASH, after(start, 400)).unwrap();
    assert_eq!(state(&world), "STATE_SUBMITTED");
    world.tracker().poll_due(after(start, 690)).await.unwrap();
    assert_eq!(state(&world), "STATE_SUBMITTED", "the grace time begins anew");
    world.tracker().poll_due(after(start, 710)).await.unwrap();
    assert_eq!(state(&world), "STATE_ABANDONED");
    world.tracker().poll_due(after(start, 710 + 3_599)).await.unwrap();
    assert_eq!(state(&world), "STATE_ABANDONED");
    let polled = world.tracker().poll_due(after(start, 710 + 2 * 3_600)).await.unwrap();
    assert_eq!((polled.polled, polled.next_due), (1, None));
    assert_eq!(world.tracker().status(L1, HASH).unwrap(), None, "what nobody has is deleted");
}

#[tokio::test]
async fn a_clock_that_is_set_back_delays_no_poll_and_no_abandonment() {
    let world = World::whole(Services::All).await;
    let start = afterwards();
    let in_flight = "D988B8E2C17E3364B7F32C627B1FD87AC11E217F3E3D0198B7EFAA2FC419897A";
    for hash in [in_flight, HASH] {
        world.tracker().track(L1, hash, after(start, 7_200)).unwrap();
    }
    let polled = world.tracker().poll_due(after(start, 7_200)).await.unwrap();
    assert_eq!(polled.next_due, Some(after(start, 7_201)));
    let polled = world.tracker().poll_due(start).await.unwrap();
    assert_eq!((polled.polled, polled.next_due), (0, Some(after(start, 1))));
    assert_eq!(world.tracker().poll_due(after(start, 1)).await.unwrap().polled, 2);
    assert_eq!(world.status(L1, in_flight)["state"], "STATE_PENDING");
    world.tracker().poll_due(after(start, 310)).await.unwrap();
    assert_eq!(world.status(L1, HASH)["state"], "STATE_ABANDONED");
}

#[tokio::test]
async fn during_an_outage_no_transfer_is_abandoned() {
    let world = World::whole(Services::All).await;
    let start = afterwards();
    let in_flight = "D988B8E2C17E3364B7F32C627B1FD87AC11E217F3E3D0198B7EFAA2FC419897A";
    world.tracker().track(L1, in_flight, start).unwrap();
    world.tracker().poll_due(start).await.unwrap();
    world.tracker().track(L1, HASH, start).unwrap();
    world.l1.down();
    world.l2.down();
    world.tracker().poll_due(after(start, 7_000)).await.unwrap();
    assert_eq!(world.status(L1, HASH)["state"], "STATE_SUBMITTED");
    assert_eq!(world.status(L1, in_flight)["state"], "STATE_PENDING");
    world.l1.up();
    world.l2.up();
    world.tracker().poll_due(after(start, 14_000)).await.unwrap();
    assert_eq!(world.status(L1, HASH)["state"], "STATE_ABANDONED");
    assert_eq!(world.status(L1, in_flight)["state"], "STATE_ABANDONED");
}

#[tokio::test]
async fn a_packet_received_after_abandonment_is_a_success() {
    let (hash, start) = (UNDER_WAY, afterwards());
    let world = World::with_packet_under_way(start).await;
    world.tracker().poll_due(after(start, 11_000)).await.unwrap();
    assert_eq!(world.status(L1, hash)["state"], "STATE_ABANDONED");
    assert_eq!(world.status(L1, hash)["next_blocking_transfer"]["transfer_sequence_index"], 0);
    world.l2.show(448).unwrap();
    world.tracker().poll_due(after(start, 12_000)).await.unwrap();
    assert_eq!(world.status(L1, hash)["state"], "STATE_COMPLETED_SUCCESS");
    // The acknowledgement never returns: after an hour polling for it has ended.
    let polled = world.tracker().poll_due(after(start, 12_000 + 3_700)).await.unwrap();
    assert_eq!((polled.polled, polled.next_due), (1, None));
}

#[tokio::test]
async fn a_withdrawal_is_abandoned_a_week_after_it_could_be_claimed() {
    let world = World::whole(Services::All).await;
    let start = afterwards();
    let without_output = "ECE47BA38CF35F473A6911D13FDB494775FC825ECF1A54A964BE4CBF38281B03";
    let unclaimed = "DD2365692F20856CEA70DF682B02291E1C9557E929B9CDD30654CB687AEB5C89";
    for hash in [without_output, unclaimed] {
        world.tracker().track(L2, hash, start).unwrap();
    }
    world.tracker().poll_due(start).await.unwrap();
    let day = 24 * 3_600;
    for (days, state) in [(1, "STATE_PENDING"), (6, "STATE_PENDING"), (8, "STATE_ABANDONED")] {
        world.tracker().poll_due(after(start, days * day)).await.unwrap();
        for hash in [without_output, unclaimed] {
            assert_eq!(world.status(L2, hash)["state"], state, "{hash} after {days} days");
        }
    }
}

#[tokio::test]
async fn repeated_registration_keeps_the_evidence() {
    let world = World::whole(Services::All).await;
    let now = afterwards();
    let all = expected();
    for (chain, hash) in all.keys() {
        world.tracker().track(chain, hash, now).unwrap();
    }
    world.tracker().poll_due(now).await.unwrap();
    for (chain, hash) in all.keys() {
        let before = world.text(chain, hash);
        world.tracker().track(chain, &format!("0x{}", hash.to_lowercase()), after(now, 1)).unwrap();
        assert_eq!(world.text(chain, hash), before);
    }
}

#[tokio::test]
async fn the_scheduler_runs_and_wakes_for_a_registration() {
    let world = World::whole(Services::All).await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let hash = "7C27A135DF17CB9A54ED67E84174690BEBFD034E579D20F1960C9FC430791DF9";
    let run = world.tracker().run(async { stopped.await.unwrap() });
    let check = async {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let now = Timestamp::from_unix_nanos(i64::try_from(now.as_nanos()).unwrap());
        world.tracker().track(L1, hash, now).unwrap();
        let wait = async {
            while world.status(L1, hash)["state"] != "STATE_COMPLETED_SUCCESS" {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), wait).await.unwrap();
        stop.send(()).unwrap();
    };
    let (run, ()) = tokio::join!(run, check);
    run.unwrap();
    assert_eq!((world.l1.shown(), world.l2.shown()), (RECORDED_L1.last(), RECORDED_L2.last()));
}
