//! Worked responses, byte for byte: members, their order, nulls.

use chain::{Timestamp, Vm};
use registry::{
    Asset, Bridge, Builder, ChainKind, ChainRef, Channel, End, Endpoints, Origin, Registry, Terms,
};
use serde_json::json;
use tracker::Options;
use tracker::evidence::hop::{
    Ack, Coin, Deposit, Finalized, Hook, Ibc, ObservedHop, Packet, PacketId, Relation, Swap, TxRef,
    Withdrawal,
};
use tracker::evidence::state::Observation;
use tracker::evidence::transfer::Transfer;
use tracker::record::{Record, Source};
use tracker::status;

use crate::world::chain;

const L1: &str = "interwoven-1";
const ROLLUP: &str = "yominet-1";
const OTHER: &str = "echelon-1";
const BRIDGED: &str = "l2/8f73cfaf153520f511b4fc0bd71d60d64b4e19eff04a350e642718a3c1ab3b06";
const WRAPPED: &str = "evm/856aB2c9F35B9187aB3eB0Fcd11DCc6160427e96";
/// The original ONYX, and the token that the wrapper made of it.
const LOCAL: &str = "evm/4BaDFb501Ab304fF11217C44702bb9E9732E7CF4";
const REMOTE: &str = "evm/44CFAaB1cF49996540A6B6A87d1f0a604267E6b0";
const WRAPPER: &str = "0x4eb08D5c1B0A821303A86C7b3AC805c2793dE783";

pub(crate) fn asset(chain: ChainRef, denom: &str, decimals: u8, origin: Origin) -> Asset {
    Asset {
        chain,
        denom: denom.to_owned(),
        symbol: "TOK".to_owned(),
        name: None,
        decimals,
        contract: None,
        logo_uri: None,
        description: None,
        coingecko_id: None,
        price_usd: None,
        hidden: false,
        origin,
        terms: Terms::default(),
    }
}

fn registry() -> Registry {
    let mut builder = Builder::new();
    let mut add = |id: &str, vm| {
        let mut chain = chain(id, ChainKind::Cosmos, vm, Endpoints::default());
        chain.explorer_tx = Some(format!("https://scan.initia.xyz/{id}/txs/${{txHash}}"));
        builder.chain(chain).unwrap()
    };
    let (l1, rollup, other) = (add(L1, Vm::Move), add(ROLLUP, Vm::Evm), add(OTHER, Vm::Move));
    let end = |chain, channel: &str| End { chain, port: "transfer".to_owned(), channel: channel.to_owned() };
    let channel =
        Channel { a: end(l1, "channel-16"), b: end(other, "channel-0"), paused: None, seconds: None };
    builder.channel(channel).unwrap();
    let bridge = Bridge {
        id: 11,
        l1,
        l2: rollup,
        paused: None,
        deposit_seconds: None,
        finalization_seconds: 604_800,
        submission_seconds: 3_600,
        migrated: Vec::new(),
    };
    let bridge = builder.bridge(bridge).unwrap();
    let init = builder.asset(asset(l1, "uinit", 6, Origin::Native)).unwrap();
    let bridged = builder.asset(asset(rollup, BRIDGED, 6, Origin::Bridged { bridge, parent: init })).unwrap();
    let wrapped = Origin::Wrapped { contract: WRAPPER.to_owned(), parent: bridged };
    builder.asset(asset(rollup, WRAPPED, 18, wrapped)).unwrap();
    let local = builder.asset(asset(rollup, LOCAL, 18, Origin::Native)).unwrap();
    let wrapped = Origin::Wrapped { contract: WRAPPER.to_owned(), parent: local };
    builder.asset(asset(rollup, REMOTE, 6, wrapped)).unwrap();
    builder.finish("test".to_owned())
}

