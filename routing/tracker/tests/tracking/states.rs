//! Effects of observations on a hop and on a transfer: every pair, and any order.

use proptest::prelude::*;
use tracker::evidence::hop::{
    Ack, Deposit, Finalized, Forward, Ibc, ObservedHop, Output, Packet, PacketId, Relation, TxRef, Withdrawal,
};
use tracker::evidence::hop_query::open_queries;
use tracker::evidence::state::{Observation, Progress, advance, progress};
use tracker::evidence::transfer::{State, Transfer};

fn seen(chain: &str, height: u64) -> TxRef {
    TxRef { chain: chain.to_owned(), hash: Some(format!("{chain}{height}")), height, time: None }
}

fn id(chain: &str, sequence: u64) -> PacketId {
    PacketId {
        chain: chain.to_owned(),
        port: "transfer".to_owned(),
        channel: "channel-0".to_owned(),
        sequence,
    }
}

fn packet(from: &str, to: &str, sequence: u64) -> Packet {
    Packet {
        id: id(from, sequence),
        to: Some(to.to_owned()),
        dst_port: "transfer".to_owned(),
        dst_channel: "channel-0".to_owned(),
        timeout_nanos: 1_000,
        timeout_height: 0,
        denom: "uinit".to_owned(),
        amount: "1".to_owned(),
        sender: "init1".to_owned(),
        forward: None,
        hook: None,
    }
}

fn hop(packet: Packet, link: Relation, at: u64) -> ObservedHop {
    let sent = seen(&packet.id.chain, at);
    ObservedHop::Ibc(Ibc {
        packet,
        link,
        sent,
        received: None,
        acknowledged: None,
        timed_out: None,
        ack: None,
        expired: false,
        refund: None,
    })
}

fn refused() -> Ack {
    Ack::Error { message: "no".to_owned(), reason: None }
}

fn received(packet: PacketId, ack: Option<Ack>, next: Option<ObservedHop>) -> Observation {
    Observation::Received { packet, at: seen("b", 10), ack, next: next.into_iter().collect() }
}

fn acknowledged(packet: PacketId, ack: Option<Ack>) -> Observation {
    Observation::Acknowledged { at: seen(&packet.chain, 30), packet, ack }
}

fn timed_out(packet: PacketId, again: Option<(Packet, TxRef)>) -> Observation {
    Observation::TimedOut { at: seen(&packet.chain, 20), packet, again: again.map(Box::new) }
}

/// Every observation about a packet, with a name.
fn about_a_packet() -> Vec<(&'static str, Observation)> {
    let id = || id("a", 1);
    let again = (packet("a", "b", 2), seen("a", 20));
    vec![
        ("recv", received(id(), None, None)),
        ("recv+good", received(id(), Some(Ack::Good), None)),
        ("recv+error", received(id(), Some(refused()), None)),
        ("written good", Observation::Written { packet: id(), ack: Ack::Good }),
        ("written error", Observation::Written { packet: id(), ack: refused() }),
        ("ack good", acknowledged(id(), Some(Ack::Good))),
        ("ack error", acknowledged(id(), Some(refused()))),
        ("ack ?", acknowledged(id(), None)),
        ("timeout", timed_out(id(), None)),
        ("timeout, again", timed_out(id(), Some(again))),
        ("expired", Observation::Expired { packet: id() }),
        ("another's", received(self::id("b", 1), Some(refused()), None)),
    ]
}

fn letter(progress: Progress) -> char {
    match progress {
        Progress::Unknown => 'u',
        Progress::Sent => 's',
        Progress::Received => 'r',
        Progress::Done => 'D',
        Progress::Failed => 'F',
    }
}

