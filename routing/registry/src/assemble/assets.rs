//! Assembly of assets in topological order: parents before children.
//!
//! # Invariants
//!
//! * The order of the drafts has no effect.
//! * An asset without a traceable origin is reported, and a cycle of parents is named.

use std::collections::{BTreeMap, BTreeSet};

use super::Assembly;
use super::layers::layered;
use crate::build::BadPart;
use crate::denom::{self, TRANSFER_PORT};
use crate::draft::{AssetDraft, Located, Source};
use crate::model::{Asset, AssetRef, ChainRef, Origin};

/// An asset whose chain and parent are in the registry.
struct Resolved {
    chain: ChainRef,
    denom: String,
    origin: Origin,
    /// The full path of a voucher whose other chain is unknown.
    path: Option<String>,
}

/// Reason why an asset is left out.
enum Unfit {
    /// A referenced part is missing.
    Missing(String),
    /// It contradicts the registry.
    Bad(BadPart),
}

/// The step from an asset to its parent.
struct ParentStep<'d> {
    chain: ChainRef,
    /// Denomination or path of the parent on its chain.
    from: &'d str,
    origin: Box<dyn FnOnce(AssetRef) -> Origin + 'd>,
}

/// Chain id and denomination.
type Name = (String, String);

impl Assembly {
    pub(super) fn assets(&mut self, drafts: Vec<Located<AssetDraft>>) {
        let (outcome, mut contested) = (&mut self.outcome, Vec::new());
        // A draft without a denomination has a key of its own.
        let unnamed = |number| format!(" {number}");
        let keyed = drafts.into_iter().enumerate().map(|(number, draft)| {
            let denom = stated_denom(&draft.part).unwrap_or_else(|| unnamed(number));
            draft.map(|asset| (denom, asset))
        });
        let drafts = layered(
            keyed.collect(),
            |(denom, asset)| (asset.chain.clone(), denom.clone()),
            |(denom, above), (_, below)| {
                let below = if above.has_origin() { below.without_origin() } else { below };
                (denom, above.over(below))
            },
            |part, other| {
                let (denom, asset) = &part.part;
                let twice = format!("`{denom}` is there twice: also in {other}");
                if part.source == Source::Native {
                    return outcome.refuse(part, twice);
                }
                outcome.refuse(part, format!("{twice}, and no route uses that"));
                contested.push((asset.chain.clone(), denom.clone(), twice));
            },
        );
        let mut waiting: Vec<_> = drafts.into_iter().map(|draft| draft.map(|(_, asset)| asset)).collect();
        // Each round adds the children of the round before, so assets are ordered by depth.
        while !waiting.is_empty() {
            let before = waiting.len();
            waiting = self.round(waiting);
            if waiting.len() == before && !self.drop_missing_parents(&mut waiting) {
                self.report_unresolved(&waiting);
                break;
            }
        }
        // Neither of two entries of one list takes precedence.
        for (chain, denom, what) in contested {
            if let Some(asset) = self.registered(&chain, &denom) {
                self.builder.fault(asset, what);
            }
        }
    }

    /// Adds the assets whose parent is in the registry, and returns the others.
    fn round(&mut self, drafts: Vec<Located<AssetDraft>>) -> Vec<Located<AssetDraft>> {
        let (mut resolved, mut waiting) = (Vec::new(), Vec::new());
        for draft in drafts {
            match self.resolve(&draft.part) {
                Ok(Some(asset)) => resolved.push((asset, draft)),
                Ok(None) => waiting.push(draft),
                Err(unfit) => waiting.extend(self.without_origin(draft, unfit)),
            }
        }
        resolved.sort_by(|(a, x), (b, y)| (a.chain, &a.denom, &x.place).cmp(&(b.chain, &b.denom, &y.place)));
        for (asset, draft) in resolved {
            self.add(asset, draft);
        }
        waiting
    }

    /// Resolves chain and parent of an asset; `None` while the parent is not in the registry.
    fn resolve(&self, draft: &AssetDraft) -> Result<Option<Resolved>, Unfit> {
        let missing = |what: &str| Unfit::Missing(format!("`denom` is missing: it {what}"));
        let chain = self.known_chain(&draft.chain).map_err(Unfit::Missing)?;
        let Some(step) = self.parent_step(chain, draft).map_err(Unfit::Missing)? else {
            let denom = draft.denom.clone().or_else(|| draft.path.as_deref().map(denom::of_path));
            let denom = denom.ok_or_else(|| missing("must be given"))?;
            return Ok(Some(Resolved { chain, denom, origin: Origin::Native, path: draft.path.clone() }));
        };
        let registry = self.builder.so_far();
        let by_path = || registry.asset(step.chain, &denom::of_path(step.from));
        let Some(parent) = registry.asset(step.chain, step.from).or_else(by_path) else { return Ok(None) };
        let origin = (step.origin)(parent);
        let computed = self.builder.denom_of(chain, &origin).map_err(Unfit::Bad)?.map(|(denom, _)| denom);
        let denom = draft.denom.clone().or(computed).ok_or_else(|| missing("cannot be computed"))?;
        Ok(Some(Resolved { chain, denom, origin, path: None }))
    }

