//! Assembly of drafts into a registry: drafts of one part are merged and names become references.
//!
//! # Invariants
//!
//! * The result does not depend on the order of the drafts.
//! * An invalid part of a public registry is skipped and reported. An invalid part of the native format fails the load,
//!   unless only a part of a public registry is missing.

mod assets;
mod channels;
mod layers;

use crate::build::{BadPart, Builder};
use crate::denom::TRANSFER_PORT;
use crate::draft::{
    AssetDraft, BridgeDraft, ChainDraft, Draft, LegDraft, Located, OftDraft, Source, VenueDraft,
};
use crate::model::{Bridge, Chain, ChainKind, ChainRef, Endpoints, Leg, Oft, Venue};
use crate::problem::{LoadError, Place, Problem};
use crate::snapshot::Registry;
use crate::{chain_rules, fingerprint};
use chain::Vm;
use layers::layered;

/// OPinit's usual challenge period.
pub const FINALIZATION_SECONDS: u64 = 604_800;
/// OPinit's usual interval between outputs.
pub const SUBMISSION_SECONDS: u64 = 3_600;

/// Assembles drafts. With `imports`, a native part that refers to a part that no public registry has any more is
/// skipped and reported.
pub(crate) fn assemble(draft: Draft, imports: bool) -> Result<(Registry, Vec<Problem>), LoadError> {
    let mut assembly =
        Assembly { builder: Builder::new(), outcome: Outcome { imports, ..Outcome::default() } };
    let mut implied = assembly.chains(draft.chain);
    assembly.channels(draft.channel);
    assembly.bridges(draft.bridge);
    implied.extend(draft.asset);
    assembly.assets(implied);
    assembly.ofts(draft.oft);
    assembly.venues(draft.venue);
    let mut kinds = draft.bridge_kind;
    kinds.sort_by(|a, b| (a.part.id, &a.place).cmp(&(b.part.id, &b.place)));
    for pair in kinds.windows(2) {
        if pair[0].part.id == pair[1].part.id {
            assembly.outcome.refuse(&pair[1], format!("is there twice: also in {}", pair[0].place));
        }
    }
    for kind in kinds {
        assembly.builder.bridge_logo(kind.part.id, kind.part.logo_uri);
    }
    assembly.finish()
}

struct Assembly {
    builder: Builder,
    outcome: Outcome,
}

/// Problems found so far.
#[derive(Default)]
struct Outcome {
    imports: bool,
    problems: Vec<Problem>,
    refused: Option<Problem>,
}

impl Outcome {
    /// Reports an invalid part.
    fn refuse<T>(&mut self, part: &Located<T>, what: impl Into<String>) {
        self.fail(part.source, &part.place, what.into());
    }

    /// Reports a part that names a missing part.
    fn missing<T>(&mut self, part: &Located<T>, what: impl Into<String>) {
        if self.imports && part.source == Source::Native {
            self.problems.push(part.place.error(format!("{}; it is left out", what.into())));
        } else {
            self.refuse(part, what);
        }
    }

    fn fail(&mut self, source: Source, place: &Place, what: String) {
        match source {
            Source::Native => {
                let problem = place.error(what);
                // The smallest problem, so that the result does not depend on the order.
                if self.refused.as_ref().is_none_or(|refused| problem < *refused) {
                    self.refused = Some(problem);
                }
            }
            Source::Paired | Source::Initia | Source::Cosmos => {
                self.problems.push(place.warning(format!("{what}; it is left out")));
            }
            // Dependent parts report the error.
            Source::Implied => {}
        }
    }
}

impl Assembly {
    fn finish(self) -> Result<(Registry, Vec<Problem>), LoadError> {
        if let Some(refused) = self.outcome.refused {
            return Err(refused.into());
        }
        let mut problems = self.outcome.problems;
        problems.sort();
        problems.dedup();
        let hash = fingerprint::sha256(self.builder.so_far());
        Ok((self.builder.finish(hash), problems))
    }

    /// Merges the drafts of each part; two of the same source are an error that names the part.
    fn merged<T>(
        &mut self,
        drafts: Vec<Located<T>>,
        name: fn(&T) -> String,
        over: fn(T, T) -> T,
    ) -> Vec<Located<T>> {
        let outcome = &mut self.outcome;
        layered(drafts, name, over, |draft, other| {
            outcome.refuse(draft, format!("{} is there twice: also in {other}", name(&draft.part)));
        })
    }

