//! Consistency check of a registry for its operator, without network access.
//!
//! # Invariants
//!
//! * An error is a part on which a route would fail; a warning is unusual and possibly intended.
//! * Values of node addresses are never printed.
//! * No route uses a part that has an error.

use std::collections::BTreeMap;

use crate::address::checksummed;
use crate::decimal;
use crate::model::{Asset, AssetRef, Chain, ChainKind, ChainRef, Leg, LegKind, Origin};
use crate::problem::{Place, Problem, Severity};
use crate::snapshot::{Part, Registry};

/// Errors and warnings, sorted.
pub fn check(registry: &Registry) -> Vec<Problem> {
    let mut found: Vec<_> = all(registry).into_iter().map(|(_, problem)| problem).collect();
    found.sort();
    found
}

/// The errors of parts that edges of the graph are made of.
pub(crate) fn errors(registry: &Registry) -> impl Iterator<Item = (Part, String)> + use<> {
    let errors = all(registry).into_iter().filter(|(_, problem)| problem.severity == Severity::Error);
    errors.filter_map(|(part, problem)| Some((part?, problem.what)))
}

/// Every problem, with the part that it is of.
fn all(registry: &Registry) -> Vec<(Option<Part>, Problem)> {
    let mut check = Check { registry, part: None, found: Vec::new() };
    for (reference, chain) in registry.chains() {
        check.chain(reference, chain);
    }
    check.symbols();
    for (reference, asset) in registry.assets() {
        check.part = Some(Part::Asset(reference));
        check.asset(reference, asset);
    }
    check.pairs();
    check.bridges();
    check.ofts();
    check.found
}

struct Check<'a> {
    registry: &'a Registry,
    /// Part under check.
    part: Option<Part>,
    found: Vec<(Option<Part>, Problem)>,
}

