//! A part of Initia's mainnet, as in the worked examples.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each of those who share it takes what it needs, and stops at the first surprise"
)]

use chain::{U256, Vm};
use planner::{Graph, NoRoute, Plan, Quotes, Request, World, plan};
use registry::facts::{BridgeFacts, Quote};
use registry::{
    Asset, AssetRef, Bridge, BridgeRef, Builder, Chain, ChainKind, ChainRef, Channel, ChannelRef, End,
    Endpoints, Facts, FeeAsset, Leg, LegKind, NativeCoin, Oft, OftRef, Origin, Registry, Terms,
};

pub(crate) const USDC: &str = "ibc/6490A7EAB61059BFC1CDDEB05917DD70BDF3A611654162A1A47DB930D40D8AF4";
pub(crate) const CABAL_USDC: &str = "evm/A1Bc0977Bab93D507A89C108fa21820809e6869D";
pub(crate) const OP_INIT: &str = "l2/8f73cfaf153520f511b4fc0bd71d60d64b4e19eff04a350e642718a3c1ab3b06";
pub(crate) const YOMI_INIT: &str = "evm/856aB2c9F35B9187aB3eB0Fcd11DCc6160427e96";
pub(crate) const IBC_OP_INIT: &str = "ibc/07FFEEEE36370551554531FF7189EB2D3353B187CB6CE715DA1291C3A4B4EAC2";
pub(crate) const IBC_INIT: &str = "ibc/37A3FB4FED4CA04ED6D9E5DA36C6D27248645F0E22F585576A1488B8A89C5A50";
pub(crate) const ETH: &str = "move/edfcddacac79ab86737a1e9e65805066d8be286a37cb94f4884b892b0e39f954";
const IMAGES: &str = "https://raw.githubusercontent.com/initia-labs/initia-registry/main/images";

/// The contracts' quotes: the whole amount arrives, for this fee; no quote if it is `None`.
pub(crate) struct Fee(pub(crate) Option<u64>);

impl Quotes for Fee {
    fn quote(&self, _: OftRef, _: usize, _: usize, amount: U256) -> Option<Quote> {
        self.0.map(|fee| Quote { received: amount, native_fee: U256::from(fee) })
    }
}

pub(crate) struct Mainnet {
    pub(crate) registry: Registry,
    pub(crate) facts: Facts,
    pub(crate) fee: Fee,
}

impl Mainnet {
    /// A mainnet on which Cabal's packets may call its wrapper.
    pub(crate) fn new() -> Self {
        Self::with(|_, _| ())
    }

    /// The same with changed assets: `change` gets each with its denomination.
    pub(crate) fn with(change: impl Fn(&str, &mut Asset)) -> Self {
        let mut facts = Facts::default();
        facts.hooks.insert("cabal-1".to_owned(), true);
        Self { registry: registry(change), facts, fee: Fee(Some(41_000_000_000_000)) }
    }

    /// With bridge 11's INIT migrated to its channel.
    pub(crate) fn migrated() -> Self {
        let mut mainnet = Self::new();
        let channel = Some(("transfer".to_owned(), "channel-25".to_owned()));
        let bridge_facts =
            BridgeFacts { migrated: [("uinit".to_owned(), channel)].into(), ..BridgeFacts::default() };
        mainnet.facts.bridges.insert(("interwoven-1".to_owned(), 11), bridge_facts);
        mainnet
    }

    pub(crate) fn world(&self) -> World<'_> {
        World { registry: &self.registry, facts: &self.facts, quotes: &self.fee }
    }

    pub(crate) fn asset(&self, chain: &str, denom: &str) -> AssetRef {
        self.registry.asset(self.registry.chain(chain).unwrap(), denom).unwrap()
    }

    /// The request of a client that signs one transaction, and a hook.
    pub(crate) fn request(&self, from: (&str, &str), to: (&str, &str), amount: u64) -> Request {
        Request {
            from: self.asset(from.0, from.1),
            to: self.asset(to.0, to.1),
            amount_in: U256::from(amount),
            op_withdraw: false,
            multi_tx: false,
            op_hook: true,
            bridges: None,
        }
    }

    pub(crate) fn plan(&self, request: &Request) -> Result<Vec<Plan>, NoRoute> {
        plan(&Graph::new(&self.registry), self.world(), request)
    }
}

