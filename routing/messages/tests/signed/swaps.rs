//! Swaps: our messages compared with each recorded one, and what is refused.

use std::fs::File;
use std::io::{BufRead, BufReader};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::U256;
use messages::{BuildError, BuildRequest, Msg, Tx, transactions};
use planner::swap::{Exact, PoolKind, Swap, SwapLeg, SwapPart};
use planner::{Hop, Plan, Step};
use registry::{Facts, Registry};
use serde_json::{Value, json};

const DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testing/recordings/l1-l2-swaps");
const L1: &str = "swap-l1-1";
const L2: &str = "swap-l2-1";
const ADAPTER: &str = "0x00000000000000000000000003224960d8df3d8c41ba48390cc7acdd36abe322";
const USER: &str = "init1r9f38j5ljez0galegsmezv74a4cs92da3hr5cu";
const OTHER: &str = "init15jh90w7x0skwsdqqlpln90dcccj6pyv9h4wete";
/// INIT of the bridge, and the same back on the L1.
const OP_INIT: &str = "l2/771d639f30fbe45e3fbca954ffbe2fcc26f915f5513c67a4a2d0bc1d635bdefd";
const BACK: &str = "ibc/82EB1C694C571F954E68BFD68CFCFCD6123B0EBB69AAA8BAB7A082939B45E802";
const VOUCHER: &str = "ibc/37A3FB4FED4CA04ED6D9E5DA36C6D27248645F0E22F585576A1488B8A89C5A50";
const WRAPPER: &str = "0x39Ae2f9473457F340D8D9CD1ce114DCfBf39cA90";
const WRAPPED: &str = "evm/1EBEB4AA9d6b7ad48E093A336FEb6C17358250e2";
const POOL: &str = "move/3da49084613ad8687beec1ff4e57824abb6d361a10e5acb22e3065744c31e86e";
const FIVE_MINUTES: u64 = 300_000_000_000;

/// The recorded registry with members of the venue, its last part.
fn registry_with(venue: &str) -> Registry {
    let file = |name: &str| std::fs::read_to_string(format!("{DIR}/registry/{name}.toml")).unwrap();
    registry::load_text(&[&file("assets"), &file("bridges"), &file("chains"), venue].join("\n")).unwrap()
}

fn registry() -> Registry {
    registry_with("")
}

fn lines(chain: &str, file: &str) -> impl Iterator<Item = Value> {
    let file = File::open(format!("{DIR}/{chain}/{file}.ndjson.zst")).unwrap();
    let lines = BufReader::new(zstd::Decoder::new(file).unwrap()).lines();
    lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap())
}

/// The recorded messages of a chain of one type.
fn recorded(chain: &str, kind: &str) -> Vec<Value> {
    let txs =
        lines(chain, "blocks").flat_map(|block| block["rest_txs"].as_array().cloned().unwrap_or_default());
    let messages = txs.flat_map(|tx| tx["body"]["messages"].as_array().cloned().unwrap_or_default());
    messages.filter(|message| message["@type"] == kind).collect()
}