#[test]
fn every_pair_of_observations_about_a_packet_has_its_outcome() {
    // A row for the first observation, a column for the second, both in the order of the list: s sent, r received, D
    // done, F failed. Once D or F, a row has that letter only.
    let table = [
        "r rDFDFDFrrrrr",
        "D DDDDDDDDDDDD",
        "F FFFFFFFFFFFF",
        "D DDDDDDDDDDDD",
        "F FFFFFFFFFFFF",
        "D DDDDDDDDDDDD",
        "F FFFFFFFFFFFF",
        "r rDFDFDFrrrrr",
        "F FFFFFFFFFFFF",
        "s ssssssssssss",
        "s rDFDFDFrFsss",
        "s rDFDFDFrFsss",
    ];
    let all = about_a_packet();
    for ((first, one), row) in all.iter().zip(table) {
        let after_one = advance(hop(packet("a", "b", 1), Relation::Start, 1), one);
        let mut letters = vec![letter(progress(&after_one)), ' '];
        for (_, two) in &all {
            letters.push(letter(progress(&advance(after_one.clone(), two))));
        }
        assert_eq!(letters.into_iter().collect::<String>(), row, "{first}");
    }
}

#[test]
fn a_transaction_replaces_the_state_that_showed_its_effect_in_any_order() {
    let in_state = |height| TxRef { chain: "b".to_owned(), hash: None, height, time: None };
    let by_state = |height| Observation::Received {
        packet: id("a", 1),
        at: in_state(height),
        ack: None,
        next: Vec::new(),
    };
    let all = [by_state(40), by_state(50), received(id("a", 1), Some(Ack::Good), None)];
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]] {
        let mut hop = hop(packet("a", "b", 1), Relation::Start, 1);
        for at in order {
            hop = advance(hop, &all[at]);
        }
        let ObservedHop::Ibc(hop) = hop else { panic!() };
        assert_eq!(hop.received, Some(seen("b", 10)));
    }
    let mut only = hop(packet("a", "b", 1), Relation::Start, 1);
    for observation in [&all[1], &all[0]] {
        only = advance(only, observation);
    }
    assert_eq!(progress(&only), Progress::Received);
    let ObservedHop::Ibc(only) = only else { panic!() };
    assert_eq!(only.received, Some(in_state(40)));
}

/// One course of events on the chains: by hop, the evidence about it.
struct Story {
    name: &'static str,
    begin: ObservedHop,
    facts: Vec<(usize, Observation)>,
    state: State,
}

fn forwarding(retries: u64) -> Packet {
    let forward = Forward { channel: "channel-0".to_owned(), retries: Some(retries) };
    Packet { forward: Some(forward), ..packet("a", "b", 1) }
}