fn registry(change: impl Fn(&str, &mut Asset)) -> Registry {
    let mut builder = Builder::new();
    let noble = builder.chain(chain("noble-1", "noble", Vm::None)).unwrap();
    let l1 = builder.chain(chain("interwoven-1", "initia", Vm::Move)).unwrap();
    let cabal = builder.chain(chain("cabal-1", "cabal", Vm::Evm)).unwrap();
    let yominet = builder.chain(chain("yominet-1", "yominet", Vm::Evm)).unwrap();
    let echelon = builder.chain(chain("echelon-1", "echelon", Vm::Move)).unwrap();
    let ethereum = builder.chain(ethereum()).unwrap();
    let noble_l1 = channel(&mut builder, (noble, "channel-129"), (l1, "channel-3"));
    let l1_cabal = channel(&mut builder, (l1, "channel-97"), (cabal, "channel-0"));
    let l1_yominet = channel(&mut builder, (l1, "channel-25"), (yominet, "channel-0"));
    let l1_echelon = channel(&mut builder, (l1, "channel-35"), (echelon, "channel-0"));
    let bridge = bridge(&mut builder, l1, yominet);
    let mut add = |chain, denom: &str, decimals, origin| {
        let mut asset = asset(chain, denom, decimals, origin);
        change(denom, &mut asset);
        builder.asset(asset).unwrap()
    };
    let uusdc = add(noble, "uusdc", 6, Origin::Native);
    let usdc = add(l1, USDC, 6, Origin::Ibc { channel: noble_l1, parent: uusdc });
    let cabal_usdc = "ibc/AA4E7DF065DC4D4B29B8662A919295F525B19251FB2618C41C0DED3BD1128FEE";
    let raw = add(cabal, cabal_usdc, 6, Origin::Ibc { channel: l1_cabal, parent: usdc });
    let wrapper = "0xB24905344757Bf9CE80442fE1245A9019ee2d749".to_owned();
    add(cabal, CABAL_USDC, 18, Origin::Wrapped { contract: wrapper, parent: raw });
    let init = add(l1, "uinit", 6, Origin::Native);
    let op_init = add(yominet, OP_INIT, 6, Origin::Bridged { bridge, parent: init });
    let wrapper = "0x4eb08D5c1B0A821303A86C7b3AC805c2793dE783".to_owned();
    add(yominet, YOMI_INIT, 18, Origin::Wrapped { contract: wrapper, parent: op_init });
    add(l1, IBC_OP_INIT, 6, Origin::Ibc { channel: l1_yominet, parent: op_init });
    add(echelon, IBC_INIT, 6, Origin::Ibc { channel: l1_echelon, parent: init });
    let eth = add(l1, ETH, 6, Origin::Native);
    let native = add(ethereum, "ethereum-native", 18, Origin::Native);
    let legs = vec![
        leg(native, LegKind::NativeAdapter, "0x1111111111111111111111111111111111111111", 30101),
        leg(eth, LegKind::Move, "0x2222", 30326),
    ];
    builder.oft(Oft { symbol: "ETH".to_owned(), legs }).unwrap();
    builder.finish(String::new())
}

fn chain(id: &str, name: &str, vm: Vm) -> Chain {
    let fee = FeeAsset {
        denom: "uinit".to_owned(),
        low: String::new(),
        average: "0.015".to_owned(),
        high: String::new(),
    };
    Chain {
        id: id.to_owned(),
        name: name.to_owned(),
        pretty_name: name.to_owned(),
        kind: ChainKind::Cosmos,
        vm,
        initia: vm != Vm::None,
        l1: name == "initia",
        bech32_prefix: if vm == Vm::None { name } else { "init" }.to_owned(),
        testnet: false,
        hidden: false,
        forwards: true,
        forwards_given: false,
        logo_uri: None,
        fee_assets: vec![fee],
        endpoints: Endpoints::default(),
        explorer_tx: None,
        native: None,
        layer_zero_eid: None,
        layer_zero_endpoint: None,
        confirmations: 0,
        block_seconds: 3,
    }
}

fn ethereum() -> Chain {
    let native = NativeCoin {
        name: "Ether".to_owned(),
        symbol: "ETH".to_owned(),
        decimals: 18,
        denom: "ethereum-native".to_owned(),
    };
    Chain {
        kind: ChainKind::Evm,
        initia: false,
        bech32_prefix: String::new(),
        forwards: false,
        forwards_given: false,
        fee_assets: Vec::new(),
        native: Some(native),
        layer_zero_eid: Some(30101),
        confirmations: 15,
        block_seconds: 12,
        ..chain("1", "ethereum", Vm::None)
    }
}

fn channel(builder: &mut Builder, a: (ChainRef, &str), b: (ChainRef, &str)) -> ChannelRef {
    let end = |(chain, channel): (ChainRef, &str)| End {
        chain,
        port: "transfer".to_owned(),
        channel: channel.to_owned(),
    };
    builder.channel(Channel { a: end(a), b: end(b), paused: None, seconds: None }).unwrap()
}

fn bridge(builder: &mut Builder, l1: ChainRef, l2: ChainRef) -> BridgeRef {
    let bridge = Bridge {
        id: 11,
        l1,
        l2,
        paused: None,
        deposit_seconds: None,
        finalization_seconds: 604_800,
        submission_seconds: 3_600,
        migrated: Vec::new(),
    };
    builder.bridge(bridge).unwrap()
}

/// An asset with symbol, name and image as in the examples.
fn asset(chain: ChainRef, denom: &str, decimals: u8, origin: Origin) -> Asset {
    let (symbol, name, id, price) = match denom {
        "uusdc" | USDC | CABAL_USDC => ("USDC", "USD Coin", "usd-coin", "1"),
        "ethereum-native" | ETH => ("ETH", "Ether", "ethereum", "3000"),
        OP_INIT => ("INIT", "Initia Native Token (OP)", "initia", "0.15"),
        _ => ("INIT", "Initia Native Token", "initia", "0.15"),
    };
    Asset {
        chain,
        denom: denom.to_owned(),
        symbol: symbol.to_owned(),
        name: Some(name.to_owned()),
        decimals,
        contract: None,
        logo_uri: Some(format!("{IMAGES}/{symbol}.png")),
        description: None,
        coingecko_id: Some(id.to_owned()),
        price_usd: Some(price.to_owned()),
        hidden: denom == OP_INIT,
        origin,
        terms: Terms::default(),
    }
}

fn leg(asset: AssetRef, kind: LegKind, contract: &str, eid: u32) -> Leg {
    Leg {
        asset,
        kind,
        contract: contract.to_owned(),
        eid,
        shared_decimals: 6,
        options: "0x".to_owned(),
        messaging_fee: None,
        terms: Terms::default(),
    }
}
