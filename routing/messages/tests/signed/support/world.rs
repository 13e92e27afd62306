//! Hand-made registries.

use chain::{U256, Vm};
use registry::{
    Asset, AssetRef, Bridge, Builder, Chain, ChainKind, ChainRef, Channel, ChannelRef, End, Endpoints, Facts,
    Leg, LegKind, NativeCoin, Oft, Origin, Registry, Terms, denom,
};

use super::Scenario;

pub(crate) const USDC_WRAPPER: &str = "0xB24905344757Bf9CE80442fE1245A9019ee2d749";
pub(crate) const USDC_WRAPPED: &str = "evm/A1Bc0977Bab93D507A89C108fa21820809e6869D";
pub(crate) const USDC_L1: &str = "ibc/6490A7EAB61059BFC1CDDEB05917DD70BDF3A611654162A1A47DB930D40D8AF4";
pub(crate) const USDC_L2: &str = "ibc/AA4E7DF065DC4D4B29B8662A919295F525B19251FB2618C41C0DED3BD1128FEE";
pub(crate) const INIT_WRAPPER: &str = "0x4eb08D5c1B0A821303A86C7b3AC805c2793dE783";
pub(crate) const INIT_WRAPPED: &str = "evm/856aB2c9F35B9187aB3eB0Fcd11DCc6160427e96";
pub(crate) const INIT_L2: &str = "l2/8f73cfaf153520f511b4fc0bd71d60d64b4e19eff04a350e642718a3c1ab3b06";
pub(crate) const INIT_L2_ERC20: &str = "0x2eE7007DF876084d4C74685e90bB7f4cd7c86e22";
pub(crate) const INIT_BACK: &str = "ibc/07FFEEEE36370551554531FF7189EB2D3353B187CB6CE715DA1291C3A4B4EAC2";
pub(crate) const INIT_VOUCHER: &str = "ibc/37A3FB4FED4CA04ED6D9E5DA36C6D27248645F0E22F585576A1488B8A89C5A50";
pub(crate) const ETH_L1: &str = "move/edfcddacac79ab86737a1e9e65805066d8be286a37cb94f4884b892b0e39f954";
pub(crate) const ETH_OFT: &str = "0x1111111111111111111111111111111111111111";
pub(crate) const ETH_MODULE: &str = "0xb3d2a1a7e4d7e4a1d5b0f2a7bb4a5a1e06a1f0d9a1c3f3a9b8c7d6e5f4a3b2c1";
pub(crate) const USDE: &str = "0x4c9EDD5852cd905f086C759E8383e09bff1E68B3";
pub(crate) const USDE_ADAPTER: &str = "0x2222222222222222222222222222222222222222";
pub(crate) const USDE_ARBITRUM: &str = "0x5d3a1Ff2b6BAb83b63cd9AD0787074081a52ef34";

/// Builder of a registry.
pub(crate) struct WorldBuilder {
    pub(crate) builder: Builder,
}

impl WorldBuilder {
    pub(crate) fn new() -> Self {
        Self { builder: Builder::new() }
    }

    pub(crate) fn cosmos(&mut self, id: &str, prefix: &str, vm: Vm, l1: bool) -> ChainRef {
        let initia = vm != Vm::None;
        self.builder.chain(chain(id, prefix, vm, initia, l1)).unwrap()
    }

    /// A chain that forwards no packets.
    pub(crate) fn still(&mut self, id: &str, prefix: &str) -> ChainRef {
        let still = Chain { forwards: false, ..chain(id, prefix, Vm::None, false, false) };
        self.builder.chain(still).unwrap()
    }

    pub(crate) fn evm(&mut self, id: &str, native: &str) -> ChainRef {
        let mut evm = chain(id, "", Vm::None, false, false);
        evm.kind = ChainKind::Evm;
        evm.native = Some(NativeCoin {
            name: "Ether".to_owned(),
            symbol: "ETH".to_owned(),
            decimals: 18,
            denom: native.to_owned(),
        });
        self.builder.chain(evm).unwrap()
    }

    pub(crate) fn channel(&mut self, a: (ChainRef, u32), b: (ChainRef, u32)) -> ChannelRef {
        let end = |(chain, number): (ChainRef, u32)| End {
            chain,
            port: "transfer".to_owned(),
            channel: format!("channel-{number}"),
        };
        self.builder.channel(Channel { a: end(a), b: end(b), paused: None, seconds: None }).unwrap()
    }