fn stories() -> Vec<Story> {
    let (one, two, three) = (|| id("a", 1), || id("b", 1), || id("b", 2));
    let plain = || hop(packet("a", "b", 1), Relation::Start, 1);
    let child = || hop(packet("b", "a", 1), Relation::Forward, 10);
    let again = || (packet("b", "a", 2), seen("b", 20));
    let on = |retries| hop(forwarding(retries), Relation::Start, 1);
    let written = |ack| Observation::Written { packet: one(), ack };
    let story = |name, begin, facts, state| Story { name, begin, facts, state };
    vec![
        story("in flight", plain(), vec![], State::Pending),
        story(
            "received",
            plain(),
            vec![(0, received(one(), Some(Ack::Good), None))],
            State::CompletedSuccess,
        ),
        story(
            "done",
            plain(),
            vec![(0, received(one(), Some(Ack::Good), None)), (0, acknowledged(one(), Some(Ack::Good)))],
            State::CompletedSuccess,
        ),
        story("refused", plain(), vec![(0, received(one(), Some(refused()), None))], State::PendingError),
        story(
            "refunded",
            plain(),
            vec![(0, received(one(), Some(refused()), None)), (0, acknowledged(one(), Some(refused())))],
            State::CompletedError,
        ),
        story("late", plain(), vec![(0, Observation::Expired { packet: one() })], State::PendingError),
        story(
            "timed out",
            plain(),
            vec![(0, Observation::Expired { packet: one() }), (0, timed_out(one(), None))],
            State::CompletedError,
        ),
        story("sent on", on(0), vec![(0, received(one(), None, Some(child())))], State::Pending),
        story(
            "sent on and there",
            on(0),
            vec![
                (0, received(one(), None, Some(child()))),
                (1, received(two(), Some(Ack::Good), None)),
                (1, acknowledged(two(), Some(Ack::Good))),
                (0, written(Ack::Good)),
                (0, acknowledged(one(), Some(Ack::Good))),
            ],
            State::CompletedSuccess,
        ),
        story(
            "sent on and refused",
            on(0),
            vec![
                (0, received(one(), None, Some(child()))),
                (1, received(two(), Some(refused()), None)),
                (1, acknowledged(two(), Some(refused()))),
                (0, written(refused())),
            ],
            State::PendingError,
        ),
        story(
            "sent on, refused and back",
            on(0),
            vec![
                (0, received(one(), None, Some(child()))),
                (1, received(two(), Some(refused()), None)),
                (0, written(refused())),
                (0, acknowledged(one(), Some(refused()))),
            ],
            State::CompletedError,
        ),
        story(
            "sent on, late, and no second try",
            on(0),
            vec![(0, received(one(), None, Some(child()))), (1, Observation::Expired { packet: two() })],
            State::PendingError,
        ),
        story(
            "sent on, late, and tried again",
            on(1),
            vec![
                (0, received(one(), None, Some(child()))),
                (1, Observation::Expired { packet: two() }),
                (1, timed_out(two(), Some(again()))),
                (1, received(three(), Some(Ack::Good), None)),
                (0, acknowledged(one(), Some(Ack::Good))),
            ],
            State::CompletedSuccess,
        ),
        story("deposited", deposit(), vec![(0, finalized(Finalized::Good, None))], State::CompletedSuccess),
        story(
            "deposited, the call failed",
            deposit(),
            vec![(0, finalized(Finalized::HookFailed("hook failed; x".to_owned()), None))],
            State::CompletedError,
        ),
        story(
            "a deposit that is given back, not claimed",
            deposit(),
            vec![(0, not_credited()), (1, output(5, Some(1))), (1, output(6, None)), (1, output(9, Some(1)))],
            State::PendingError,
        ),
        story(
            "a deposit that is given back",
            deposit(),
            vec![
                (0, not_credited()),
                (1, output(5, Some(1))),
                (1, Observation::Claimed { sequence: 3, at: Some(seen("l1", 50)) }),
            ],
            State::CompletedError,
        ),
        story(
            "withdrawn, its output deleted",
            ObservedHop::Withdrawal(withdrawal(Relation::Start)),
            vec![(0, output(5, Some(1))), (0, output(6, None))],
            State::Pending,
        ),
        story(
            "withdrawn and claimed",
            ObservedHop::Withdrawal(withdrawal(Relation::Start)),
            vec![
                (0, output(5, Some(1))),
                (0, Observation::Claimed { sequence: 3, at: Some(seen("l1", 50)) }),
            ],
            State::CompletedSuccess,
        ),
    ]
}

fn deposit() -> ObservedHop {
    ObservedHop::Deposit(Deposit {
        from: "l1".to_owned(),
        to: Some("l2".to_owned()),
        bridge: 1,
        l1_sequence: 7,
        l1_denom: "uinit".to_owned(),
        l2_denom: "l2/x".to_owned(),
        amount: "1".to_owned(),
        wrapper: None,
        sent: seen("l1", 1),
        finalized: None,
    })
}

fn finalized(how: Finalized, refund: Option<ObservedHop>) -> Observation {
    Observation::Finalized { sequence: 7, at: seen("l2", 4), how, next: refund.into_iter().collect() }
}

