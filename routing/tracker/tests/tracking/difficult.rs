//! Nodes that refuse searches, have no index or a pruned one, limit ranges or rates, or search slowly: every transfer
//! reaches its recorded end where states tell it, and none a false one.

use std::time::{Duration, Instant};

use chain::Timestamp;
use registry::{Builder, Endpoints};
use replay::Call;
use serde_json::Value;

use crate::expected::{expected, packets, withdrawals};
use crate::life::after;
use crate::whole::{afterwards, check_end};
use crate::world::{L1, L2, Services, UNDER_WAY, World, chain, chains, endpoints, play, recording};

/// Registers every recorded transfer and polls until the states have settled.
async fn track_all(world: &World, now: Timestamp) {
    for (chain, hash) in expected().keys() {
        world.tracker().track(chain, hash, now).unwrap();
    }
    for minutes in 0..4 {
        world.tracker().poll_due(after(now, minutes * 61)).await.unwrap();
    }
}

/// Checks that no transfer ended otherwise than recorded; returns how many have their recorded state.
fn check_no_false_end(world: &World) -> usize {
    check_states(world, |state, _| ["STATE_PENDING", "STATE_SUBMITTED"].contains(&state))
}

/// Checks that each transfer has its recorded state, or one that `may_be` before it; returns how many have the recorded
/// one.
fn check_states(world: &World, may_be: impl Fn(&str, &[Value]) -> bool) -> usize {
    let mut right = 0;
    for ((chain, hash), wanted) in expected() {
        let answer = world.status(&chain, &hash);
        for transfer in answer["transfers"].as_array().unwrap() {
            let state = transfer["state"].as_str().unwrap();
            let is_recorded = wanted.iter().any(|wanted| wanted["state"] == state);
            assert!(is_recorded || may_be(state, &wanted), "{chain} {hash} is {state}: {wanted:?}");
            right += usize::from(is_recorded);
        }
    }
    right
}

fn all() -> usize {
    expected().values().map(Vec::len).sum()
}

#[tokio::test]
async fn without_any_search_every_transfer_reaches_its_recorded_end_with_its_transactions() {
    let world = World::whole(Services::All).await;
    world.play(&["no-search"], &["no-search"]);
    track_all(&world, afterwards()).await;
    check_end(&world);
    world.check_missing();
}