    /// The step to the parent; `None` for an asset without one.
    fn parent_step<'d>(
        &self,
        chain: ChainRef,
        draft: &'d AssetDraft,
    ) -> Result<Option<ParentStep<'d>>, String> {
        let registry = self.builder.so_far();
        let id = &registry[chain].id;
        Ok(Some(match draft {
            AssetDraft { ibc: Some(ibc), .. } => {
                let (port, name) = (ibc.port.as_deref().unwrap_or(TRANSFER_PORT), &ibc.channel);
                let channel = registry.channel_at(chain, port, name);
                let end = channel.and_then(|channel| Some((channel, registry[channel].beyond(chain)?)));
                let (channel, end) = end.ok_or_else(|| {
                    format!("channel {port}/{name} of `{id}` is in no list: add a [[channel]]")
                })?;
                let origin = Box::new(move |parent| Origin::Ibc { channel, parent });
                ParentStep { chain: end.chain, from: &ibc.from, origin }
            }
            AssetDraft { bridged: Some(bridged), .. } => {
                let bridge = registry.bridge_to(chain);
                let bridge = bridge.ok_or_else(|| format!("`{id}` has no bridge: add a [[bridge]]"))?;
                let origin = Box::new(move |parent| Origin::Bridged { bridge, parent });
                ParentStep { chain: registry[bridge].l1, from: &bridged.from, origin }
            }
            AssetDraft { wrapped: Some(wrapped), .. } => {
                let contract = wrapped.contract.clone();
                let origin = Box::new(move |parent| Origin::Wrapped { contract, parent });
                ParentStep { chain, from: &wrapped.from, origin }
            }
            _ => return Ok(None),
        }))
    }

    /// Drops the origin of the asset if its path gives its denomination; otherwise reports why the asset is left out.
    fn without_origin(&mut self, draft: Located<AssetDraft>, unfit: Unfit) -> Option<Located<AssetDraft>> {
        if self.known_chain(&draft.part.chain).is_ok()
            && let Some(native) = by_path_alone(&draft)
        {
            if let Unfit::Bad(bad) = unfit {
                self.outcome.problems.push(draft.place.warning(format!("{bad}; it counts as made here")));
            }
            return Some(native);
        }
        match unfit {
            Unfit::Missing(what) => self.outcome.missing(&draft, what),
            Unfit::Bad(bad) => self.outcome.refuse(&draft, bad.to_string()),
        }
        None
    }

    /// Drops the origin of assets whose path gives their denomination and whose parent no draft describes. Returns
    /// whether there are any.
    fn drop_missing_parents(&mut self, waiting: &mut [Located<AssetDraft>]) -> bool {
        let described: BTreeSet<Name> = waiting.iter().filter_map(|draft| stated_name(&draft.part)).collect();
        let mut any = false;
        for draft in waiting {
            if self.parent(&draft.part).is_none_or(|parent| !described.contains(&parent))
                && let Some(native) = by_path_alone(draft)
            {
                (*draft, any) = (native, true);
            }
        }
        any
    }

    /// Name of the parent.
    fn parent(&self, draft: &AssetDraft) -> Option<Name> {
        let registry = self.builder.so_far();
        let step = self.parent_step(registry.chain(&draft.chain)?, draft).ok()??;
        Some((registry[step.chain].id.clone(), comparable(&denom::of_path(step.from))))
    }

    /// Reports assets whose parent is missing or descends from them.
    fn report_unresolved(&mut self, waiting: &[Located<AssetDraft>]) {
        let named = |draft: &Located<_>| Some((stated_name(&draft.part)?, self.parent(&draft.part)?));
        let parents: BTreeMap<Name, Name> = waiting.iter().filter_map(named).collect();
        for draft in waiting {
            let Some(parent) = self.parent(&draft.part) else { continue };
            if let Some(cycle) = cycle(&parents, &parent) {
                self.outcome.refuse(draft, format!("its origin leads back to itself: {cycle}"));
            } else if draft.source == Source::Native || !parents.contains_key(&parent) {
                let (chain, denom) = parent;
                let what =
                    format!("it comes from `{denom}` of `{chain}`, which is in no list: add an [[asset]]");
                self.outcome.missing(draft, what);
            }
        }
    }

    fn add(&mut self, resolved: Resolved, draft: Located<AssetDraft>) {
        let path = resolved.path.clone();
        let added = match (self.asset(resolved, &draft.part), path, &draft.part.path) {
            (Err(missing), ..) => return self.outcome.missing(&draft, missing),
            (Ok(asset), Some(path), _) => self.builder.voucher(asset, &path),
            (Ok(asset), None, Some(path)) => {
                let computed = self.builder.asset(asset.clone());
                computed.or_else(|bad| self.builder.voucher(asset, path).map_err(|_| bad))
            }
            (Ok(asset), None, None) => self.builder.asset(asset),
        };
        let Err(bad) = added else { return };
        // The path may be right even if the trace contradicts the denomination.
        let taken = draft.part.denom.as_ref().and_then(|denom| self.registered(&draft.part.chain, denom));
        if taken.is_none()
            && let Some(native) = by_path_alone(&draft)
            && let Ok(Some(resolved)) = self.resolve(&native.part)
        {
            self.outcome.problems.push(draft.place.warning(format!("{bad}; it counts as made here")));
            return self.add(resolved, native);
        }
        self.outcome.refuse(&draft, bad.to_string());
    }

    fn registered(&self, chain: &str, denom: &str) -> Option<AssetRef> {
        let registry = self.builder.so_far();
        registry.asset(registry.chain(chain)?, denom)
    }

    /// The asset, with missing members copied from its parent.
    fn asset(&self, resolved: Resolved, draft: &AssetDraft) -> Result<Asset, String> {
        let registry = self.builder.so_far();
        let parent = resolved.origin.parent().map(|parent| &registry[parent]);
        let inherited = |text: &Option<String>, of: fn(&Asset) -> Option<&String>| {
            text.clone().or_else(|| parent.and_then(of).cloned())
        };
        let wrapped = matches!(resolved.origin, Origin::Wrapped { .. });
        let decimals = if wrapped { Some(18) } else { parent.map(|parent| parent.decimals) };
        Ok(Asset {
            chain: resolved.chain,
            denom: resolved.denom,
            symbol: inherited(&draft.symbol, |parent| Some(&parent.symbol)).ok_or("`symbol` is missing")?,
            name: inherited(&draft.name, |parent| parent.name.as_ref()),
            decimals: draft.decimals.or(decimals).ok_or("`decimals` is missing, and no list has them")?,
            contract: draft.contract.clone(),
            logo_uri: inherited(&draft.logo_uri, |parent| parent.logo_uri.as_ref()),
            description: inherited(&draft.description, |parent| parent.description.as_ref()),
            coingecko_id: inherited(&draft.coingecko_id, |parent| parent.coingecko_id.as_ref()),
            price_usd: inherited(&draft.price_usd, |parent| parent.price_usd.as_ref()),
            hidden: draft.hidden.unwrap_or(false),
            origin: resolved.origin,
            terms: draft.terms.clone().unwrap_or_default(),
        })
    }
}