fn not_credited() -> Observation {
    let refund = ObservedHop::Withdrawal(withdrawal(Relation::Refund));
    finalized(Finalized::DepositFailed("deposit failed; x".to_owned()), Some(refund))
}

fn withdrawal(link: Relation) -> Withdrawal {
    Withdrawal {
        from: "l2".to_owned(),
        to: Some(("l1".to_owned(), 1)),
        link,
        l2_sequence: 3,
        sender: "init1".to_owned(),
        receiver: "init1".to_owned(),
        l2_denom: "l2/x".to_owned(),
        l1_denom: "uinit".to_owned(),
        amount: "1".to_owned(),
        finalization_seconds: 1,
        sent: seen("l2", 4),
        output: None,
        output_as_of: 0,
        claimed: None,
    }
}

fn output(as_of: u64, index: Option<u64>) -> Observation {
    let output = index.map(|index| Output { index, tx: seen("l1", as_of), claimable_at: Some(2_000) });
    Observation::Output { sequence: 3, as_of, output }
}

/// Applies the facts in this order, repeatedly until none is new.
fn tell(transfer: &mut Transfer, facts: &[&(usize, Observation)]) {
    while facts.iter().filter(|(at, fact)| transfer.observe(*at, fact, 0)).count() > 0 {}
}

fn rank(state: State) -> u8 {
    match state {
        State::Submitted => 0,
        State::Pending => 1,
        State::PendingError => 2,
        State::CompletedSuccess | State::CompletedError | State::Abandoned => 3,
    }
}

#[test]
fn every_story_has_its_expected_end() {
    for story in stories() {
        let mut transfer = Transfer::new(Some(story.begin), 0);
        tell(&mut transfer, &story.facts.iter().collect::<Vec<_>>());
        assert_eq!(transfer.state(), story.state, "{}", story.name);
        // A final end has no open query; every other state has one.
        let is_open = transfer.hops.iter().any(|hop| !open_queries(hop, 5_000).is_empty());
        assert!(is_open || transfer.is_settled(), "{}", story.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn facts_lead_to_the_same_end_in_any_order(
        story in 0..stories().len(),
        picks in prop::collection::vec(0..16_usize, 0..40),
    ) {
        let story = stories().swap_remove(story);
        let mut straight = Transfer::new(Some(story.begin.clone()), 0);
        tell(&mut straight, &story.facts.iter().collect::<Vec<_>>());

        let mut other = Transfer::new(Some(story.begin), 0);
        let mut before = other.state();
        let mut order: Vec<_> = Vec::new();
        for pick in picks {
            let Some(fact) = story.facts.get(pick) else { continue };
            other.observe(fact.0, &fact.1, 0);
            order.insert(pick % (order.len() + 1), fact);
            let state = other.state();
            prop_assert!(rank(before) < rank(state) || before == state, "{}: {before:?} became {state:?}", story.name);
            before = state;
        }
        order.extend(&story.facts);
        tell(&mut other, &order);
        prop_assert_eq!(&other, &straight, "{}", story.name);
        prop_assert_eq!(other.state(), story.state);
    }

    #[test]
    fn later_facts_do_not_change_an_end(
        picks in prop::collection::vec((0..2_usize, 0..64_usize), 1..40),
    ) {
        // Facts of all stories about packets together contradict each other in every way.
        let mut facts: Vec<_> = about_a_packet().into_iter().map(|(_, fact)| fact).collect();
        facts.extend(stories().into_iter().flat_map(|story| story.facts).map(|(_, fact)| fact));
        let mut transfer = Transfer::new(Some(hop(forwarding(1), Relation::Start, 1)), 0);
        let mut ended = None;
        for (at, pick) in picks {
            transfer.observe(at, &facts[pick % facts.len()], 0);
            let state = transfer.state();
            if let Some(ended) = ended {
                prop_assert_eq!(state, ended);
            }
            ended = ended.or(state.is_final().then_some(state));
        }
    }
}