#[tokio::test]
async fn states_alone_decide_where_neither_a_search_nor_a_block_tells_the_transaction() {
    let world = World::whole(Services::All).await;
    let faults = ["no-search", "discard-abci-responses"];
    world.play(&faults, &faults);
    track_all(&world, afterwards()).await;
    let right = check_no_false_end(&world);
    // A hook's own step and the outcome of a deposit show in their transactions only.
    let is_open = |packet: &&Value| packet["data"].as_str().unwrap().contains(r#"\"evm\""#);
    let hooks = packets().iter().filter(is_open).count();
    assert!(right + hooks + 12 >= all(), "{right} of {}", all());
    let plain = "7C27A135DF17CB9A54ED67E84174690BEBFD034E579D20F1960C9FC430791DF9";
    let answer = world.status(L1, plain);
    assert_eq!(answer["state"], "STATE_COMPLETED_SUCCESS");
    let txs = &answer["transfer_sequence"][0]["ibc_transfer"]["packet_txs"];
    assert_eq!((&txs["receive_tx"], &txs["acknowledge_tx"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn no_fault_of_the_nodes_makes_a_false_end_and_good_nodes_complete_what_they_left_open() {
    let faults = [
        "no-search",
        "no-index",
        "pruned-index=600",
        "search-range=10",
        "discard-abci-responses",
        "pruned=400",
        "comet:stale=300",
        "rest:stale=300",
        "json-rpc:null-receipts",
        "cut@0.3",
        "hang-up@0.3",
        "500@0.3",
        "rest:502",
        "comet:502",
        "executor:unseen-withdrawals@0.5",
    ];
    let others = (0..).step_by(7).skip(3).map(|at: usize| faults[at % faults.len()]);
    for (at, (fault, other)) in faults.into_iter().zip(others).enumerate() {
        let played = [fault, other];
        let played = if at % 3 == 0 { &played[..] } else { &played[..1] };
        let world = World::whole(Services::All).await;
        world.play(played, played);
        track_all(&world, afterwards()).await;
        let may_be = |state: &str, wanted: &[Value]| match state {
            "STATE_PENDING" | "STATE_SUBMITTED" => true,
            "STATE_PENDING_ERROR" => wanted.iter().any(|of| of["state"] == "STATE_COMPLETED_ERROR"),
            _ => false,
        };
        let right = check_states(&world, may_be);
        println!("{played:?}: {right} of {}", all());
        world.play(&[], &[]);
        for minutes in 5..9 {
            world.tracker().poll_due(after(afterwards(), minutes * 61)).await.unwrap();
        }
        check_states(&world, |_, _| false);
    }
}

#[tokio::test]
async fn an_empty_index_and_a_clock_past_the_timeouts_make_no_received_packet_an_error() {
    let world = World::whole(Services::All).await;
    world.play(&["late-tip=86400"], &["pruned-index=1000000", "late-tip=86400"]);
    track_all(&world, after(afterwards(), 86_400)).await;
    for ((chain, hash), wanted) in expected() {
        let answer = world.status(&chain, &hash);
        let states: Vec<_> = wanted.iter().map(|transfer| transfer["state"].as_str().unwrap()).collect();
        let state = answer["state"].as_str().unwrap();
        if chain == L2 {
            assert_eq!(state, "STATE_SUBMITTED", "its index lacks the transaction itself");
        } else if let [only] = states[..] {
            // Their clock is past every timeout: what was in flight is lost.
            let is_lost = only == "STATE_PENDING" && state == "STATE_PENDING_ERROR";
            assert!(
                state == only || (is_lost && answer.to_string().contains("TRANSFER_PENDING")),
                "{hash}: {answer}"
            );
        }
    }
}

#[tokio::test]
async fn a_rest_server_that_is_behind_makes_no_false_end() {
    let world = World::whole(Services::All).await;
    // Behind the sending of most transfers: their packets are not there yet, or not any more.
    world.play(&["rest:stale=700"], &["rest:stale=500"]);
    track_all(&world, afterwards()).await;
    check_no_false_end(&world);
    world.play(&[], &[]);
    for minutes in 5..8 {
        world.tracker().poll_due(after(afterwards(), minutes * 61)).await.unwrap();
    }
    check_end(&world);
}

#[tokio::test]
async fn a_node_that_limits_searches_to_ranges_is_searched_in_ranges() {
    let world = World::whole(Services::All).await;
    world.play(&["search-range=100"], &["search-range=100"]);
    track_all(&world, afterwards()).await;
    check_end(&world);
    world.check_missing();
}

#[tokio::test]
async fn an_index_that_is_switched_off_under_way_delays_no_transfer() {
    let (hash, start) = (UNDER_WAY, afterwards());
    let world = World::with_packet_under_way(start).await;
    world.play(&["no-index"], &["no-index"]);
    world.l2.show(448).unwrap();
    world.tracker().poll_due(after(start, 1)).await.unwrap();
    assert_eq!(world.status(L1, hash)["state"], "STATE_COMPLETED_SUCCESS");
}

#[tokio::test]
async fn without_an_index_an_old_transaction_stays_submitted_with_the_reason_and_few_searches_are_sent() {
    let world = World::whole(Services::All).await;
    world.play(&["no-index"], &["no-index"]);
    track_all(&world, afterwards()).await;
    check_no_false_end(&world);
    let submitted = expected().into_keys().map(|(chain, hash)| world.status(&chain, &hash));
    let submitted: Vec<_> = submitted.filter(|answer| answer["state"] == "STATE_SUBMITTED").collect();
    assert!(submitted.len() > 20, "the newest blocks have the others");
    for answer in submitted {
        assert_eq!(answer["error"]["type"], "STATUS_ERROR_INDEXING");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("cannot be looked up: the nodes of e2e-l"), "{message}");
    }
    assert!(world.l1.call_count(Call::TxSearch) < 100);
}

#[tokio::test]
async fn without_an_index_a_transaction_of_the_newest_blocks_is_found_and_each_block_is_read_once() {
    let hash = UNDER_WAY;
    let world = World::showing(Some((1_031, 448)), Services::All).await;
    world.play(&["no-index"], &["no-index"]);
    let start = afterwards();
    world.tracker().track(L1, hash, start).unwrap();
    for n in 0..40 {
        world.tracker().track(L1, &format!("{n:064}"), start).unwrap();
    }
    world.tracker().poll_due(start).await.unwrap();
    assert_eq!(world.status(L1, hash)["error"]["type"], "STATUS_ERROR_INDEXING");
    world.l1.show(1_040).unwrap();
    world.tracker().poll_due(after(start, 1)).await.unwrap();
    let answer = world.status(L1, hash);
    assert_eq!((&answer["state"], &answer["error"]), (&"STATE_COMPLETED_SUCCESS".into(), &Value::Null));
    // 64 blocks, nine new ones, and a few of the transfer's own.
    let blocks = world.l1.call_count(Call::BlockResults);
    assert!((73..100).contains(&blocks), "{blocks}");
}

#[tokio::test]
async fn without_an_index_every_withdrawal_is_found_by_the_executor_and_reaches_its_recorded_end() {
    // The last one, which the executor had not read when it was recorded.
    const UNSEEN: &str = "ECE47BA38CF35F473A6911D13FDB494775FC825ECF1A54A964BE4CBF38281B03";
    let world = World::whole(Services::All).await;
    world.play(&[], &["no-index", "executor:502"]);
    let now = afterwards();
    let withdrawals: Vec<_> =
        withdrawals().iter().map(|of| of["initiated"]["hash"].as_str().unwrap()).collect();
    for hash in &withdrawals {
        world.tracker().track(L2, hash, now).unwrap();
    }
    world.tracker().poll_due(now).await.unwrap();
    let submitted = |hash: &&str| world.status(L2, hash)["state"] == "STATE_SUBMITTED";
    assert!(withdrawals.iter().any(submitted), "the newest blocks lack some");
    world.play(&[], &["no-index"]);
    for minutes in 1..4 {
        world.tracker().poll_due(after(now, minutes * 61)).await.unwrap();
    }
    let expected = expected();
    for hash in &withdrawals {
        let status = world.status(L2, hash);
        let wanted = &expected[&(L2.to_owned(), (*hash).to_owned())];
        let states: Vec<_> = wanted.iter().map(|transfer| &transfer["state"]).collect();
        let got: Vec<_> =
            status["transfers"].as_array().unwrap().iter().map(|transfer| &transfer["state"]).collect();
        if *hash == UNSEEN {
            assert_eq!(status["state"], "STATE_SUBMITTED");
        } else {
            assert_eq!(got, states, "{hash}");
        }
    }
    // Each once, and the search for the newest.
    let requests = world.l2.call_count(Call::Executor);
    assert!((withdrawals.len() as u64..60).contains(&requests), "{requests}");
}

#[tokio::test]
async fn a_withdrawal_that_the_executor_does_not_report_at_first_is_requested_again() {
    let world = World::whole(Services::All).await;
    world.play(&[], &["no-index", "executor:unseen-withdrawals"]);
    let now = afterwards();
    let submitted = track_withdrawals(&world, now).await;
    assert!(submitted > 5, "{submitted}");
    let requests = world.l2.call_count(Call::Executor);
    assert!(requests < 250, "{requests}");
    world.play(&[], &["no-index"]);
    assert_eq!(track_withdrawals(&world, after(now, 300)).await, 1, "the last one was not recorded");
}

#[tokio::test]
async fn what_the_executor_of_another_bridge_reported_does_not_count_once_its_address_is_corrected() {
    let world = World::whole(Services::All).await;
    let other = play(&recording("bridge-cases/l2"), None, &[]).await;
    world.play(&[], &["no-index"]);
    let (l1, l2) = (endpoints(&world.l1, Services::All), endpoints(&world.l2, Services::All));
    let of_other = Endpoints { executor: vec![other.executor_url().unwrap()], ..l2.clone() };
    world.reload(chains(l1.clone(), of_other).finish("with another executor".to_owned()));
    let now = afterwards();
    assert!(track_withdrawals(&world, now).await > 5);
    world.reload(chains(l1, l2).finish("corrected".to_owned()));
    assert_eq!(track_withdrawals(&world, after(now, 300)).await, 1);
}

#[tokio::test]
async fn an_executor_that_hangs_holds_up_no_query_about_the_chains_state() {
    let world = World::whole(Services::All).await;
    world.play(&[], &["no-index", "executor:delay=60s"]);
    let began = Instant::now();
    world.tracker().track(L1, UNDER_WAY, afterwards()).unwrap();
    assert!(track_withdrawals(&world, afterwards()).await > 5);
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    assert_eq!(world.status(L1, UNDER_WAY)["state"], "STATE_COMPLETED_SUCCESS");
}

/// Registers all withdrawals and polls them a few times; returns how many have not been found.
async fn track_withdrawals(world: &World, now: Timestamp) -> usize {
    let hashes: Vec<_> = withdrawals().iter().map(|of| of["initiated"]["hash"].as_str().unwrap()).collect();
    for hash in &hashes {
        world.tracker().track(L2, hash, now).unwrap();
    }
    for minutes in 0..4 {
        world.tracker().poll_due(after(now, minutes * 61)).await.unwrap();
    }
    hashes.iter().filter(|hash| world.status(L2, hash)["state"] == "STATE_SUBMITTED").count()
}

#[tokio::test]
async fn slow_searches_open_a_circuit_of_their_own_and_states_are_still_queried() {
    let mut world = World::whole(Services::All).await;
    world.restart_with(Duration::from_secs(2));
    world.play(&["search-delay=20s"], &["search-delay=20s"]);
    track_all(&world, afterwards()).await;
    check_end(&world);
    // Five failures open the circuit; later polls send single probes.
    let searches = world.l1.call_count(Call::TxSearch) + world.l2.call_count(Call::TxSearch);
    assert!(searches < 200, "{searches}");
}

#[tokio::test]
async fn requests_that_a_node_limits_are_sent_again_within_the_poll() {
    let world = World::whole(Services::All).await;
    world.play(&["429@0.3"], &["429@0.3"]);
    let now = afterwards();
    for (chain, hash) in expected().keys() {
        world.tracker().track(chain, hash, now).unwrap();
    }
    world.tracker().poll_due(now).await.unwrap();
    check_end(&world);
}

#[tokio::test]
async fn nodes_of_another_chain_are_no_evidence() {
    let start = afterwards();
    let world = World::with_packet_under_way(start).await;
    world.play(&[], &["wrong-chain"]);
    world.l2.show(448).unwrap();
    // A packet with the same channel and number was received there.
    world.tracker().poll_due(after(start, 660)).await.unwrap();
    assert_eq!(world.status(L1, UNDER_WAY)["state"], "STATE_PENDING");
    world.play(&[], &[]);
    world.tracker().poll_due(after(start, 1_320)).await.unwrap();
    assert_eq!(world.status(L1, UNDER_WAY)["state"], "STATE_COMPLETED_SUCCESS");
}

#[tokio::test]
async fn a_registry_that_loses_a_chain_stops_no_transfer() {
    let (hash, start) = (UNDER_WAY, afterwards());
    let mut world = World::with_packet_under_way(start).await;
    let mut other = Builder::new();
    let kind = registry::ChainKind::Cosmos;
    other.chain(chain("other-1", kind, ::chain::Vm::None, Endpoints::default())).unwrap();
    world.reload(other.finish("without both".to_owned()));
    world.restart();
    world.l2.show(448).unwrap();
    world.tracker().poll_due(after(start, 1)).await.unwrap();
    let answer = world.status(L1, hash);
    assert_eq!(answer["state"], "STATE_COMPLETED_SUCCESS");
    let received = &answer["transfer_sequence"][0]["ibc_transfer"]["packet_txs"]["receive_tx"];
    assert!(received["explorer_link"].as_str().unwrap().starts_with("https://scan.test/e2e-l2-1/txs/"));
    // It is registered already, so it can be registered again.
    assert_eq!(world.tracker().track(L1, hash, after(start, 2)).unwrap().tx_hash, hash);
    assert!(world.tracker().track(L1, &"0".repeat(64), after(start, 2)).is_err());
}

#[tokio::test]
async fn a_registry_that_gains_a_channel_completes_a_transfer_over_it() {
    let hash = UNDER_WAY;
    let world = World::showing(Some((1_040, 448)), Services::All).await;
    let (l1, l2) = (endpoints(&world.l1, Services::All), endpoints(&world.l2, Services::All));
    let mut alone = Builder::new();
    alone.chain(chain(L1, registry::ChainKind::Cosmos, ::chain::Vm::Move, l1.clone())).unwrap();
    world.reload(alone.finish("without the rollup".to_owned()));
    let start = afterwards();
    world.tracker().track(L1, hash, start).unwrap();
    world.tracker().poll_due(start).await.unwrap();
    assert_eq!(world.status(L1, hash)["state"], "STATE_PENDING");
    world.reload(chains(l1, l2).finish("with it".to_owned()));
    world.tracker().poll_due(after(start, 1)).await.unwrap();
    assert_eq!(world.status(L1, hash)["state"], "STATE_COMPLETED_SUCCESS");
}
