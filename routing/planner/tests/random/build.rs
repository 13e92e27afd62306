//! Assembly of random parts.

use chain::Vm;
use registry::facts::BridgeFacts;
use registry::{
    Asset, AssetRef, Bridge, Builder, Chain, ChainKind, Channel, Endpoints, Facts, FeeAsset, Leg, LegKind,
    NativeCoin, Oft, Origin, Terms,
};

use super::{AssetPart, Dice, From, GeneratedWorld, Parts, Priced, Rc, Size, bridge_id, end};

/// Assembles parts in an order drawn from `order`; 0 keeps their own order.
pub fn build(parts: &Parts, order: u64, size: Size) -> GeneratedWorld {
    let mut dice = Dice(order);
    let mut mix = |len: usize| {
        let mut places: Vec<_> = (0..len).collect();
        if order != 0 {
            dice.shuffle(&mut places);
        }
        places
    };
    let mut builder = Builder::new();
    let mut chains = vec![None; parts.chains.len()];
    for place in mix(parts.chains.len()) {
        chains[place] = Some(builder.chain(chain(parts, place)).unwrap());
    }
    let chain_at = |place: usize| chains[place].unwrap();
    let mut channels = vec![None; parts.channels.len()];
    for place in mix(parts.channels.len()) {
        let wire = &parts.channels[place];
        let side = |chain: usize| registry::End {
            chain: chain_at(chain),
            port: "transfer".to_owned(),
            channel: end(wire, chain),
        };
        let paused = wire.paused.then(|| "no relayer".to_owned());
        let channel = Channel { a: side(wire.a), b: side(wire.b), paused, seconds: wire.seconds };
        channels[place] = Some(builder.channel(channel).unwrap());
    }
    let mut facts = Facts::default();
    let mut bridges = vec![None; parts.bridges.len()];
    for place in mix(parts.bridges.len()) {
        let (bridge, bridge_facts) = bridge(parts, place, chain_at(0), chain_at(parts.bridges[place].rollup));
        facts.bridges.insert((chain_id(parts, 0), bridge.id), bridge_facts);
        bridges[place] = Some(builder.bridge(bridge).unwrap());
    }
    let mut assets = vec![None; parts.assets.len()];
    let mut waiting = mix(parts.assets.len());
    while !waiting.is_empty() {
        waiting.retain(|place| {
            let part = &parts.assets[*place];
            let parent = part.from.parent().map(|parent| assets[parent]);
            if parent == Some(None) {
                return true;
            }
            let origin = match part.from {
                From::Native => Origin::Native,
                From::Ibc(wire, _) => {
                    Origin::Ibc { channel: channels[wire].unwrap(), parent: parent.unwrap().unwrap() }
                }
                From::Bridged(bridge, _) => {
                    Origin::Bridged { bridge: bridges[bridge].unwrap(), parent: parent.unwrap().unwrap() }
                }
                From::Wrapped(_) => {
                    // A separate wrapper, so that no two pairs exclude each other.
                    let contract = format!("0x{place:040}");
                    Origin::Wrapped { contract, parent: parent.unwrap().unwrap() }
                }
            };
            assets[*place] = Some(builder.asset(asset(part, chain_at(part.chain), origin)).unwrap());
            false
        });
    }
    let mut contracts = Vec::new();
    for place in mix(parts.ofts.len()) {
        let legs: Vec<_> = parts.ofts[place]
            .iter()
            .map(|leg| self::leg(parts, place, leg, assets[leg.0].unwrap()))
            .collect();
        contracts.push(legs.iter().map(|leg| leg.contract.clone()).collect());
        builder.oft(Oft { symbol: format!("OFT{place}"), legs }).unwrap();
    }
    for chain in &parts.hooks {
        facts.hooks.insert(chain_id(parts, *chain), true);
    }
    for channel in &parts.closed {
        let wire = &parts.channels[*channel];
        let key = (chain_id(parts, wire.b), "transfer".to_owned(), end(wire, wire.b));
        facts.closed.insert(key, "the client expired".to_owned());
    }
    let quotes = Priced { contracts, seed: parts.seed, trouble: size.trouble };
    let assets = assets.into_iter().map(Option::unwrap).collect();
    GeneratedWorld { registry: builder.finish(String::new()), facts, quotes, assets }
}