    /// Converts the drafts to parts and adds them in an order that does not depend on the files.
    fn add_all<T, P, K: Ord, R>(
        &mut self,
        drafts: Vec<Located<T>>,
        convert: impl Fn(&Self, &T) -> Result<P, String>,
        order: impl Fn(&P) -> K,
        add: impl Fn(&mut Builder, P) -> Result<R, BadPart>,
    ) {
        let mut parts = Vec::new();
        for draft in drafts {
            match convert(self, &draft.part) {
                Ok(part) => parts.push((part, draft)),
                Err(what) => self.outcome.missing(&draft, what),
            }
        }
        parts.sort_by_cached_key(|(part, _)| order(part));
        for (part, draft) in parts {
            if let Err(bad) = add(&mut self.builder, part) {
                self.outcome.refuse(&draft, bad.to_string());
            }
        }
    }

    /// Adds the chains, and returns the assets that they imply: their native coins.
    fn chains(&mut self, drafts: Vec<Located<ChainDraft>>) -> Vec<Located<AssetDraft>> {
        let drafts = self.merged(drafts, |chain| format!("chain `{}`", chain.id), ChainDraft::over);
        let coin = |draft: &Located<ChainDraft>| {
            let part = native_asset(&chain(&draft.part))?;
            Some(Located { source: Source::Implied, place: draft.place.clone(), part })
        };
        let coins = drafts.iter().filter_map(coin).collect();
        let order = |chain: &Chain| (!chain.l1, chain.kind == ChainKind::Evm, chain.id.clone());
        self.add_all(drafts, |_, draft| Ok(chain(draft)), order, Builder::chain);
        coins
    }

    fn bridges(&mut self, drafts: Vec<Located<BridgeDraft>>) {
        let drafts =
            self.merged(drafts, |bridge| format!("the bridge of `{}`", bridge.l2), BridgeDraft::over);
        self.add_all(drafts, Self::bridge, |bridge| (bridge.l1, bridge.id), Builder::bridge);
    }

    fn bridge(&self, draft: &BridgeDraft) -> Result<Bridge, String> {
        let registry = self.builder.so_far();
        let l2 = self.known_chain(&draft.l2)?;
        let l1 = match &draft.l1 {
            Some(l1) => self.known_chain(l1)?,
            None => self.only_l1().ok_or("`l1` is missing: which chain is it?")?,
        };
        let id = draft.id.ok_or("`id` is missing: its number on the L1")?;
        let mut migrated = Vec::new();
        for migrant in draft.migrated.iter().flatten() {
            let end = migrant.channel.split_once('/');
            let (denom, (port, channel)) = (&migrant.denom, end.unwrap_or((TRANSFER_PORT, &migrant.channel)));
            let reference = registry.channel_at(l1, port, channel).ok_or_else(|| {
                let l1 = &registry[l1].id;
                format!("`{denom}` is migrated to {port}/{channel} of `{l1}`, which is in no list")
            })?;
            migrated.push((denom.clone(), reference));
        }
        migrated.sort();
        Ok(Bridge {
            id,
            l1,
            l2,
            paused: draft.paused.clone(),
            deposit_seconds: draft.deposit_seconds,
            finalization_seconds: draft.finalization_seconds.unwrap_or(FINALIZATION_SECONDS),
            submission_seconds: draft.submission_seconds.unwrap_or(SUBMISSION_SECONDS),
            migrated,
        })
    }

    fn only_l1(&self) -> Option<ChainRef> {
        let mut l1s = self.builder.so_far().chains().filter(|(_, chain)| chain.l1);
        let (first, _) = l1s.next()?;
        l1s.next().is_none().then_some(first)
    }

    fn known_chain(&self, id: &str) -> Result<ChainRef, String> {
        self.builder.so_far().chain(id).ok_or_else(|| format!("chain `{id}` is in no list"))
    }

    fn ofts(&mut self, mut drafts: Vec<Located<OftDraft>>) {
        drafts.sort_by(|a, b| a.place.cmp(&b.place));
        let order = |oft: &Oft| (oft.symbol.clone(), oft.legs.first().map(|leg| leg.asset));
        self.add_all(drafts, Self::oft, order, Builder::oft);
    }

    fn oft(&self, draft: &OftDraft) -> Result<Oft, String> {
        let registry = self.builder.so_far();
        let mut legs = Vec::new();
        for leg in &draft.legs {
            let Located { place, part: leg, .. } = leg;
            let LegDraft { chain: id, denom, .. } = leg;
            let chain = self.known_chain(id).map_err(|what| format!("{place}: {what}"))?;
            let asset = registry.asset(chain, denom);
            let eid = leg.eid.or(registry[chain].layer_zero_eid);
            legs.push(Leg {
                asset: asset.ok_or_else(|| {
                    format!("{place}: chain `{id}` has no asset `{denom}`: add an [[asset]]")
                })?,
                kind: leg.kind,
                contract: leg.contract.clone(),
                eid: eid.ok_or_else(|| {
                    format!("{place}: `eid` is missing, and chain `{id}` has no layer_zero.eid")
                })?,
                shared_decimals: leg.shared_decimals,
                options: leg.options.clone().unwrap_or_else(|| "0x".to_owned()),
                messaging_fee: leg.messaging_fee,
                terms: leg.terms.clone(),
            });
        }
        legs.sort_by_key(|leg| leg.asset);
        Ok(Oft { symbol: draft.symbol.clone(), legs })
    }