const SENT: &str = "87782A6A7C4EF4232FFC5B7C8204398AE73870049D8DC58E0146EFCAC3901979";
const RECEIVED: &str = "2F0C6B0B6E0D3A0F4B61A7C5E7D9B1A3C5D7E9F1A2B4C6D8E0F1A3B5C7D9E1F3";
const RETURNED: &str = "9B8A7C6D5E4F3A2B1C0D9E8F7A6B5C4D3E2F1A0B9C8D7E6F5A4B3C2D1E0F9A8B";

fn time(text: &str) -> i64 {
    Timestamp::parse(text).unwrap().unix_nanos()
}

fn seen(chain: &str, hash: &str, at: &str) -> TxRef {
    TxRef { chain: chain.to_owned(), hash: Some(hash.to_owned()), height: 7, time: Some(time(at)) }
}

fn sent() -> TxRef {
    seen(L1, SENT, "2026-01-15T08:00:02Z")
}

fn deposit() -> ObservedHop {
    ObservedHop::Deposit(Deposit {
        from: L1.to_owned(),
        to: Some(ROLLUP.to_owned()),
        bridge: 11,
        l1_sequence: 5123,
        l1_denom: "uinit".to_owned(),
        l2_denom: BRIDGED.to_owned(),
        amount: "1000000".to_owned(),
        wrapper: Some(WRAPPER.to_owned()),
        sent: sent(),
        finalized: None,
    })
}

fn packet_id() -> PacketId {
    PacketId {
        chain: L1.to_owned(),
        port: "transfer".to_owned(),
        channel: "channel-16".to_owned(),
        sequence: 9,
    }
}

fn ibc() -> ObservedHop {
    let packet = Packet {
        id: packet_id(),
        to: Some(OTHER.to_owned()),
        dst_port: "transfer".to_owned(),
        dst_channel: "channel-0".to_owned(),
        timeout_nanos: 1_800_000_000_000_000_000,
        timeout_height: 0,
        denom: "uinit".to_owned(),
        amount: "1000000".to_owned(),
        sender: "init1pyq6amga29zfsldw8k26kgvl7a0fhf3kftflmr".to_owned(),
        forward: None,
        hook: None,
    };
    ObservedHop::Ibc(Ibc {
        packet,
        link: Relation::Start,
        sent: sent(),
        received: None,
        acknowledged: None,
        timed_out: None,
        ack: None,
        expired: false,
        refund: None,
    })
}

fn refused() -> Observation {
    let message = "ABCI code: 1: error handling packet: see events for details".to_owned();
    Observation::Received {
        packet: packet_id(),
        at: seen(OTHER, RECEIVED, "2026-01-15T08:00:11Z"),
        ack: Some(Ack::Error { message, reason: None }),
        next: Vec::new(),
    }
}

fn returned() -> Observation {
    let at = seen(L1, RETURNED, "2026-01-15T08:00:19Z");
    Observation::Acknowledged { packet: packet_id(), at, ack: None }
}

fn executed(hop: ObservedHop, observations: &[Observation]) -> Record {
    let begin = time("2026-01-15T08:00:03Z");
    let mut record = Record::new(L1, SENT, begin);
    record.source = Source::Executed { tx: sent(), is_final: true };
    let mut transfer = Transfer::new(Some(hop), begin);
    for observation in observations {
        assert!(transfer.observe(0, observation, begin));
    }
    record.transfers.push(transfer);
    record
}

/// JSON text without its white space.
fn compact(text: &str) -> String {
    let (mut is_inside, mut is_escaped) = (false, false);
    let keep = |c: &char| {
        let keep = is_inside || !c.is_whitespace();
        if *c == '"' && !is_escaped {
            is_inside = !is_inside;
        }
        is_escaped = *c == '\\' && !is_escaped;
        keep
    };
    text.chars().filter(keep).collect()
}