    pub(crate) fn bridge(&mut self, id: u64, l1: ChainRef, l2: ChainRef) -> registry::BridgeRef {
        let bridge = Bridge {
            id,
            l1,
            l2,
            paused: None,
            deposit_seconds: None,
            finalization_seconds: 604_800,
            submission_seconds: 3_600,
            migrated: Vec::new(),
        };
        self.builder.bridge(bridge).unwrap()
    }

    pub(crate) fn native(&mut self, chain: ChainRef, denom: &str, decimals: u8) -> AssetRef {
        self.asset(chain, denom, decimals, Origin::Native, None)
    }

    /// A token with a parent; its denomination is computed from its origin.
    pub(crate) fn came(&mut self, chain: ChainRef, decimals: u8, origin: Origin) -> AssetRef {
        let (denom, _) = self.builder.denom_of(chain, &origin).unwrap().unwrap();
        self.asset(chain, &denom, decimals, origin, None)
    }

    pub(crate) fn asset(
        &mut self,
        chain: ChainRef,
        denom: &str,
        decimals: u8,
        origin: Origin,
        contract: Option<&str>,
    ) -> AssetRef {
        let asset = Asset {
            chain,
            denom: denom.to_owned(),
            symbol: "SYM".to_owned(),
            name: None,
            decimals,
            contract: contract.map(str::to_owned),
            logo_uri: None,
            description: None,
            coingecko_id: None,
            price_usd: None,
            hidden: false,
            origin,
            terms: Terms::default(),
        };
        self.builder.asset(asset).unwrap()
    }

    pub(crate) fn finish(self) -> Registry {
        self.builder.finish("hash".to_owned())
    }
}

fn chain(id: &str, prefix: &str, vm: Vm, initia: bool, l1: bool) -> Chain {
    Chain {
        id: id.to_owned(),
        name: id.to_owned(),
        pretty_name: id.to_owned(),
        kind: ChainKind::Cosmos,
        vm,
        initia,
        l1,
        bech32_prefix: prefix.to_owned(),
        testnet: false,
        hidden: false,
        forwards: true,
        forwards_given: false,
        logo_uri: None,
        fee_assets: Vec::new(),
        endpoints: Endpoints::default(),
        explorer_tx: None,
        native: None,
        layer_zero_eid: None,
        layer_zero_endpoint: None,
        confirmations: 0,
        block_seconds: 1,
    }
}

