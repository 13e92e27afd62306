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
use crate::draft::{AssetDraft, BridgeDraft, ChainDraft, Draft, Located, OftDraft, Source, VenueDraft};
use crate::fingerprint;
use crate::model::{Bridge, Chain, ChainKind, ChainRef, Endpoints, Leg, NativeCoin, Oft, Venue};
use crate::problem::{LoadError, Place, Problem};
use crate::snapshot::Registry;
use chain::Vm;
use layers::layered;

/// OPinit's usual challenge period.
const FINALIZATION_SECONDS: u64 = 604_800;
/// OPinit's usual interval between outputs.
const SUBMISSION_SECONDS: u64 = 3_600;

/// Puts drafts together. `imports` says whether public registries were to be read, which may lose parts on their own.
pub(crate) fn assemble(draft: Draft, imports: bool) -> Result<(Registry, Vec<Problem>), LoadError> {
    let mut assembly =
        Assembly { builder: Builder::new(), outcome: Outcome { imports, ..Outcome::default() } };
    let mut implied = assembly.chains(draft.chains);
    assembly.channels(draft.channels);
    assembly.bridges(draft.bridges);
    implied.extend(draft.assets);
    assembly.assets(implied);
    assembly.ofts(draft.ofts);
    assembly.venues(draft.venues);
    let mut logos = draft.bridge_logos;
    logos.sort_by(|a, b| (a.part.0, &a.place).cmp(&(b.part.0, &b.place)));
    for pair in logos.windows(2) {
        if pair[0].part.0 == pair[1].part.0 {
            assembly.outcome.refuse(&pair[1], format!("is there twice: also in {}", pair[0].place));
        }
    }
    for logo in logos {
        assembly.builder.bridge_logo(logo.part.0, logo.part.1);
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
    /// A part does not fit.
    fn refuse<T>(&mut self, part: &Located<T>, what: impl Into<String>) {
        self.fail(part.source, &part.place, what.into());
    }

    /// A part names something that is not there.
    fn missing<T>(&mut self, part: &Located<T>, what: impl Into<String>) {
        if self.imports && part.source == Source::Own {
            self.problems.push(part.place.error(format!("{}; it is left out", what.into())));
        } else {
            self.refuse(part, what);
        }
    }

    fn fail(&mut self, source: Source, place: &Place, what: String) {
        match source {
            Source::Own => {
                let problem = place.error(what);
                // The least, so that it does not depend on the order.
                if self.refused.as_ref().is_none_or(|refused| problem < *refused) {
                    self.refused = Some(problem);
                }
            }
            Source::Paired | Source::Initia | Source::Cosmos => {
                self.problems.push(place.error(format!("{what}; it is left out")));
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
        let hash = fingerprint::of(self.builder.so_far());
        Ok((self.builder.finish(hash), problems))
    }

    /// Adds the chains; their own coins are assets that follow from them.
    fn chains(&mut self, drafts: Vec<Located<ChainDraft>>) -> Vec<Located<AssetDraft>> {
        let outcome = &mut self.outcome;
        let drafts = layered(
            drafts,
            |chain| chain.id.clone(),
            ChainDraft::over,
            |part, other| {
                outcome.refuse(part, format!("chain `{}` is there twice: also in {other}", part.part.id));
            },
        );
        let mut chains: Vec<_> = drafts.into_iter().map(|draft| (chain(&draft.part), draft)).collect();
        let order = |chain: &Chain| (!chain.l1, chain.kind == ChainKind::Evm, chain.id.clone());
        chains.sort_by_key(|(chain, _)| order(chain));
        let mut coins = Vec::new();
        for (chain, draft) in chains {
            let coin = chain.native.as_ref().map(|coin| coin_asset(&chain, coin));
            match self.builder.chain(chain) {
                Ok(_) => coins.extend(coin.map(|part| Located {
                    source: Source::Implied,
                    place: draft.place.clone(),
                    part,
                })),
                Err(bad) => self.outcome.refuse(&draft, bad.to_string()),
            }
        }
        coins
    }

    fn bridges(&mut self, drafts: Vec<Located<BridgeDraft>>) {
        let outcome = &mut self.outcome;
        let drafts = layered(
            drafts,
            |bridge| bridge.l2.clone(),
            BridgeDraft::over,
            |part, other| {
                outcome.refuse(
                    part,
                    format!("the bridge of `{}` is there twice: also in {other}", part.part.l2),
                );
            },
        );
        let mut bridges = Vec::new();
        for draft in drafts {
            match self.bridge(&draft.part) {
                Ok(bridge) => bridges.push((bridge, draft)),
                Err(what) => self.outcome.missing(&draft, what),
            }
        }
        bridges.sort_by_key(|(bridge, _)| (bridge.l1, bridge.id));
        for (bridge, draft) in bridges {
            if let Err(bad) = self.builder.bridge(bridge) {
                self.outcome.refuse(&draft, bad.to_string());
            }
        }
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
        for (denom, port, channel) in draft.migrated.iter().flatten() {
            let reference = registry.channel_at(l1, port, channel);
            let reference = reference.ok_or_else(|| {
                format!(
                    "`{denom}` is migrated to {port}/{channel} of `{}`, which is in no list",
                    registry[l1].id
                )
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
        drafts.sort_by(|a, b| (&a.part.symbol, &a.place).cmp(&(&b.part.symbol, &b.place)));
        let mut ofts = Vec::new();
        for draft in drafts {
            match self.oft(&draft.part) {
                Ok(oft) => ofts.push((oft, draft)),
                Err(what) => self.outcome.missing(&draft, what),
            }
        }
        let first = |oft: &Oft| oft.legs.first().map(|leg| leg.asset);
        ofts.sort_by(|(a, _), (b, _)| (&a.symbol, first(a)).cmp(&(&b.symbol, first(b))));
        for (oft, draft) in ofts {
            if let Err(bad) = self.builder.oft(oft) {
                self.outcome.refuse(&draft, bad.to_string());
            }
        }
    }

    fn oft(&self, draft: &OftDraft) -> Result<Oft, String> {
        let registry = self.builder.so_far();
        let mut legs = Vec::new();
        for leg in &draft.legs {
            let chain = self.known_chain(&leg.chain).map_err(|what| format!("{}: {what}", leg.place))?;
            let asset = registry.asset(chain, &leg.denom).ok_or_else(|| {
                format!("{}: chain `{}` has no asset `{}`: add an [[asset]]", leg.place, leg.chain, leg.denom)
            })?;
            let eid = leg.eid.or(registry[chain].layer_zero_eid);
            legs.push(Leg {
                asset,
                kind: leg.kind,
                contract: leg.contract.clone(),
                eid: eid.ok_or_else(|| {
                    format!(
                        "{}: `eid` is missing, and chain `{}` has no layer_zero.eid",
                        leg.place, leg.chain
                    )
                })?,
                shared_decimals: leg.shared_decimals,
                options: leg.options.clone(),
                messaging_fee: leg.messaging_fee,
                terms: leg.terms.clone(),
            });
        }
        legs.sort_by_key(|leg| leg.asset);
        Ok(Oft { symbol: draft.symbol.clone(), legs })
    }

    fn venues(&mut self, mut drafts: Vec<Located<VenueDraft>>) {
        drafts.sort_by(|a, b| {
            (&a.part.name, &a.part.chain, &a.place).cmp(&(&b.part.name, &b.part.chain, &b.place))
        });
        for draft in drafts {
            match self.known_chain(&draft.part.chain) {
                Ok(chain) => {
                    let VenueDraft { name, logo_uri, .. } = draft.part;
                    self.builder.venue(Venue { name, chain, logo_uri });
                }
                Err(what) => self.outcome.missing(&draft, what),
            }
        }
    }
}

/// A chain with defaults for missing members.
fn chain(draft: &ChainDraft) -> Chain {
    let draft = draft.clone();
    let kind = draft.kind.unwrap_or(ChainKind::Cosmos);
    let (l1, vm) = (draft.l1.unwrap_or(false), draft.vm.unwrap_or(Vm::None));
    let initia = draft.initia.unwrap_or(l1 || vm != Vm::None);
    let name = draft.name.unwrap_or_else(|| draft.id.clone());
    let prefix = if initia && kind == ChainKind::Cosmos { "init" } else { "" };
    // An Ethereum block takes 12 seconds, and LayerZero waits for 15 of them; a CometBFT block is final at once.
    let (confirmations, block_seconds) = if kind == ChainKind::Evm { (15, 12) } else { (1, 2) };
    let native = draft.native.map(|coin| NativeCoin {
        denom: coin.denom.unwrap_or_else(|| format!("{name}-native")),
        name: coin.name,
        symbol: coin.symbol,
        decimals: coin.decimals,
    });
    Chain {
        id: draft.id,
        pretty_name: draft.pretty_name.unwrap_or_else(|| name.clone()),
        name,
        kind,
        vm,
        initia,
        l1,
        bech32_prefix: draft.bech32_prefix.unwrap_or_else(|| prefix.to_owned()),
        testnet: draft.testnet.unwrap_or(false),
        hidden: draft.hidden.unwrap_or(false),
        forwards: draft.forwards.unwrap_or(initia),
        logo_uri: draft.logo_uri,
        fee_assets: draft.fee_assets.unwrap_or_default(),
        endpoints: Endpoints {
            rpc: draft.rpc.unwrap_or_default(),
            rest: draft.rest.unwrap_or_default(),
            json_rpc: draft.json_rpc.unwrap_or_default(),
            executor: draft.executor.unwrap_or_default(),
            secret: draft.secret.unwrap_or_default(),
        },
        explorer_tx: draft.explorer_tx,
        native,
        layer_zero_eid: draft.layer_zero_eid,
        layer_zero_endpoint: draft.layer_zero_endpoint,
        confirmations: draft.confirmations.unwrap_or(confirmations),
        block_seconds: draft.block_seconds.unwrap_or(block_seconds),
    }
}

fn coin_asset(chain: &Chain, coin: &NativeCoin) -> AssetDraft {
    AssetDraft {
        chain: chain.id.clone(),
        denom: Some(coin.denom.clone()),
        symbol: Some(coin.symbol.clone()),
        name: Some(coin.name.clone()),
        decimals: Some(coin.decimals),
        ..AssetDraft::default()
    }
}

/// Why a part does not fit.
enum Unfit {
    /// It names something that is not there.
    Missing(String),
    /// It cannot be.
    Bad(BadPart),
}