impl Check<'_> {
    fn error(&mut self, about: String, what: impl Into<String>) {
        let mut what = what.into();
        if self.part.is_some() {
            what.push_str("; no route uses it");
        }
        self.found.push((self.part, Place::about(about).error(what)));
    }

    fn warning(&mut self, about: String, what: impl Into<String>) {
        self.found.push((self.part, Place::about(about).warning(what)));
    }

    fn chain(&mut self, reference: ChainRef, chain: &Chain) {
        let about = || format!("chain {}", chain.id);
        let nodes = &chain.endpoints;
        let (needed, name) = match chain.kind {
            ChainKind::Cosmos => (&[("rpc", &nodes.rpc), ("rest", &nodes.rest)][..], "a cosmos chain"),
            ChainKind::Evm => (&[("json_rpc", &nodes.json_rpc)][..], "an EVM chain"),
        };
        for (kind, addresses) in needed {
            if addresses.is_empty() {
                self.warning(
                    about(),
                    format!("{name} without endpoints.{kind}: its transfers cannot be followed"),
                );
            }
        }
        for (kind, addresses) in [
            ("rpc", &nodes.rpc),
            ("rest", &nodes.rest),
            ("json_rpc", &nodes.json_rpc),
            ("executor", &nodes.executor),
        ] {
            let http = |address: &&String| address.starts_with("http://") || address.starts_with("https://");
            if !addresses.iter().all(|address| http(&address)) {
                self.error(
                    about(),
                    format!("an address in endpoints.{kind} does not begin with http:// or https://"),
                );
            }
        }
        if chain.explorer_tx.as_deref().is_some_and(|page| !page.contains("${txHash}")) {
            self.error(
                about(),
                "explorer_tx has no `${txHash}`: it would show the same page for every transaction",
            );
        }
        if chain.l1 && chain.name != "initia" {
            self.warning(about(), "clients know the L1 by the name `initia`, and this one has another");
        }
        if chain.kind == ChainKind::Cosmos && !chain::address::is_prefix(&chain.bech32_prefix) {
            self.error(about(), "bech32_prefix cannot be one");
        }
        if let Some(endpoint) = chain.layer_zero_endpoint.as_deref().filter(|_| chain.kind == ChainKind::Evm)
        {
            self.contract(about(), "layer_zero.endpoint", endpoint);
        }
        self.fees(reference, chain);
        self.connected(reference, chain);
    }

    fn fees(&mut self, reference: ChainRef, chain: &Chain) {
        let about = || format!("chain {}", chain.id);
        if chain.kind == ChainKind::Cosmos && chain.fee_assets.is_empty() {
            self.warning(about(), "no fee_assets: clients cannot tell what a transaction costs");
        }
        for fee in &chain.fee_assets {
            if self.registry.asset(reference, &fee.denom).is_none() {
                self.warning(
                    about(),
                    format!("fees are paid in `{}`, which is in no list: add an [[asset]]", fee.denom),
                );
            }
            let prices = [&fee.low, &fee.average, &fee.high];
            if prices.iter().any(|price| !price.is_empty() && !decimal::is_plain(price)) {
                self.error(about(), format!("a price of `{}` is no decimal number", fee.denom));
            }
        }
    }

    fn connected(&mut self, reference: ChainRef, chain: &Chain) {
        let registry = self.registry;
        let channel = registry.channels().any(|(_, channel)| channel.on(reference).is_some());
        let bridge = registry.bridges().any(|(_, bridge)| bridge.l1 == reference || bridge.l2 == reference);
        let leg = |leg: &Leg| registry[leg.asset].chain == reference;
        let oft = registry.ofts().any(|(_, oft)| oft.legs.iter().any(leg));
        if !(channel || bridge || oft) {
            self.warning(
                format!("chain {}", chain.id),
                "no channel, bridge or OFT connects it: nothing can be routed",
            );
        }
    }

    fn asset(&mut self, reference: AssetRef, asset: &Asset) {
        let registry = self.registry;
        let about = || format!("{} of {}", asset.denom, registry[asset.chain].id);
        if asset.price_usd.as_deref().is_some_and(|price| !decimal::is_plain(price)) {
            self.error(about(), "price_usd is no decimal number such as 0.15");
        }
        if let Some(contract) = &asset.contract {
            self.contract(about(), "contract", contract);
        }
        if let Some(hex) = asset.denom.strip_prefix("evm/") {
            let named = format!("0x{hex}");
            if asset.contract.as_ref().is_some_and(|contract| !contract.eq_ignore_ascii_case(&named)) {
                self.error(about(), "contract is not the one that the denomination names");
            }
            self.contract(about(), "denom", &named);
        }
        if registry[asset.chain].kind == ChainKind::Evm && asset.denom.starts_with("0x") {
            self.contract(about(), "denom", &asset.denom);
        }
        let unknown = asset.origin == Origin::Native && asset.denom.starts_with("ibc/");
        if unknown && registry.path(reference) == asset.denom {
            self.warning(about(), "nobody says where this voucher is from: give it `ibc` or `path`");
        }
        if let Origin::Wrapped { contract, parent } = &asset.origin {
            self.contract(about(), "wrapped.contract", contract);
            if registry.wrapper_pair(reference).is_none() {
                let (here, there) = (asset.decimals, registry[*parent].decimals);
                let what = format!(
                    "wrapped with {here} decimals, what it stands for has {there}: an ERC20Wrapper makes a token with \
                     18 decimals of one with fewer, or a token with 6 of one with more"
                );
                self.error(about(), what);
            }
        } else if let Some(parent) = asset.origin.parent()
            && registry[parent].decimals != asset.decimals
        {
            let (here, there) = (asset.decimals, registry[parent].decimals);
            let what =
                format!("has {here} decimals, but what it stands for has {there}: amounts stay on the way");
            self.error(about(), what);
        }
    }

    /// A contract's address has 20 bytes, and its case is its checksum (EIP-55) unless it has only one case.
    fn contract(&mut self, about: String, key: &str, address: &str) {
        let denom = key == "denom" && about.starts_with("evm/");
        match checksummed(address) {
            None => self.error(about, format!("{key} is no address of 20 bytes in hex with 0x")),
            Some(right) if right == address => {}
            Some(right) if denom => {
                self.error(about, format!("the case of {key} is part of it and must be that of {right}"));
            }
            Some(_) if address == address.to_lowercase() => {}
            Some(right) => {
                self.error(about, format!("the checksum of {key} is wrong: compare it with {right}"));
            }
        }
    }

    fn symbols(&mut self) {
        let mut shown: BTreeMap<(ChainRef, &str), Vec<&str>> = BTreeMap::new();
        for (_, asset) in self.registry.assets().filter(|(_, asset)| !asset.hidden) {
            shown.entry((asset.chain, &asset.symbol)).or_default().push(&asset.denom);
        }
        for ((chain, symbol), denoms) in shown.into_iter().filter(|(_, denoms)| denoms.len() > 1) {
            let about = format!("{symbol} of {}", self.registry[chain].id);
            self.warning(
                about,
                format!("is the symbol of {}: people cannot tell them apart", denoms.join(", ")),
            );
        }
    }

    /// Pairs that one wrapper cannot have both.
    fn pairs(&mut self) {
        let registry = self.registry;
        let pairs: Vec<_> = registry.wrapper_pairs().collect();
        for (made, pair) in &pairs {
            self.part = Some(Part::Asset(*made));
            for (other, _) in pairs.iter().filter(|(_, other)| pair.excludes(registry, other)) {
                let (asset, other) = (&registry[*made], &registry[*other].denom);
                let about = format!("{} of {}", asset.denom, registry[asset.chain].id);
                self.error(about, format!("the wrapper cannot have made both it and `{other}`"));
            }
        }
    }

    fn bridges(&mut self) {
        let registry = self.registry;
        for (reference, bridge) in registry.bridges() {
            self.part = Some(Part::Bridge(reference));
            let l2 = &registry[bridge.l2];
            let about = || format!("bridge {} to {}", bridge.id, l2.id);
            let of =
                |origin: &Origin| matches!(origin, Origin::Bridged { bridge, .. } if *bridge == reference);
            if !registry.assets().any(|(_, asset)| of(&asset.origin)) {
                self.warning(about(), "no asset is bridged by it: add an [[asset]] with `bridged`");
            }
            if l2.endpoints.executor.is_empty() {
                self.warning(about(), "the rollup has no endpoints.executor: withdrawals cannot be proved");
            }
            if !registry[bridge.l1].l1 {
                self.error(about(), format!("leads to `{}`, which is no l1", registry[bridge.l1].id));
            }
        }
    }

    fn ofts(&mut self) {
        let registry = self.registry;
        for (reference, oft) in registry.ofts() {
            self.part = Some(Part::Oft(reference));
            let about = || format!("oft {}", oft.symbol);
            for (index, leg) in oft.legs.iter().enumerate() {
                let chain = &registry[registry[leg.asset].chain];
                if oft.legs[..index].iter().any(|other| other.eid == leg.eid) {
                    self.error(about(), format!("two legs have the eid {}", leg.eid));
                }
                if oft.legs[..index].iter().any(|other| other.shared_decimals != leg.shared_decimals) {
                    self.error(about(), "its legs do not share the same shared_decimals");
                }
                if chain.layer_zero_eid.is_some_and(|eid| eid != leg.eid) {
                    self.error(about(), format!("the eid {} is not that of chain `{}`", leg.eid, chain.id));
                }
                self.leg(about(), leg, chain);
            }
        }
    }

    fn leg(&mut self, about: String, leg: &Leg, chain: &Chain) {
        let evm = chain.kind == ChainKind::Evm;
        if evm {
            self.contract(about.clone(), &format!("the contract on {}", chain.id), &leg.contract);
        }
        if evm == (leg.kind == LegKind::Move) {
            self.error(
                about.clone(),
                format!("the kind of the leg on `{}` is not one of its chain's", chain.id),
            );
        }
        let native = self.registry.native_asset(self.registry[leg.asset].chain) == Some(leg.asset);
        if evm && native != (leg.kind == LegKind::NativeAdapter) {
            self.error(
                about.clone(),
                format!("a native_adapter, and only that, holds the coin of `{}`", chain.id),
            );
        }
        let hex = leg.options.strip_prefix("0x").is_some_and(|digits| hex::decode(digits).is_ok());
        if !hex {
            self.error(about, format!("the options of the leg on `{}` are no hex with 0x", chain.id));
        }
    }
}
