//! Memos of packets, and routes that clients send back: our memos round-trip; other memos are read according to their
//! content or rejected.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::U256;
use messages::{BuildRequest, OpHookRequest, SignedHook, Tx};
use node::{FoundEvent, TxSearchHit};
use planner::{Graph, Operation, Plan, Quotes, Request, World};
use registry::facts::Quote;
use registry::{AssetRef, ChainKind, ChainRef, Facts, OftRef, Registry};
use serde_json::{Value, json};
use tracker::evidence::hop::{ObservedHop, Packet, TxRef};

use crate::edit;
use crate::input::Input;

/// Members of memos, of packets and of operations.
pub const WORDS: &[&str] = &[
    "{\"forward\":{\"receiver\":\"pfm\",\"port\":\"transfer\",\"channel\":\"channel-3\"}}",
    "\"next\":",
    "\"retries\":",
    "{\"evm\":{\"message\":{\"contract_addr\":\"0x1\"}}}",
    "{\"move\":{\"message\":{}}}",
    "{\"wasm\":{}}",
    "\"memo\":",
    "\"denom\":",
    "\"tokenIds\":",
    "\"classId\":",
    "send_packet",
    "initiate_token_deposit",
    "initiate_token_withdrawal",
    "packet_data_hex",
    "type_tag=0x1::stableswap::SwapEvent",
    "type_tag=0x1::minitswap::SwapEvent",
    "submsg\nsuccess=false",
    "msg_index=1",
    "transfer/channel-0/",
    "null",
];

/// The chains of the worked examples.
struct Examples {
    registry: Registry,
    graph: Graph,
    facts: Facts,
    assets: Vec<AssetRef>,
    plans: Vec<(Request, Plan)>,
    /// Plans whose deposits carry a signed hook.
    hooked: Vec<(Request, Plan)>,
}

/// The quotes of a LayerZero contract.
struct Fee;

impl Quotes for Fee {
    fn quote(&self, _: OftRef, _: usize, _: usize, amount: U256) -> Option<Quote> {
        Some(Quote { received: amount, native_fee: U256::from(100) })
    }
}

static EXAMPLES: LazyLock<Examples> = LazyLock::new(|| {
    let loaded = registry::load(&testkit::root().join("routing/api/tests/mainnet")).unwrap();
    let registry = loaded.registry;
    let graph = Graph::new(&registry);
    let assets: Vec<AssetRef> = registry.assets().map(|(asset, _)| asset).collect();
    let mut facts = Facts::default();
    facts.hooks.insert("cabal-1".to_owned(), true);
    let mut examples = Examples { registry, graph, facts, assets, plans: Vec::new(), hooked: Vec::new() };
    // Plans in one transaction differ from plans in several.
    examples.plans = [false, true].into_iter().flat_map(|multi_tx| examples.plans(multi_tx)).collect();
    examples.hooked = examples.plans.iter().filter(|(_, plan)| plan.required_op_hook()).cloned().collect();
    examples
});

impl Examples {
    fn world(&self) -> World<'_> {
        World { registry: &self.registry, facts: &self.facts, quotes: &Fee }
    }

    /// The best plan between each ordered pair of assets.
    fn plans(&self, multi_tx: bool) -> Vec<(Request, Plan)> {
        let amount_in = U256::from(10_u64.pow(18));
        let of_pair = |(from, to): (AssetRef, AssetRef)| {
            let request =
                Request { from, to, amount_in, op_withdraw: false, multi_tx, op_hook: true, bridges: None };
            let plans = planner::plan(&self.graph, self.world(), &request);
            plans.unwrap_or_default().into_iter().next().map(|plan| (request, plan))
        };
        let pairs = self.assets.iter().flat_map(|from| self.assets.iter().map(|to| (*from, *to)));
        pairs.filter_map(of_pair).collect()
    }
}

/// Input: a byte for the form, and the content.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    match input.byte() % 6 {
        0 => text(input.rest()),
        1 => packet_data(input.rest()),
        2 => events(input.rest()),
        3 => ours(input),
        4 => operations(input),
        _ => signed(input),
    }
}

