//! Consistency check of a registry for its operator, without network access.
//!
//! # Invariants
//!
//! * An error is a part on which a route would fail; a warning is unusual and possibly intended.
//! * Values of node addresses are never printed.
//! * No route uses a part that has an error.

use std::collections::BTreeMap;

use crate::address::checksummed;
use crate::chain_rules;
use crate::decimal;
use crate::denom;
use crate::model::{
    Asset, AssetRef, Bridge, BridgeRef, Chain, ChainKind, ChainRef, FeeAsset, Leg, LegKind, Oft, Origin,
};
use crate::problem::{Place, Problem, Severity};
use crate::snapshot::{Part, Registry};

/// Errors and warnings, sorted.
pub fn check(registry: &Registry) -> Vec<Problem> {
    let mut found: Vec<_> = all(registry).into_iter().map(|(_, problem)| problem).collect();
    found.sort();
    found
}

/// The errors of the parts that routes use.
pub(crate) fn errors(registry: &Registry) -> impl Iterator<Item = (Part, String)> + use<> {
    let errors = all(registry).into_iter().filter(|(_, problem)| problem.severity == Severity::Error);
    errors.filter_map(|(part, problem)| Some((part?, problem.what)))
}

/// Every problem, with its part.
fn all(registry: &Registry) -> Vec<(Option<Part>, Problem)> {
    let mut check = Check { registry, part: None, about: String::new(), found: Vec::new() };
    for (reference, chain) in registry.chains() {
        check.about = format!("chain {}", chain.id);
        check.chain(reference, chain);
    }
    check.rules();
    check.symbols();
    for (reference, asset) in registry.assets() {
        check.part = Some(Part::Asset(reference));
        check.about = format!("{} of {}", asset.denom, registry[asset.chain].id);
        check.asset(reference, asset);
    }
    check.pairs();
    for (reference, bridge) in registry.bridges() {
        check.part = Some(Part::Bridge(reference));
        check.about = format!("bridge {} to {}", bridge.id, registry[bridge.l2].id);
        check.bridge(reference, bridge);
    }
    for (reference, oft) in registry.ofts() {
        check.part = Some(Part::Oft(reference));
        check.about = format!("oft {}", oft.symbol);
        for (index, leg) in oft.legs.iter().enumerate() {
            check.leg(leg, &oft.legs[..index]);
        }
    }
    check.found
}

struct Check<'a> {
    registry: &'a Registry,
    /// Part under check, unless it is a chain.
    part: Option<Part>,
    /// Name of the part under check.
    about: String,
    found: Vec<(Option<Part>, Problem)>,
}