/// The denomination that a draft states, in its comparable form.
fn stated_denom(draft: &AssetDraft) -> Option<String> {
    let by_path = || draft.path.as_deref().map(denom::of_path);
    draft.denom.clone().or_else(by_path).map(|denom| comparable(&denom))
}

fn stated_name(draft: &AssetDraft) -> Option<Name> {
    Some((draft.chain.clone(), stated_denom(draft)?))
}

/// Hex in these denominations is case-insensitive; see [`crate::Registry::asset`].
fn comparable(denom: &str) -> String {
    let hex = denom.starts_with("0x") || denom.starts_with("evm/");
    if hex { denom.to_ascii_lowercase() } else { denom.to_owned() }
}

/// The draft without its origin, if it has one and a path that gives its denomination.
fn by_path_alone(draft: &Located<AssetDraft>) -> Option<Located<AssetDraft>> {
    let path = draft.part.path.as_deref().filter(|_| draft.part.has_origin())?;
    let fits = draft.part.denom.as_deref().is_none_or(|denom| denom == denom::of_path(path));
    fits.then(|| draft.clone().map(AssetDraft::without_origin))
}

/// The cycle of parents from `start` back to it, if there is one.
fn cycle(parents: &BTreeMap<Name, Name>, start: &Name) -> Option<String> {
    let (mut at, mut names) = (start, Vec::new());
    for _ in 0..=parents.len() {
        names.push(format!("`{}` of `{}`", at.1, at.0));
        at = parents.get(at)?;
        if at == start {
            names.push(format!("`{}` of `{}`", at.1, at.0));
            return Some(names.join(" from "));
        }
    }
    None
}