/// Checks a text as the memo of an otherwise valid packet.
fn text(memo: &[u8]) -> bool {
    let memo = String::from_utf8_lossy(memo);
    let data = json!({ "denom": "uinit", "amount": "5", "sender": "a", "receiver": "b", "memo": memo });
    let packet =
        sent(&send_packet("packet_data", &data.to_string())).expect("the memo does not affect the packet");
    assert_eq!((packet.denom.as_str(), packet.amount.as_str(), packet.sender.as_str()), ("uinit", "5", "a"));
    let content: Value = serde_json::from_str(&memo).unwrap_or_default();
    let channel = content["forward"]["channel"].as_str();
    assert_eq!(packet.forward.map(|forward| forward.channel).as_deref(), channel);
    let called = ["evm", "move", "wasm"].iter().any(|vm| content.get(vm).is_some());
    let contract = content["evm"]["message"]["contract_addr"].as_str();
    assert_eq!(packet.hook.is_some(), called);
    assert_eq!(packet.hook.and_then(|hook| hook.contract).as_deref(), contract);
    channel.is_some() || called
}

/// Checks bytes as packet data: the result is the same for text and for hex.
fn packet_data(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    let in_hex = sent(&send_packet("packet_data_hex", &hex::encode(text.as_bytes())));
    if !text.is_empty() {
        assert_eq!(sent(&send_packet("packet_data", &text)), in_hex);
    }
    sent(&send_packet("packet_data_hex", &text));
    in_hex.is_some()
}

/// Checks events from lines: a kind of event, or an attribute of the last event, which contains `=`.
fn events(data: &[u8]) -> bool {
    let mut events: Vec<FoundEvent> = Vec::new();
    for line in String::from_utf8_lossy(data).lines() {
        match (line.split_once('='), events.last_mut()) {
            (Some((key, value)), Some(event)) => event.attributes.push((key.to_owned(), value.to_owned())),
            _ => events.push(FoundEvent { kind: line.to_owned(), attributes: Vec::new() }),
        }
    }
    let mut started = false;
    for (chain, _) in EXAMPLES.registry.chains() {
        let hops = starts(chain, events.clone());
        // A success without any event is a step that is not understood.
        assert!(hops.len() <= events.len().max(1), "an event starts at most one transfer");
        started |= !hops.is_empty();
        for hop in hops {
            assert_eq!(hop.from(), EXAMPLES.registry[chain].id);
            assert!(hop.to().is_none_or(|to| EXAMPLES.registry.chain(to).is_some()));
            if let ObservedHop::Swap(swap) = &hop {
                for coin in swap.coins() {
                    assert!(coin.metadata.len() == 66 && U256::from_str_radix(&coin.amount, 10).is_ok());
                }
            }
        }
    }
    started
}

fn send_packet(key: &str, data: &str) -> FoundEvent {
    let attributes = [
        (key, data),
        ("packet_sequence", "7"),
        ("packet_src_port", "transfer"),
        ("packet_src_channel", "channel-0"),
        ("packet_dst_port", "transfer"),
        ("packet_dst_channel", "channel-1"),
        ("packet_timeout_timestamp", "1"),
        ("packet_timeout_height", "0-0"),
    ];
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    FoundEvent { kind: "send_packet".to_owned(), attributes: attributes.map(owned).to_vec() }
}

/// The packet of an event.
fn sent(event: &FoundEvent) -> Option<Packet> {
    let (chain, _) = EXAMPLES.registry.chains().next().unwrap();
    match starts(chain, vec![event.clone()]).pop() {
        Some(ObservedHop::Ibc(ibc)) => Some(ibc.packet),
        _ => None,
    }
}