/// The arguments of a call, BCS.
fn arguments(call: &Value) -> Vec<Vec<u8>> {
    call["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|arg| STANDARD.decode(arg.as_str().unwrap()).unwrap())
        .collect()
}

fn read<T: for<'a> serde::Deserialize<'a>>(bytes: &[u8]) -> T {
    bcs::from_bytes(bytes).unwrap()
}

struct Case {
    registry: Registry,
    /// On the chain's list of hooks.
    adapter: Option<&'static str>,
    swap: Swap,
    hops: Vec<Hop>,
    now: u64,
    slippage: &'static str,
}

impl Case {
    fn new(exact: Exact, parts: Vec<SwapPart>) -> Self {
        let swap = Swap { exact, parts, price_impact_percent: None };
        Self { registry: registry(), adapter: Some(ADAPTER), swap, hops: Vec::new(), now: 1, slippage: "0" }
    }

    fn hop(
        &mut self,
        step: Step,
        from: (&str, &str),
        to: (&str, &str),
        amount_in: u64,
        amount_out: u64,
    ) -> Option<()> {
        let asset = |(chain, denom)| self.registry.asset(self.registry.chain(chain)?, denom);
        let (amount_in, amount_out) = (U256::from(amount_in), U256::from(amount_out));
        self.hops.push(Hop {
            step,
            from: asset(from)?,
            to: asset(to)?,
            amount_in,
            amount_out,
            tx: 0,
            seconds: 1,
        });
        Some(())
    }

    /// The hop of the swap itself.
    fn swap(&mut self) -> Option<(String, u64)> {
        let sum = |of: fn(&SwapPart) -> u64| self.swap.parts.iter().map(of).sum();
        let (amount_in, amount_out) = (sum(SwapPart::amount_in), sum(SwapPart::amount_out));
        let legs = &self.swap.parts[0].legs;
        let (first, last) = (legs[0].denom_in.clone(), legs.last()?.denom_out.clone());
        self.hop(Step::Swap, (L1, &first), (L1, &last), amount_in, amount_out)?;
        Some((last, amount_out))
    }

    fn channel(&self) -> Step {
        let l1 = self.registry.chain(L1).unwrap();
        Step::Ibc { channel: self.registry.channel_at(l1, "transfer", "channel-0").unwrap() }
    }

    fn bridge(&self) -> Step {
        Step::Deposit { bridge: self.registry.bridge_of(self.registry.chain(L1).unwrap(), 1).unwrap() }
    }

    fn make(&self, addresses: &[&str]) -> Result<Vec<Msg>, BuildError> {
        let addresses: Vec<String> = addresses.iter().map(|&address| address.to_owned()).collect();
        let mut facts = Facts::default();
        facts.hooks.insert(L2.to_owned(), true);
        facts.adapters.extend(self.adapter.map(|adapter| (L1.to_owned(), adapter.to_owned())));
        let made = transactions(&BuildRequest {
            registry: &self.registry,
            facts: &facts,
            plan: &Plan { hops: self.hops.clone(), swap: Some(self.swap.clone()) },
            addresses: &addresses,
            now_nanos: self.now,
            timeout_seconds: 300,
            slippage_percent: self.slippage,
            signed_hook: None,
        })?;
        let [Tx::Cosmos { msgs, .. }] = made.txs.as_slice() else { panic!("{:?}", made.txs) };
        Ok(msgs.clone())
    }

    fn msgs(&self, addresses: &[&str]) -> Vec<Value> {
        let made = self.make(addresses).unwrap();
        made.iter().map(|msg| serde_json::from_str(&msg.msg).unwrap()).collect()
    }
}

fn leg(kind: PoolKind, pool: &str, ends: (&str, &str), amount_in: u64, amount_out: u64) -> SwapLeg {
    let (denom_in, denom_out) = (ends.0.to_owned(), ends.1.to_owned());
    SwapLeg { kind, pool: pool.to_owned(), denom_in, denom_out, amount_in, amount_out }
}

fn dex(amount_in: u64, amount_out: u64) -> SwapPart {
    SwapPart { legs: vec![leg(PoolKind::Weighted, POOL, ("uusdc", "uinit"), amount_in, amount_out)] }
}

/// The denomination of a metadata object.
fn denom(object: &[u8]) -> Option<String> {
    let registry = registry();
    let l1 = registry.chain(L1).unwrap();
    let of_l1 =
        registry.assets().filter(|(_, asset)| asset.chain == l1).map(|(_, asset)| asset.denom.clone());
    of_l1.into_iter().find(|denom| registry::denom::metadata(denom) == *object)
}

/// What a recorded call of a pool swapped; none if it names no minimum or coins that are not there.
fn of_pool(call: &Value) -> Option<SwapLeg> {
    let args = arguments(call);
    let (kind, pool, coins) = match call["module_name"].as_str()? {
        "dex" => (PoolKind::Weighted, &args[0], &args[1..2]),
        "stableswap" => (PoolKind::Stable, &args[0], &args[1..3]),
        "minitswap" => (PoolKind::Minitswap, &args[0], &args[0..2]),
        _ => return None,
    };
    let [.., amount, least] = args.as_slice() else { return None };
    let offered = denom(&coins[0])?;
    // A weighted pool returns the coin that was not offered.
    let returned = match coins.get(1) {
        Some(coin) => denom(coin)?,
        None => if offered == "uinit" { "uusdc" } else { "uinit" }.to_owned(),
    };
    let (amount_in, amount_out) =
        (read::<u64>(amount), read::<Option<u64>>(least).filter(|least| *least > 0)?);
    let pool = format!("move/{}", hex::encode(pool));
    (amount_in > 0 && offered != returned)
        .then(|| leg(kind, &pool, (&offered, &returned), amount_in, amount_out))
}

#[test]
fn recorded_calls_of_pools_equal_ours() {
    let mut compared = 0;
    for call in recorded("l1", "/initia.move.v1.MsgExecute") {
        if !["swap_script", "swap"].contains(&call["function_name"].as_str().unwrap()) {
            continue;
        }
        let Some(leg) = of_pool(&call) else { continue };
        let mut case = Case::new(Exact::In, vec![SwapPart { legs: vec![leg] }]);
        case.swap().unwrap();
        let sender = call["sender"].as_str().unwrap();
        let mut wanted = call.clone();
        wanted.as_object_mut().unwrap().remove("@type");
        assert_eq!(case.msgs(&[sender, sender]), [wanted]);
        compared += 1;
    }
    assert!(compared >= 10, "{compared}");
}

/// The plan of a recorded call of the adapter from hops before it; none for what no route does.
fn of_adapter(call: &Value, packet: Option<u64>) -> Option<(Case, String)> {
    if !call["function_name"].as_str()?.starts_with("swap_and_action") {
        return None;
    }
    let args = arguments(call);
    let (venues, pools): (Vec<u8>, Vec<Vec<String>>) = (read(&args[0]), read(&args[4]));
    let (amount_in, amount_out): (u64, u64) = (read(&args[2]), read(&args[3]));
    let coins: Vec<Vec<String>> = read(&args[5]);
    let exact = if read::<u8>(&args[1]) == 0 { Exact::In } else { Exact::Out };
    let is_plain = pools.iter().all(|pools| pools.len() == 1) && amount_out > 0;
    if !is_plain
        || (packet.is_some() && exact == Exact::Out)
        || packet.is_some_and(|packet| packet != amount_in)
    {
        return None;
    }
    let legs = venues.iter().enumerate().map(|(at, venue)| {
        let kind = [PoolKind::Weighted, PoolKind::Stable, PoolKind::Minitswap].get(usize::from(*venue))?;
        let offered = if at == 0 { amount_in } else { amount_out };
        Some(leg(*kind, &pools[at][0], (&coins[at][0], &coins[at][1]), offered, amount_out))
    });
    let mut case = Case::new(exact, vec![SwapPart { legs: legs.collect::<Option<_>>()? }]);
    case.now = read::<u64>(&args[7]).checked_sub(FIVE_MINUTES)?;
    if packet.is_some() {
        case.hop(case.channel(), (L2, OP_INIT), (L1, BACK), amount_in, amount_in)?;
    }
    let (coin, amount) = case.swap()?;
    let action: Vec<Vec<u8>> = read(&args[9]);
    let receiver: String = match read::<u8>(&args[6]) {
        0 => read(&action[0]),
        1 if read::<String>(&action[0]) == "channel-0" && read::<String>(&action[2]).is_empty() => {
            let path = if coin == BACK {
                OP_INIT
            } else if coin == "uinit" {
                VOUCHER
            } else {
                return None;
            };
            case.hop(case.channel(), (L1, &coin), (L2, path), amount, amount)?;
            read(&action[1])
        }
        3 if read::<u64>(&action[0]) == 1 && read::<Vec<u8>>(&action[2]).is_empty() => {
            let to = registry::denom::bridged(1, &coin);
            case.hop(case.bridge(), (L1, &coin), (L2, &to), amount, amount)?;
            read(&action[1])
        }
        _ => return None,
    };
    chain::Account::from_bech32(&receiver, "init").map(|_| (case, receiver))
}

/// Compares the arguments; the recover address is free.
fn assert_equal(ours: &Value, recorded: &Value) {
    let (ours, recorded) = (arguments(ours), arguments(recorded));
    for (at, (ours, recorded)) in ours.iter().zip(&recorded).enumerate() {
        if at != 8 {
            assert_eq!(ours, recorded, "argument {at}");
        }
    }
    assert_eq!(ours.len(), recorded.len());
}

#[test]
fn recorded_calls_of_the_adapter_equal_ours() {
    let (mut compared, mut actions) = (0, [0; 4]);
    for call in recorded("l1", "/initia.move.v1.MsgExecute") {
        if call["module_name"] != "entry_point" {
            continue;
        }
        let Some((case, receiver)) = of_adapter(&call, None) else { continue };
        let sender = call["sender"].as_str().unwrap();
        let action = usize::from(read::<u8>(&arguments(&call)[6]));
        let ours = case.msgs(&[sender, &receiver]);
        if case.hops.len() == 1
            && case.swap.parts[0].legs.len() == 1
            && receiver == sender
            && case.swap.exact == Exact::In
        {
            assert_eq!(ours[0]["module_address"], "0x1", "a pool is called directly");
            continue;
        }
        assert_equal(&ours[0], &call);
        let function =
            if case.swap.exact == Exact::In { "swap_and_action_with_recover" } else { "swap_and_action" };
        assert_eq!(ours[0]["function_name"], function);
        assert_eq!(ours[0]["module_address"], ADAPTER);
        let recover: String = read(&arguments(&ours[0])[8]);
        assert_eq!(recover, sender);
        (compared, actions[action]) = (compared + 1, actions[action] + 1);
    }
    assert!(compared >= 12 && actions[1] > 0 && actions[3] > 0, "{compared} {actions:?}");
}

#[test]
fn recorded_packets_that_swap_on_arrival_equal_ours() {
    let (mut compared, mut whole) = (0, 0);
    for sent in recorded("l2", "/ibc.applications.transfer.v1.MsgTransfer") {
        let memo: Value = serde_json::from_str(sent["memo"].as_str().unwrap()).unwrap_or_default();
        let call = &memo["move"]["message"];
        let amount = sent["token"]["amount"].as_str().unwrap().parse().unwrap();
        if call.is_null() {
            continue;
        }
        let Some((case, receiver)) = of_adapter(call, Some(amount)) else { continue };
        let ours = case.msgs(&[sent["sender"].as_str().unwrap(), &receiver]);
        let text = ours[0]["memo"].as_str().unwrap();
        let of_memo: Value = serde_json::from_str(text).unwrap();
        assert_equal(&of_memo["move"]["message"], call);
        for member in ["source_port", "source_channel", "token", "sender"] {
            assert_eq!(ours[0][member], sent[member], "{member}");
        }
        compared += 1;
        let is_recovered_by_sender = arguments(&of_memo["move"]["message"])[8] == arguments(call)[8];
        if call["function_name"] == "swap_and_action_with_recover" && is_recovered_by_sender {
            assert_eq!((text, &ours[0]["receiver"]), (sent["memo"].as_str().unwrap(), &sent["receiver"]));
            whole += 1;
        }
    }
    assert!(compared >= 8 && whole > 0, "{compared} {whole}");
}

#[test]
fn arguments_of_post_actions_equal_those_that_the_adapter_packs() {
    let packed = |function: &str| {
        let found =
            lines("l1", "extra").find(|line| line["path"].as_str().unwrap_or_default().ends_with(function));
        let found = found.unwrap();
        let answer: Vec<String> = serde_json::from_str(found["answer"]["data"].as_str().unwrap()).unwrap();
        answer
    };
    let ours = |case: &Case| -> Vec<String> {
        let action: Vec<Vec<u8>> = read(&arguments(&case.msgs(&[OTHER, USER])[0])[9]);
        action.iter().map(hex::encode).collect()
    };
    let mut case = Case::new(Exact::In, vec![dex(100, 50)]);
    case.swap().unwrap();
    assert_eq!(ours(&case), packed("pack_action_transfer_args"));
    case.hop(case.bridge(), (L1, "uinit"), (L2, OP_INIT), 50, 50).unwrap();
    assert_eq!(ours(&case), packed("pack_action_opbridge_args"));
    case.hops.pop();
    case.hop(case.channel(), (L1, "uinit"), (L2, VOUCHER), 50, 50).unwrap();
    assert_eq!(ours(&case), packed("pack_action_ibctransfer_args"));
}

#[test]
fn a_wrapped_token_is_unwrapped_sent_and_swapped_by_one_call_of_the_wrapper() {
    let legs = vec![leg(PoolKind::Minitswap, BACK, (BACK, "uinit"), 44_000_000, 41_655_228)];
    let mut case = Case::new(Exact::In, vec![SwapPart { legs }]);
    case.slippage = "1";
    let (whole, units) = (U256::from(44_000_000_000_000_000_000u128), 44_000_000);
    case.hop(Step::Unwrap, (L2, WRAPPED), (L2, OP_INIT), 0, units).unwrap();
    case.hops[0].amount_in = whole;
    case.hop(case.channel(), (L2, OP_INIT), (L1, BACK), units, units).unwrap();
    case.swap().unwrap();
    let msgs = case.msgs(&[USER, USER]);
    let input = msgs.last().unwrap()["input"].as_str().unwrap().to_owned();
    let text = String::from_utf8_lossy(
        &(1..input.len() / 2)
            .map(|at| u8::from_str_radix(&input[2 * at..2 * at + 2], 16).unwrap())
            .collect::<Vec<_>>(),
    )
    .into_owned();
    assert!(text.contains(r#"{"move":{"message":{"args":["#) && text.contains("channel-0"), "{text}");
    let least = STANDARD.encode(41_238_676u64.to_le_bytes());
    assert!(text.contains(&least), "a minimum of 99 %, rounded up");
}

#[test]
fn the_rollup_wraps_whatever_a_swap_gave() {
    let mut case = Case::new(Exact::In, vec![dex(1_000_000, 7_000_000)]);
    case.swap().unwrap();
    case.hop(case.channel(), (L1, BACK), (L2, OP_INIT), 7_000_000, 7_000_000).unwrap();
    case.hop(Step::Wrap, (L2, OP_INIT), (L2, WRAPPED), 7_000_000, 0).unwrap();
    case.hops[2].amount_out = U256::from(7_000_000_000_000_000_000u64);
    case.swap.parts[0].legs[0].denom_out = BACK.to_owned();
    case.hops[0].to = case.hops[1].from;
    let msgs = case.msgs(&[USER, USER]);
    let action: Vec<Vec<u8>> = read(&arguments(&msgs[0])[9]);
    let (receiver, memo): (String, String) = (read(&action[1]), read(&action[2]));
    let memo: Value = serde_json::from_str(&memo).unwrap();
    assert_eq!(receiver, WRAPPER);
    // `toLocal(address,string,uint8)`, which has no amount.
    assert!(memo["evm"]["message"]["input"].as_str().unwrap().starts_with("0x701dcf21"), "{memo}");
}

#[test]
fn shares_of_a_swap_are_messages_of_their_own_with_their_own_minimum() {
    let mut case = Case::new(Exact::In, vec![dex(100, 1_000), dex(50, 333)]);
    case.slippage = "0.5";
    case.swap().unwrap();
    let msgs = case.msgs(&[USER, USER]);
    let least: Vec<Option<u64>> = msgs.iter().map(|msg| read(arguments(msg).last().unwrap())).collect();
    assert_eq!(least, [Some(995), Some(332)]);
}

#[test]
fn a_swap_without_a_minimum_or_with_other_pools_than_its_hop_is_refused() {
    let refusal = |case: &Case| case.make(&[USER, USER]).unwrap_err().to_string();
    let mut case = Case::new(Exact::In, vec![dex(100, 50)]);
    case.swap().unwrap();
    case.slippage = "100";
    assert!(refusal(&case).contains("without a minimum"), "{}", refusal(&case));
    case.slippage = "0.5";
    let good = case.swap.clone();
    let changes: [fn(&mut Swap); 7] = [
        |swap| swap.parts.clear(),
        |swap| swap.parts[0].legs.clear(),
        |swap| swap.parts[0].legs[0].amount_in = 99,
        |swap| swap.parts[0].legs[0].amount_out = 51,
        |swap| swap.parts[0].legs[0].denom_in = "uusdt".to_owned(),
        |swap| swap.parts[0].legs[0].denom_out = "uusdt".to_owned(),
        |swap| swap.parts.push(dex(0, 0)),
    ];
    for change in changes {
        change(&mut case.swap);
        assert!(refusal(&case).contains("do not make its swap"), "{:?}", case.swap);
        case.swap = good.clone();
    }
    case.hop(case.channel(), (L1, "uinit"), (L2, VOUCHER), 50, 50).unwrap();
    case.swap.parts = vec![dex(60, 30), dex(40, 20)];
    assert!(refusal(&case).contains("do not make its swap"));
    case.swap = good;
    let adapter = json!(case.make(&[USER, USER]).unwrap()[0].msg).to_string();
    assert!(adapter.contains("swap_and_action_with_recover"));
    case.registry = registry_with("adapter = \"0x777\"");
    let named = json!(case.make(&[USER, USER]).unwrap()[0].msg).to_string();
    assert!(named.contains("0x777") && !named.contains(ADAPTER));
    (case.registry, case.adapter) = (registry(), None);
    assert!(refusal(&case).contains("names no adapter"), "{}", refusal(&case));
}