impl Check<'_> {
    fn error(&mut self, what: impl Into<String>) {
        let mut what = what.into();
        if self.part.is_some() {
            what.push_str("; no route uses it");
        }
        self.found.push((self.part, Place::about(&self.about).error(what)));
    }

    fn warning(&mut self, what: impl Into<String>) {
        self.found.push((self.part, Place::about(&self.about).warning(what)));
    }

    fn chain(&mut self, reference: ChainRef, chain: &Chain) {
        let nodes = &chain.endpoints;
        let (needed, name) = match chain.kind {
            ChainKind::Cosmos => (&["rpc", "rest"][..], "a cosmos chain"),
            ChainKind::Evm => (&["json_rpc"][..], "an EVM chain"),
        };
        for (kind, addresses) in [
            ("rpc", &nodes.rpc),
            ("rest", &nodes.rest),
            ("json_rpc", &nodes.json_rpc),
            ("executor", &nodes.executor),
        ] {
            if needed.contains(&kind) && addresses.is_empty() {
                self.warning(format!("{name} without endpoints.{kind}: its transfers cannot be followed"));
            }
            let http = |address: &String| address.starts_with("http://") || address.starts_with("https://");
            if !addresses.iter().all(http) {
                self.error(format!("an address in endpoints.{kind} does not begin with http:// or https://"));
            }
        }
        if chain.explorer_tx.as_deref().is_some_and(|page| !page.contains("${txHash}")) {
            self.error("explorer_tx has no `${txHash}`: it would show the same page for every transaction");
        }
        if chain.l1 && chain.name != "initia" {
            self.warning("clients know the L1 by the name `initia`, and this one has another");
        }
        let cosmos = chain.kind == ChainKind::Cosmos;
        if cosmos && !chain::address::is_prefix(&chain.bech32_prefix) {
            self.error("bech32_prefix cannot be one");
        }
        if let Some(endpoint) = chain.layer_zero_endpoint.as_deref().filter(|_| !cosmos) {
            self.contract("layer_zero.endpoint", endpoint);
        }
        if cosmos && chain.fee_assets.is_empty() {
            self.warning("no fee_assets: clients cannot tell what a transaction costs");
        }
        for FeeAsset { denom, low, average, high } in &chain.fee_assets {
            if self.registry.asset(reference, denom).is_none() {
                self.warning(format!("fees are paid in `{denom}`, which is in no list: add an [[asset]]"));
            }
            if [low, average, high].iter().any(|price| !price.is_empty() && !decimal::is_plain(price)) {
                self.error(format!("a price of `{denom}` is not a decimal number"));
            }
        }
        if !self.is_connected(reference) {
            self.warning("no channel, bridge or OFT connects it: nothing can be routed");
        }
    }

    fn is_connected(&self, chain: ChainRef) -> bool {
        let registry = self.registry;
        let has_leg = |oft: &Oft| oft.legs.iter().any(|leg| registry[leg.asset].chain == chain);
        registry.channels().any(|(_, channel)| channel.on(chain).is_some())
            || registry.bridges().any(|(_, bridge)| bridge.l1 == chain || bridge.l2 == chain)
            || registry.ofts().any(|(_, oft)| has_leg(oft))
    }

    fn asset(&mut self, reference: AssetRef, asset: &Asset) {
        let registry = self.registry;
        if asset.price_usd.as_deref().is_some_and(|price| !decimal::is_plain(price)) {
            self.error("price_usd is not a decimal number such as 0.15");
        }
        if let Some(contract) = &asset.contract {
            self.contract("contract", contract);
        }
        if let Some(named) = denom::contract(&asset.denom) {
            let same = |contract: &String| contract.eq_ignore_ascii_case(&named);
            if asset.denom.starts_with("evm/") && !asset.contract.as_ref().is_none_or(same) {
                self.error("contract is not the one that the denomination names");
            }
            self.contract("denom", &named);
        }
        let unknown = asset.origin == Origin::Native && asset.denom.starts_with("ibc/");
        if unknown && registry.path(reference) == asset.denom {
            self.warning("the origin of this voucher is unknown: give it `ibc` or `path`");
        }
        let Some(parent) = asset.origin.parent() else { return };
        let (here, there) = (asset.decimals, registry[parent].decimals);
        if let Origin::Wrapped { contract, .. } = &asset.origin {
            self.contract("wrapped.contract", contract);
            if registry.wrapper_pair(reference).is_none() {
                self.error(format!(
                    "wrapped with {here} decimals, what it stands for has {there}: an ERC20Wrapper makes a token with \
                     18 decimals of one with fewer, or a token with 6 of one with more"
                ));
            }
        } else if here != there {
            self.error(format!(
                "has {here} decimals, but what it stands for has {there}: amounts stay on the way"
            ));
        }
    }

    /// A contract's address has 20 bytes, and mixed case must match its EIP-55 checksum.
    fn contract(&mut self, key: &str, address: &str) {
        let case_matters = key == "denom" && self.about.starts_with("evm/");
        match checksummed(address) {
            None => self.error(format!("{key} is not an address of 20 bytes in hex with 0x")),
            Some(right) if right == address => {}
            Some(right) if case_matters => {
                self.error(format!("the case of {key} is part of it and must be that of {right}"));
            }
            Some(_) if address == address.to_lowercase() => {}
            Some(right) => self.error(format!("the checksum of {key} is wrong: compare it with {right}")),
        }
    }

    /// Rules of a chain that goes on under another id: `noble-1` and `noble-2`.
    fn rules(&mut self) {
        fn stem(id: &str) -> Option<&str> {
            let (stem, number) = id.rsplit_once('-')?;
            number.bytes().all(|byte| byte.is_ascii_digit()).then_some(stem)
        }
        let registry = self.registry;
        for old in chain_rules::chain_ids().filter(|old| registry.chain(old).is_none()) {
            let next = |(_, chain): &(ChainRef, &Chain)| stem(old).is_some() && stem(&chain.id) == stem(old);
            if let Some((_, chain)) = registry.chains().find(next) {
                self.about = format!("chain {}", chain.id);
                self.warning(format!(
                    "the list of rules of single chains has `{old}` and not this one: if it goes on under this id, state \
                     `forwards`"
                ));
            }
        }
    }

    fn symbols(&mut self) {
        let mut shown: BTreeMap<(ChainRef, &str), Vec<&str>> = BTreeMap::new();
        for (_, asset) in self.registry.assets().filter(|(_, asset)| !asset.hidden) {
            shown.entry((asset.chain, &asset.symbol)).or_default().push(&asset.denom);
        }
        for ((chain, symbol), denoms) in shown.into_iter().filter(|(_, denoms)| denoms.len() > 1) {
            self.about = format!("{symbol} of {}", self.registry[chain].id);
            self.warning(format!("is the symbol of {}: people cannot tell them apart", denoms.join(", ")));
        }
    }

    /// Pairs that exclude each other in one wrapper.
    fn pairs(&mut self) {
        let registry = self.registry;
        let pairs: Vec<_> = registry.wrapper_pairs().collect();
        for (made, pair) in &pairs {
            self.part = Some(Part::Asset(*made));
            self.about = format!("{} of {}", registry[*made].denom, registry[registry[*made].chain].id);
            for (other, _) in pairs.iter().filter(|(_, other)| pair.excludes(registry, other)) {
                let other = &registry[*other].denom;
                self.error(format!("the wrapper cannot have made both it and `{other}`"));
            }
        }
    }

    fn bridge(&mut self, reference: BridgeRef, bridge: &Bridge) {
        let registry = self.registry;
        let bridged =
            |asset: &Asset| matches!(asset.origin, Origin::Bridged { bridge, .. } if bridge == reference);
        if !registry.assets().any(|(_, asset)| bridged(asset)) {
            self.warning("no asset is bridged by it: add an [[asset]] with `bridged`");
        }
        if registry[bridge.l2].endpoints.executor.is_empty() {
            self.warning("the rollup has no endpoints.executor: withdrawals cannot be proved");
        }
        if !registry[bridge.l1].l1 {
            self.error(format!("leads to `{}`, which is not an l1", registry[bridge.l1].id));
        }
    }

    /// Checks a leg on its own and against the legs before it.
    fn leg(&mut self, leg: &Leg, before: &[Leg]) {
        let registry = self.registry;
        let (reference, eid) = (registry[leg.asset].chain, leg.eid);
        let chain = &registry[reference];
        if before.iter().any(|other| other.eid == eid) {
            self.error(format!("two legs have the eid {eid}"));
        }
        if before.iter().any(|other| other.shared_decimals != leg.shared_decimals) {
            self.error("its legs do not share the same shared_decimals");
        }
        if chain.layer_zero_eid.is_some_and(|of_chain| of_chain != eid) {
            self.error(format!("the eid {eid} is not that of chain `{}`", chain.id));
        }
        let evm = chain.kind == ChainKind::Evm;
        if evm {
            self.contract(&format!("the contract on {}", chain.id), &leg.contract);
        }
        if evm == (leg.kind == LegKind::Move) {
            self.error(format!("the kind of the leg on `{}` is not one of its chain's", chain.id));
        }
        let native = registry.native_asset(reference) == Some(leg.asset);
        if evm && native != (leg.kind == LegKind::NativeAdapter) {
            self.error(format!("a native_adapter, and only that, holds the coin of `{}`", chain.id));
        }
        if leg.options.strip_prefix("0x").is_none_or(|digits| hex::decode(digits).is_err()) {
            self.error(format!("the options of the leg on `{}` are not hex with 0x", chain.id));
        }
    }
}