fn starts(chain: ChainRef, events: Vec<FoundEvent>) -> Vec<ObservedHop> {
    let (codespace, log) = (String::new(), String::new());
    let messages = Vec::new();
    let tx = TxSearchHit { hash: [1; 32], height: 7, index: 0, code: 0, codespace, log, events, messages };
    let seen = TxRef {
        chain: EXAMPLES.registry[chain].id.clone(),
        hash: Some("01".repeat(32)),
        height: 7,
        time: None,
    };
    tracker::detect_hops(&EXAMPLES.registry, &tx, &seen).concat()
}

/// Checks that the memos in a plan's messages round-trip.
fn ours(mut input: Input<'_>) -> bool {
    let (_, plan) = input.one_of(&EXAMPLES.plans);
    let account = input.byte();
    let addresses: Vec<String> =
        plan.required_chains(&EXAMPLES.registry).into_iter().map(|chain| address(chain, account)).collect();
    let msgs = msgs(plan, &addresses, None);
    for msg in &msgs {
        let Some(memo) = msg["memo"].as_str() else { continue };
        let data = json!({ "denom": "d", "amount": "1", "sender": "a", "receiver": "b", "memo": memo });
        let packet = sent(&send_packet("packet_data", &data.to_string())).expect("a packet of ours");
        assert_eq!(packet.forward.is_some(), memo.starts_with(r#"{"forward""#), "{memo}");
        assert_eq!(packet.hook.is_some(), memo.starts_with(r#"{"evm""#), "{memo}");
        assert!(memo.is_empty() || packet.forward.is_some() || packet.hook.is_some(), "{memo}");
    }
    !msgs.is_empty()
}

fn address(chain: ChainRef, account: u8) -> String {
    let (chain, account) = (&EXAMPLES.registry[chain], chain::Account::from([account; 20]));
    if chain.kind == ChainKind::Evm { account.to_hex() } else { account.to_bech32(&chain.bech32_prefix) }
}

/// The messages of a plan's Cosmos transactions; none if the builder rejects it.
fn msgs(plan: &Plan, addresses: &[String], signed_hook: Option<&SignedHook>) -> Vec<Value> {
    let request = BuildRequest {
        registry: &EXAMPLES.registry,
        facts: &EXAMPLES.facts,
        plan,
        addresses,
        now_nanos: 1_700_000_000_000_000_000,
        timeout_seconds: 300,
        slippage_percent: "1",
        signed_hook,
    };
    let Ok(built) = messages::transactions(&request) else { return Vec::new() };
    let mut all = Vec::new();
    for tx in built.txs {
        if let Tx::Cosmos { msgs, .. } = tx {
            all.extend(msgs.iter().map(|msg| serde_json::from_str::<Value>(&msg.msg).unwrap()));
        }
    }
    all
}

/// Checks a client's edited operations: they round-trip and compare with those of the plan.
fn operations(mut input: Input<'_>) -> bool {
    let (_, plan) = input.one_of(&EXAMPLES.plans);
    let mine = planner::operations(EXAMPLES.world(), plan);
    assert_eq!(planner::same_route(&mine, &mine), Ok(()));
    let mut echoed = serde_json::to_value(&mine).unwrap();
    edit::apply(&mut echoed, &mut input);
    let Ok(read) = serde_json::from_value::<Vec<Operation>>(echoed) else { return false };
    let again: Vec<Operation> = serde_json::from_value(serde_json::to_value(&read).unwrap()).unwrap();
    assert_eq!(read, again, "operations read back");
    if planner::same_route(&mine, &read).is_ok() {
        assert_eq!(mine.len(), read.len());
    }
    true
}

/// Checks arbitrary addresses, slippage and signed hook.
fn signed(mut input: Input<'_>) -> bool {
    let (request, plan) = input.one_of(&EXAMPLES.hooked);
    let account = input.byte();
    let mut addresses: Vec<String> =
        plan.required_chains(&EXAMPLES.registry).into_iter().map(|chain| address(chain, account)).collect();
    let signer = addresses.first().cloned().unwrap_or_default();
    let arbitrary = String::from_utf8_lossy(input.piece()).into_owned();
    let hook_request = OpHookRequest {
        registry: &EXAMPLES.registry,
        facts: &EXAMPLES.facts,
        source: request.from,
        source_address: if arbitrary.is_empty() { &signer } else { &arbitrary },
        dest: request.to,
        dest_address: addresses.last().map_or("", String::as_str),
    };
    let hook = messages::op_hook(&hook_request);
    if let Err(error) = &hook {
        assert!(!error.to_string().is_empty());
    }
    if !arbitrary.is_empty() {
        addresses[0] = arbitrary;
    }
    let by_client = SignedHook { signer, hook: STANDARD.encode(input.rest()) };
    msgs(plan, &addresses, Some(&by_client));
    hook.is_ok()
}

/// Seeds of every form, with memos that middlewares read.
pub fn seeds() -> Vec<Vec<u8>> {
    let forward = br#"{"forward":{"receiver":"init1h8ec302kh6s2fmy8cxv0rt5nzv8nh5gassfhqe","port":"transfer","channel":"channel-3","timeout":"10m","retries":2,"next":{"evm":{"message":{"contract_addr":"0xB2","input":"0x1efd","value":"0","access_list":[]}}}}}"#;
    let hook = br#"{"evm":{"message":{"contract_addr":"0xB2","input":"0x1efd"}}}"#;
    let ics20 =
        br#"{"denom":"transfer/channel-0/uinit","amount":"5","sender":"a","receiver":"b","memo":"{}"}"#;
    let ics721 = br#"{"classId":"nft","tokenIds":["1","2"],"sender":"a","receiver":"b"}"#;
    let deposit = b"initiate_token_deposit\nbridge_id=1\nl1_sequence=7\nl1_denom=uinit\nl2_denom=l2/00\namount=5\ndata=00";
    let withdrawal =
        b"initiate_token_withdrawal\nl2_sequence=7\nfrom=a\nto=b\ndenom=l2/00\nbase_denom=uinit\namount=5";
    let layer_zero = b"move\ntype_tag=0x1::oft::OftSent\ndata={\"guid\":\"0x01\",\"dst_eid\":30110,\"amount_sent_ld\":\"7\"}";
    let swap = concat!(
        "execute\nsender=0xa\nmodule_addr=0xb\nmove\ntype_tag=0x1::dex::SwapEvent\n",
        r#"data={"offer_coin":"0x1","return_coin":"0x2","offer_amount":"5","return_amount":"4"}"#,
        "\nmove\ntype_tag=0x1::fungible_asset::DepositEvent\n",
        r#"data={"metadata_addr":"0x2","amount":"4"}"#,
        "\nmove\ntype_tag=0x1::fungible_asset::DepositOwnerEvent\n",
        r#"data={"owner":"0xa"}"#,
    );
    let recovered = concat!(
        "submsg\nsuccess=false\nreason=no\n",
        "execute\nsender=0xa\nmodule_name=ack_callback\nfunction_name=recover\n",
        "move\ntype_tag=0x1::fungible_asset::DepositEvent\n",
        r#"data={"metadata_addr":"0x1","amount":"5"}"#,
    );
    let tx = [&[0x0a, 6, 0x0a, 4, 0x0a, 0, 0x12, 0, 0x12, 2, 0x0a, 0, 0x1a, 1, 1][..]].concat();
    let mut seeds: Vec<Vec<u8>> = [(0, &forward[..]), (0, hook), (0, b"hello"), (1, ics20), (1, ics721)]
        .into_iter()
        .chain([(2, &deposit[..]), (2, withdrawal), (2, layer_zero)])
        .chain([(2, swap.as_bytes()), (2, recovered.as_bytes())])
        .map(|(form, text)| [&[form], text].concat())
        .collect();
    for number in 0_u8..16 {
        seeds.push(vec![3, 0, number * 11, 7]);
        seeds.push(vec![4, 0, number * 11, 0, 9, 2, 3, b'a', b'b', b'c']);
        seeds.push([&[5, 0, number, 7, 0], tx.as_slice()].concat());
    }
    seeds
}