pub(crate) fn leg(asset: AssetRef, kind: LegKind, contract: &str, eid: u32) -> Leg {
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

/// The chains of the worked examples.
pub(crate) fn mainnet() -> Scenario {
    let mut made = WorldBuilder::new();
    let noble = made.cosmos("noble-1", "noble", Vm::None, false);
    let l1 = made.cosmos("interwoven-1", "init", Vm::Move, true);
    let cabal = made.cosmos("cabal-1", "init", Vm::Evm, false);
    let yominet = made.cosmos("yominet-1", "init", Vm::Evm, false);
    let osmosis = made.cosmos("osmosis-1", "osmo", Vm::None, false);
    let ethereum = made.evm("1", "ethereum-native");
    let arbitrum = made.evm("42161", "arbitrum-native");

    let from_noble = made.channel((noble, 129), (l1, 3));
    let to_cabal = made.channel((l1, 97), (cabal, 0));
    let to_yominet = made.channel((l1, 25), (yominet, 0));
    let to_osmosis = made.channel((l1, 71), (osmosis, 1));
    let bridge = made.bridge(11, l1, yominet);
    let over = |channel, parent| Origin::Ibc { channel, parent };

    let uusdc = made.native(noble, "uusdc", 6);
    let usdc_l1 = made.came(l1, 6, over(from_noble, uusdc));
    let usdc_l2 = made.came(cabal, 6, over(to_cabal, usdc_l1));
    wrapped(&mut made, cabal, USDC_WRAPPED, USDC_WRAPPER, usdc_l2);
    made.came(osmosis, 6, over(to_osmosis, usdc_l1));

    let uinit = made.native(l1, "uinit", 6);
    let origin = Origin::Bridged { bridge, parent: uinit };
    let init_l2 = made.asset(yominet, INIT_L2, 6, origin, Some(INIT_L2_ERC20));
    wrapped(&mut made, yominet, INIT_WRAPPED, INIT_WRAPPER, init_l2);
    made.came(l1, 6, over(to_yominet, init_l2));
    made.came(osmosis, 6, over(to_osmosis, uinit));
    made.came(yominet, 6, over(to_yominet, uinit));
    made.came(yominet, 6, over(to_yominet, usdc_l1));

    let ether = made.native(ethereum, "ethereum-native", 18);
    let eth_l1 = made.native(l1, ETH_L1, 6);
    let usde = made.native(ethereum, USDE, 18);
    let usde_arbitrum = made.native(arbitrum, USDE_ARBITRUM, 18);
    let legs = vec![
        leg(ether, LegKind::NativeAdapter, ETH_OFT, 30_101),
        leg(eth_l1, LegKind::Move, ETH_MODULE, 30_326),
    ];
    made.builder.oft(Oft { symbol: "ETH".to_owned(), legs }).unwrap();
    let options = "0x00030100110100000000000000000000000000030d40".to_owned();
    let adapter = Leg { options, ..leg(usde, LegKind::Adapter, USDE_ADAPTER, 30_101) };
    let legs = vec![adapter, leg(usde_arbitrum, LegKind::Token, USDE_ARBITRUM, 30_110)];
    made.builder.oft(Oft { symbol: "USDe".to_owned(), legs }).unwrap();

    let mut facts = Facts::default();
    facts.hooks.insert("cabal-1".to_owned(), true);
    let usdc_erc20 = "0x9f1C4b3a2D5e6F7081920A3b4C5d6E7f80912345".to_ascii_lowercase();
    facts.contracts.insert(("cabal-1".to_owned(), USDC_L2.to_owned()), usdc_erc20);
    Scenario::new(made.finish(), facts)
}

fn wrapped(made: &mut WorldBuilder, chain: ChainRef, denom: &str, wrapper: &str, parent: AssetRef) {
    let origin = Origin::Wrapped { contract: wrapper.to_owned(), parent };
    made.asset(chain, denom, 18, origin, None);
}

/// [`mainnet`] with INIT of yominet migrated to its channel, where packets may call the wrapper.
pub(crate) fn migrated() -> Scenario {
    let mut scenario = mainnet();
    let mut bridge_facts = registry::facts::BridgeFacts::default();
    bridge_facts.migrated.insert("uinit".to_owned(), Some(("transfer".to_owned(), "channel-25".to_owned())));
    scenario.facts.bridges.insert(("interwoven-1".to_owned(), 11), bridge_facts);
    scenario.facts.hooks.insert("yominet-1".to_owned(), true);
    scenario
}

pub(crate) const L1: &str = "e2e-l1-1";
pub(crate) const L2: &str = "e2e-l2-1";
pub(crate) const RECORDED_INIT: &str = "l2/771d639f30fbe45e3fbca954ffbe2fcc26f915f5513c67a4a2d0bc1d635bdefd";
pub(crate) const RECORDED_ERC20: &str = "evm/a76F461D333276656eeb17b49168D90b247bC19A";
/// The contract that recorded packets called; here it is registered as a wrapper.
pub(crate) const RECORDED_HOOK: &str = "0x7B94f151460C86DB39c0BBF0aD8D26e6692C2DDA";

/// The recorded L1 and rollup.
pub(crate) fn recorded() -> Scenario {
    let mut made = WorldBuilder::new();
    let l1 = made.cosmos(L1, "init", Vm::Move, true);
    let l2 = made.cosmos(L2, "init", Vm::Evm, false);
    let channel = made.channel((l1, 0), (l2, 0));
    let bridge = made.bridge(1, l1, l2);
    let uinit = made.native(l1, "uinit", 6);
    let voucher = made.came(l2, 6, Origin::Ibc { channel, parent: uinit });
    let bridged = made.came(l2, 6, Origin::Bridged { bridge, parent: uinit });
    assert_eq!(made.builder.so_far()[bridged].denom, RECORDED_INIT);
    let wrapper = RECORDED_HOOK;
    wrapped(&mut made, l2, "evm/8771048e9Bdba5F70f601bd365F5FbfF71759433", wrapper, voucher);
    for native in ["GAS", RECORDED_ERC20] {
        let parent = made.native(l2, native, 18);
        let back = made.came(l1, 18, Origin::Ibc { channel, parent });
        made.came(l2, 18, Origin::Bridged { bridge, parent: back });
    }
    let mut facts = Facts::default();
    facts.hooks.insert(L2.to_owned(), true);
    let scenario = Scenario::new(made.finish(), facts);
    assert_eq!(denom::bridged(1, "uinit"), RECORDED_INIT);
    scenario
}

/// Base units with 18 decimals of an amount with 6.
pub(crate) fn finer(amount: u128) -> u128 {
    amount * 10u128.pow(12)
}

/// The largest number.
pub(crate) fn all() -> U256 {
    U256::MAX
}