fn chain_id(parts: &Parts, chain: usize) -> String {
    match parts.chains[chain].0 {
        Rc::Ethereum => (1_000 + chain).to_string(),
        _ => format!("chain{chain}-1"),
    }
}

fn chain(parts: &Parts, number: usize) -> Chain {
    let (kind, forwards) = parts.chains[number];
    let evm = kind == Rc::Ethereum;
    let native = NativeCoin {
        name: "Coin".to_owned(),
        symbol: "COIN".to_owned(),
        decimals: 18,
        denom: format!("coin{number}-native"),
    };
    let fee = |denom: String| FeeAsset {
        denom,
        low: String::new(),
        average: "0.01".to_owned(),
        high: String::new(),
    };
    Chain {
        id: chain_id(parts, number),
        name: format!("chain{number}"),
        pretty_name: format!("Chain {number}"),
        kind: if evm { ChainKind::Evm } else { ChainKind::Cosmos },
        vm: match kind {
            Rc::Layer1 => Vm::Move,
            Rc::Rollup => Vm::Evm,
            Rc::Outside | Rc::Ethereum => Vm::None,
        },
        initia: matches!(kind, Rc::Layer1 | Rc::Rollup),
        l1: kind == Rc::Layer1,
        bech32_prefix: if evm { String::new() } else { "init".to_owned() },
        testnet: false,
        hidden: false,
        forwards: forwards && !evm,
        forwards_given: false,
        logo_uri: None,
        fee_assets: if evm { Vec::new() } else { vec![fee(format!("utoken{number}"))] },
        endpoints: Endpoints::default(),
        explorer_tx: None,
        native: evm.then_some(native),
        layer_zero_eid: None,
        layer_zero_endpoint: None,
        confirmations: 15,
        block_seconds: 12,
    }
}

fn bridge(
    parts: &Parts,
    place: usize,
    l1: registry::ChainRef,
    l2: registry::ChainRef,
) -> (Bridge, BridgeFacts) {
    let part = &parts.bridges[place];
    let bridge = Bridge {
        id: bridge_id(parts, place),
        l1,
        l2,
        paused: part.paused.then(|| "the operator stopped it".to_owned()),
        deposit_seconds: None,
        finalization_seconds: 604_800,
        submission_seconds: 3_600,
        migrated: Vec::new(),
    };
    let at = |wire: usize| Some(("transfer".to_owned(), end(&parts.channels[wire], 0)));
    let bridge_facts = BridgeFacts {
        disabled: part.disabled,
        migrated: part.migrated.iter().map(|(denom, wire)| (denom.clone(), at(*wire))).collect(),
        ..BridgeFacts::default()
    };
    (bridge, bridge_facts)
}

fn asset(part: &AssetPart, chain: registry::ChainRef, origin: Origin) -> Asset {
    Asset {
        chain,
        denom: part.denom.clone(),
        symbol: "T".to_owned(),
        name: None,
        decimals: part.decimals,
        contract: None,
        logo_uri: None,
        description: None,
        coingecko_id: None,
        price_usd: None,
        hidden: false,
        origin,
        terms: part.terms.clone(),
    }
}

fn leg(parts: &Parts, group: usize, (asset, terms, shared): &(usize, Terms, u8), reference: AssetRef) -> Leg {
    let part = &parts.assets[*asset];
    let kind = match parts.chains[part.chain].0 {
        Rc::Ethereum if part.denom.ends_with("-native") => LegKind::NativeAdapter,
        Rc::Ethereum => LegKind::Token,
        _ => LegKind::Move,
    };
    Leg {
        asset: reference,
        kind,
        contract: format!("0x{group:020}{asset:020}"),
        eid: u32::try_from(30_000 + asset).unwrap(),
        shared_decimals: *shared,
        options: "0x".to_owned(),
        messaging_fee: None,
        terms: terms.clone(),
    }
}