fn check(name: &str, record: &Record) {
    let path = format!("{}/tests/goldens/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let golden = compact(&std::fs::read_to_string(path).unwrap());
    let json = status::json(record, &registry(), time("2026-01-15T09:00:00Z")).unwrap();
    assert_eq!(String::from_utf8(json).unwrap(), golden, "{name}");
}

#[test]
fn a_newly_registered_transaction_is_submitted() {
    check("submitted", &Record::new(L1, SENT, time("2026-01-15T08:00:00Z")));
}

#[test]
fn a_deposit_is_sent_and_then_completed_with_the_token_that_its_hook_made() {
    check("sent", &executed(deposit(), &[]));
    let done = Observation::Finalized {
        sequence: 5123,
        at: seen(ROLLUP, RECEIVED, "2026-01-15T08:00:21Z"),
        how: Finalized::Good,
        next: Vec::new(),
    };
    check("done", &executed(deposit(), &[done]));
}

#[test]
fn a_reversed_pair_releases_the_token_that_the_wrapper_did_not_make() {
    let release = |hop, observations: &[Observation]| {
        let json = status::json(&executed(hop, observations), &registry(), 0).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        json["transfer_asset_release"].clone()
    };
    let expected = json!({
        "chain_id": ROLLUP, "denom": LOCAL, "amount": "1500000000000000000", "released": true,
    });
    let onyx = |id: PacketId, to: &str, dst: &str, denom: &str| {
        let ObservedHop::Ibc(mut hop) = ibc() else { panic!("it is a packet") };
        (hop.packet.id, hop.packet.to, hop.packet.dst_channel) = (id, Some(to.to_owned()), dst.to_owned());
        (hop.packet.denom, hop.packet.amount) = (denom.to_owned(), "1500000".to_owned());
        hop
    };
    // From the L1, with a call of the wrapper.
    let id = PacketId { channel: "channel-25".to_owned(), ..packet_id() };
    let mut home = onyx(id.clone(), ROLLUP, "channel-0", &format!("transfer/channel-25/{REMOTE}"));
    home.packet.hook = Some(Hook { contract: Some(WRAPPER.to_lowercase()) });
    let received = Observation::Received {
        packet: id,
        at: seen(ROLLUP, RECEIVED, "2026-01-15T08:00:11Z"),
        ack: Some(Ack::Good),
        next: Vec::new(),
    };
    assert_eq!(release(ObservedHop::Ibc(home), &[received]), expected);
    // To the L1, sent by the wrapper, and refused there.
    let id = PacketId { chain: ROLLUP.to_owned(), channel: "channel-0".to_owned(), ..packet_id() };
    let mut out = onyx(id.clone(), L1, "channel-25", REMOTE);
    out.packet.sender = "init1f6cg6hqmp2ppxqagd3an4jq9cfunmeurksxhh9".to_owned();
    let refused = Observation::Received {
        packet: id.clone(),
        at: seen(L1, RECEIVED, "2026-01-15T08:00:11Z"),
        ack: Some(Ack::Error { message: "no".to_owned(), reason: None }),
        next: Vec::new(),
    };
    let at = seen(ROLLUP, RETURNED, "2026-01-15T08:00:19Z");
    let returned = Observation::Acknowledged { packet: id, at, ack: None };
    assert_eq!(release(ObservedHop::Ibc(out), &[refused, returned]), expected);
}

fn part(denom: &str, amount: &str) -> Transfer {
    let coin = |denom: &str, amount: &str| Coin {
        metadata: format!("0x{:064}", 1),
        denom: Some(denom.to_owned()),
        amount: amount.to_owned(),
    };
    let swap = Swap {
        chain: L1.to_owned(),
        link: Relation::Start,
        offered: coin("uinit", "10"),
        outcome: Ok(coin(denom, amount)),
        called: false,
        sent: sent(),
    };
    Transfer::new(Some(ObservedHop::Swap(swap)), 0)
}

fn rendered(transfers: Vec<Transfer>) -> serde_json::Value {
    let mut record = executed(deposit(), &[]);
    record.transfers = transfers;
    serde_json::from_slice(&status::json(&record, &registry(), 0).unwrap()).unwrap()
}

#[test]
fn the_parts_of_a_split_swap_have_one_release_with_their_sum() {
    let split = rendered(vec![part("uusdc", "5"), part("uusdc", "7")]);
    let expected = |amount| json!({ "chain_id": L1, "denom": "uusdc", "amount": amount, "released": true });
    assert_eq!(split["transfer_asset_release"], expected("12"));
    assert_eq!(split["transfers"][1]["transfer_asset_release"], expected("7"));
    // Two swaps to other tokens have no sum.
    let two = rendered(vec![part("uusdc", "5"), part("uusdt", "7")]);
    assert_eq!(two["transfer_asset_release"], expected("5"));
}

#[test]
fn a_refund_to_the_account_of_a_call_names_who_can_use_it() {
    let ObservedHop::Ibc(mut packet) = ibc() else { panic!("it is a packet") };
    packet.packet.id = PacketId { chain: ROLLUP.to_owned(), channel: "channel-0".to_owned(), ..packet_id() };
    (packet.packet.to, packet.packet.dst_channel) = (Some(L1.to_owned()), "channel-25".to_owned());
    (packet.received, packet.ack) = (Some(sent()), Some(Ack::Good));
    let caller = registry::intermediary::hook_caller(Vm::Move, "channel-25", &packet.packet.sender).unwrap();
    let ObservedHop::Deposit(mut refused) = deposit() else { panic!("it is a deposit") };
    refused.finalized =
        Some((sent(), Finalized::DepositFailed("deposit failed; no such account".to_owned())));
    let status = |receiver: String| {
        let refund = Withdrawal {
            from: ROLLUP.to_owned(),
            to: Some((L1.to_owned(), 11)),
            link: Relation::Refund,
            l2_sequence: 3,
            sender: "x".to_owned(),
            receiver,
            l2_denom: BRIDGED.to_owned(),
            l1_denom: "uinit".to_owned(),
            amount: "1000000".to_owned(),
            finalization_seconds: 604_800,
            sent: sent(),
            output: None,
            output_as_of: 0,
            claimed: None,
        };
        let hops = [
            ObservedHop::Ibc(packet.clone()),
            ObservedHop::Deposit(refused.clone()),
            ObservedHop::Withdrawal(refund),
        ];
        rendered(vec![Transfer::new(hops, 0)])
    };
    let keyless = status(caller.to_bech32("init"));
    assert_eq!(keyless["state"], "STATE_PENDING_ERROR");
    let message = keyless["error"]["message"].as_str().unwrap();
    let why = format!("only another packet of {} over channel-0 can use them", packet.packet.sender);
    assert!(message.contains("has no key") && message.ends_with(&why), "{message}");
    // The sender's own account has a key.
    assert!(status(packet.packet.sender.clone())["error"].is_null());
}

#[test]
fn a_refused_packet_is_in_error_until_its_sender_has_the_tokens_back() {
    check("error-on-its-way", &executed(ibc(), &[refused()]));
    check("error-settled", &executed(ibc(), &[refused(), returned()]));
}

#[test]
fn a_failed_transaction_has_its_reason() {
    let mut record = Record::new(L1, SENT, 0);
    let message = "out of gas in location: WriteFlat; gasWanted: 200000, gasUsed: 259553: out of gas";
    record.source = Source::Failed { code: Some(11), message: message.to_owned() };
    check("source-failed", &record);
}

#[test]
fn a_transfer_without_progress_for_half_an_hour_is_abandoned() {
    let mut record = executed(deposit(), &[]);
    let begin = time("2026-01-15T08:00:03Z");
    record.schedule(begin + 1_799_999_999_999, true, &Options::default());
    check("sent", &record);
    record.schedule(begin + 1_800_000_000_000, true, &Options::default());
    check("abandoned", &record);
    assert!(record.due.is_some(), "it is still looked at");
}