    fn venues(&mut self, mut drafts: Vec<Located<VenueDraft>>) {
        drafts.sort_by(|a, b| a.place.cmp(&b.place));
        let venue = |assembly: &Self, draft: &VenueDraft| {
            let chain = assembly.known_chain(&draft.chain)?;
            let VenueDraft { name, logo_uri, adapter, pools, .. } = draft.clone();
            if let Some(bad) = adapter.as_ref().filter(|adapter| !is_address(adapter)) {
                return Err(format!("adapter `{bad}` is no Move address: 0x and up to 64 hex digits"));
            }
            if let Some(bad) = pools.iter().find(|pool| !is_pool(pool)) {
                return Err(format!("pool `{bad}` is not `move/` and 64 lower-case hex digits"));
            }
            Ok((draft.chain.clone(), Venue { name, chain, logo_uri, adapter, pools }))
        };
        let order = |(chain, venue): &(String, Venue)| (venue.name.clone(), chain.clone());
        self.add_all(drafts, venue, order, |builder, (_, venue)| {
            builder.venue(venue);
            Ok(())
        });
    }
}

/// Whether a text is the address of a Move account.
fn is_address(text: &str) -> bool {
    text.strip_prefix("0x").is_some_and(|digits| {
        (1..=64).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

/// Whether a text is the denomination of a Move object in the chain's spelling.
fn is_pool(text: &str) -> bool {
    let is_digit = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
    text.strip_prefix("move/").is_some_and(|digits| digits.len() == 64 && digits.bytes().all(is_digit))
}

/// A chain with defaults for missing members.
fn chain(draft: &ChainDraft) -> Chain {
    let draft = draft.clone();
    let kind = draft.kind.unwrap_or(ChainKind::Cosmos);
    let (l1, vm) = (draft.l1.unwrap_or(false), draft.vm.unwrap_or(Vm::None));
    let initia = draft.initia.unwrap_or(l1 || vm != Vm::None);
    let name = draft.name.unwrap_or_else(|| draft.id.clone());
    let prefix = if initia && kind == ChainKind::Cosmos { "init" } else { "" };
    // An Ethereum block takes 12 seconds, and LayerZero waits for 15 blocks; a CometBFT block is final at once.
    let (confirmations, block_seconds) = if kind == ChainKind::Evm { (15, 12) } else { (1, 2) };
    let mut native = draft.native;
    if let Some(coin) = native.as_mut().filter(|coin| coin.denom.is_empty()) {
        coin.denom = format!("{name}-native");
    }
    let (id, endpoints) = (draft.id, draft.endpoints);
    Chain {
        pretty_name: draft.pretty_name.unwrap_or_else(|| name.clone()),
        name,
        kind,
        vm,
        initia,
        l1,
        bech32_prefix: draft.bech32_prefix.unwrap_or_else(|| prefix.to_owned()),
        testnet: draft.testnet.unwrap_or(false),
        hidden: draft.hidden.unwrap_or(false),
        forwards: draft.forwards.unwrap_or_else(|| initia || chain_rules::forwards(&id)),
        forwards_given: draft.forwards.is_some(),
        logo_uri: draft.logo_uri,
        fee_assets: draft.fee_assets.unwrap_or_default(),
        endpoints: Endpoints {
            rpc: endpoints.rpc.unwrap_or_default(),
            rest: endpoints.rest.unwrap_or_default(),
            json_rpc: endpoints.json_rpc.unwrap_or_default(),
            executor: endpoints.executor.unwrap_or_default(),
            secret: endpoints.secret.unwrap_or_default(),
        },
        explorer_tx: draft.explorer_tx,
        native,
        layer_zero_eid: draft.layer_zero.eid,
        layer_zero_endpoint: draft.layer_zero.endpoint,
        confirmations: draft.confirmations.unwrap_or(confirmations),
        block_seconds: draft.block_seconds.unwrap_or(block_seconds),
        id,
    }
}

/// The native coin of an EVM chain as an asset.
fn native_asset(chain: &Chain) -> Option<AssetDraft> {
    let coin = chain.native.clone()?;
    Some(AssetDraft {
        chain: chain.id.clone(),
        denom: Some(coin.denom),
        symbol: Some(coin.symbol),
        name: Some(coin.name),
        decimals: Some(coin.decimals),
        ..AssetDraft::default()
    })
}
