//! Assembly of assets, parents first.
//!
//! # Invariants
//!
//! * The order of the drafts has no effect.
//! * An asset without a traceable origin is reported, and a cycle of parents is named.

use std::collections::{BTreeMap, BTreeSet};

use super::layers::layered;
use super::{Assembly, Unfit};
use crate::denom;
use crate::draft::{AssetDraft, Located, OriginDraft, Source};
use crate::model::{Asset, AssetRef, ChainKind, ChainRef, Origin};

/// A draft that has its chain and what it was made of.
struct Ready {
    chain: ChainRef,
    denom: String,
    origin: Origin,
    /// The full path of a voucher whose other chain is not known.
    path: Option<String>,
    draft: Located<AssetDraft>,
}

/// Resolution state of a draft.
enum State {
    Ready(Box<Ready>),
    /// What it was made of is not there yet: on which chain, which denomination.
    Waiting(Located<AssetDraft>),
    Unfit(Located<AssetDraft>, Unfit),
}

impl Assembly {
    pub(super) fn assets(&mut self, drafts: Vec<Located<AssetDraft>>) {
        let (outcome, mut nameless, mut contested) = (&mut self.outcome, 0, Vec::new());
        let keyed = drafts.into_iter().map(|draft| {
            nameless += 1;
            let denom = stated(&draft.part).unwrap_or_else(|| format!(" {nameless}"));
            Located { source: draft.source, place: draft.place, part: (denom, draft.part) }
        });
        let drafts = layered(
            keyed.collect(),
            |(denom, asset)| (asset.chain.clone(), denom.clone()),
            |above, below| (above.0, above.1.over(below.1)),
            |part, other| {
                let twice = format!("`{}` is there twice: also in {other}", part.part.0);
                if part.source == Source::Own {
                    return outcome.refuse(part, twice);
                }
                outcome.refuse(part, format!("{twice}, and no route uses that"));
                contested.push((part.part.1.chain.clone(), part.part.0.clone(), twice));
            },
        );
        let mut waiting: Vec<_> = drafts
            .into_iter()
            .map(|draft| Located { source: draft.source, place: draft.place, part: draft.part.1 })
            .collect();
        // Each round adds what hangs on the one before, so that the order is by depth.
        while !waiting.is_empty() {
            let before = waiting.len();
            waiting = self.round(waiting);
            if waiting.len() == before && !self.set_free(&mut waiting) {
                self.stranded(&waiting);
                break;
            }
        }
        // Neither of two entries of one list takes precedence.
        for (chain, denom, what) in contested {
            let chain = self.builder.so_far().chain(&chain);
            if let Some(asset) = chain.and_then(|chain| self.builder.so_far().asset(chain, &denom)) {
                self.builder.fault(asset, what);
            }
        }
    }

    /// Adds what can be added, and returns the others.
    fn round(&mut self, drafts: Vec<Located<AssetDraft>>) -> Vec<Located<AssetDraft>> {
        let (mut ready, mut waiting) = (Vec::new(), Vec::new());
        for draft in drafts {
            match self.state(draft) {
                State::Ready(part) => ready.push(*part),
                State::Waiting(draft) => waiting.push(draft),
                State::Unfit(draft, unfit) => waiting.extend(self.unfit(draft, unfit)),
            }
        }
        ready.sort_by(|x, y| (x.chain, &x.denom, &x.draft.place).cmp(&(y.chain, &y.denom, &y.draft.place)));
        for part in ready {
            self.add(part);
        }
        waiting
    }

    fn state(&self, draft: Located<AssetDraft>) -> State {
        let registry = self.builder.so_far();
        let Some(chain) = registry.chain(&draft.part.chain) else {
            let missing = format!("chain `{}` is in no list", draft.part.chain);
            return State::Unfit(draft, Unfit::Missing(missing));
        };
        let Some(origin) = &draft.part.origin else { return Self::native(chain, draft) };
        let origin = match self.origin(chain, origin) {
            Ok(Some(origin)) => origin,
            Ok(None) => return State::Waiting(draft),
            Err(missing) => return State::Unfit(draft, Unfit::Missing(missing)),
        };
        let computed = match self.builder.denom_of(chain, &origin) {
            Ok(computed) => computed.map(|(denom, _)| denom),
            Err(bad) => return State::Unfit(draft, Unfit::Bad(bad)),
        };
        let Some(denom) = draft.part.denom.clone().or(computed) else {
            return State::Unfit(
                draft,
                Unfit::Missing("`denom` is missing: it cannot be computed".to_owned()),
            );
        };
        State::Ready(Box::new(Ready { chain, denom, origin, path: None, draft }))
    }

    fn native(chain: ChainRef, draft: Located<AssetDraft>) -> State {
        let path = draft.part.path.clone();
        let Some(denom) = draft.part.denom.clone().or_else(|| path.as_deref().map(denom::of_path)) else {
            return State::Unfit(draft, Unfit::Missing("`denom` is missing: it must be given".to_owned()));
        };
        State::Ready(Box::new(Ready { chain, denom, origin: Origin::Native, path, draft }))
    }

    /// Parent of an asset; `None` while it is not resolved.
    fn origin(&self, chain: ChainRef, origin: &OriginDraft) -> Result<Option<Origin>, String> {
        let registry = self.builder.so_far();
        let id = &registry[chain].id;
        match origin {
            OriginDraft::Ibc { port, channel, from } => {
                let found = registry.channel_at(chain, port, channel);
                let found = found.ok_or_else(|| {
                    format!("channel {port}/{channel} of `{id}` is in no list: add a [[channel]]")
                })?;
                let parent = registry[found].beyond(chain).and_then(|end| self.named(end.chain, from));
                Ok(parent.map(|parent| Origin::Ibc { channel: found, parent }))
            }
            OriginDraft::Bridged { from } => {
                let bridge = registry.bridge_to(chain);
                let bridge = bridge.ok_or_else(|| format!("`{id}` has no bridge: add a [[bridge]]"))?;
                let parent = self.named(registry[bridge].l1, from);
                Ok(parent.map(|parent| Origin::Bridged { bridge, parent }))
            }
            OriginDraft::Wrapped { contract, from } => {
                let parent = self.named(chain, from);
                Ok(parent.map(|parent| Origin::Wrapped { contract: contract.clone(), parent }))
            }
        }
    }

    /// By its denomination or its path.
    fn named(&self, chain: ChainRef, from: &str) -> Option<AssetRef> {
        let registry = self.builder.so_far();
        registry.asset(chain, from).or_else(|| registry.asset(chain, &denom::of_path(from)))
    }

    /// Says why a draft does not fit, or gives it back as one without origin if its path says enough.
    fn unfit(&mut self, draft: Located<AssetDraft>, unfit: Unfit) -> Option<Located<AssetDraft>> {
        let here = self.builder.so_far().chain(&draft.part.chain).is_some();
        if here && let Some(free) = freed(&draft) {
            if let Unfit::Bad(bad) = unfit {
                self.outcome.problems.push(draft.place.warning(format!("{bad}; it counts as made here")));
            }
            return Some(free);
        }
        match unfit {
            Unfit::Missing(what) => self.outcome.missing(&draft, what),
            Unfit::Bad(bad) => self.outcome.refuse(&draft, bad.to_string()),
        }
        None
    }

    /// Lets those be without origin whose path says enough and whose parent will never come. Whether there are any.
    fn set_free(&mut self, waiting: &mut [Located<AssetDraft>]) -> bool {
        let coming: BTreeSet<_> = waiting
            .iter()
            .filter_map(|draft| Some((draft.part.chain.clone(), stated(&draft.part)?)))
            .collect();
        let mut any = false;
        for draft in waiting {
            let parent = self.parent(&draft.part);
            if parent.is_none_or(|parent| !coming.contains(&parent))
                && let Some(free) = freed(draft)
            {
                *draft = free;
                any = true;
            }
        }
        any
    }

    /// Chain and denomination of what a draft was made of.
    fn parent(&self, draft: &AssetDraft) -> Option<(String, String)> {
        let registry = self.builder.so_far();
        let chain = registry.chain(&draft.chain)?;
        let (parent, from) = match draft.origin.as_ref()? {
            OriginDraft::Ibc { port, channel, from } => {
                let channel = registry.channel_at(chain, port, channel)?;
                (registry[channel].beyond(chain)?.chain, from)
            }
            OriginDraft::Bridged { from } => (registry[registry.bridge_to(chain)?].l1, from),
            OriginDraft::Wrapped { from, .. } => (chain, from),
        };
        Some((registry[parent].id.clone(), key(&denom::of_path(from))))
    }

    /// Says of all that wait in vain what they wait for.
    fn stranded(&mut self, waiting: &[Located<AssetDraft>]) {
        let parents: BTreeMap<_, _> = waiting
            .iter()
            .filter_map(|draft| {
                Some(((draft.part.chain.clone(), stated(&draft.part)?), self.parent(&draft.part)?))
            })
            .collect();
        for draft in waiting {
            let Some(parent) = self.parent(&draft.part) else { continue };
            match ring(&parents, &parent) {
                Some(ring) => self.outcome.refuse(draft, format!("its origin leads back to itself: {ring}")),
                None if parents.contains_key(&parent) && draft.source != Source::Own => {}
                None => {
                    let (chain, denom) = parent;
                    self.outcome.missing(
                        draft,
                        format!(
                            "it comes from `{denom}` of `{chain}`, which is in no list: add an [[asset]]"
                        ),
                    );
                }
            }
        }
    }

    fn add(&mut self, ready: Ready) {
        let (path, draft) = (ready.path.clone(), ready.draft.clone());
        let added = match self.asset(ready) {
            Err(missing) => return self.outcome.missing(&draft, missing),
            Ok(asset) => match path {
                Some(path) => self.builder.voucher(asset, &path),
                None => self.builder.asset(asset),
            },
        };
        let Err(bad) = added else { return };
        // A trace that contradicts its own denomination may still have a path that does not.
        let free = freed(&draft).filter(|_| !self.taken(&draft.part));
        match free.map(|free| (self.state(free.clone()), free)) {
            Some((State::Ready(free), _)) => {
                self.outcome.problems.push(draft.place.warning(format!("{bad}; it counts as made here")));
                self.add(*free);
            }
            _ => self.outcome.refuse(&draft, bad.to_string()),
        }
    }

    fn taken(&self, draft: &AssetDraft) -> bool {
        let registry = self.builder.so_far();
        let chain = registry.chain(&draft.chain);
        chain.zip(draft.denom.as_deref()).is_some_and(|(chain, denom)| registry.asset(chain, denom).is_some())
    }

    /// The asset, with missing members copied from its parent.
    fn asset(&self, ready: Ready) -> Result<Asset, String> {
        let registry = self.builder.so_far();
        let parent = ready.origin.parent().map(|parent| &registry[parent]);
        let draft = ready.draft.part;
        let contract = draft.contract.or_else(|| contract_of(registry[ready.chain].kind, &ready.denom));
        let inherited = |text: Option<String>, of: fn(&Asset) -> Option<&String>| {
            text.or_else(|| parent.and_then(of).cloned())
        };
        let wrapped = matches!(ready.origin, Origin::Wrapped { .. });
        let decimals = if wrapped { Some(18) } else { parent.map(|parent| parent.decimals) };
        Ok(Asset {
            chain: ready.chain,
            denom: ready.denom,
            symbol: inherited(draft.symbol, |parent| Some(&parent.symbol)).ok_or("`symbol` is missing")?,
            name: inherited(draft.name, |parent| parent.name.as_ref()),
            decimals: draft.decimals.or(decimals).ok_or("`decimals` is missing, and no list tells them")?,
            contract,
            logo_uri: inherited(draft.logo_uri, |parent| parent.logo_uri.as_ref()),
            description: inherited(draft.description, |parent| parent.description.as_ref()),
            coingecko_id: inherited(draft.coingecko_id, |parent| parent.coingecko_id.as_ref()),
            price_usd: inherited(draft.price_usd, |parent| parent.price_usd.as_ref()),
            hidden: draft.hidden.unwrap_or(false),
            origin: ready.origin,
            terms: draft.terms.unwrap_or_default(),
        })
    }
}

/// The denomination that a draft states, as it is compared.
fn stated(draft: &AssetDraft) -> Option<String> {
    let path = draft.path.as_deref().map(denom::of_path);
    draft.denom.clone().or(path).map(|denom| key(&denom))
}

/// Hex in these has no case, see [`crate::Registry::asset`].
fn key(denom: &str) -> String {
    let hex = denom.starts_with("0x") || denom.starts_with("evm/");
    if hex { denom.to_ascii_lowercase() } else { denom.to_owned() }
}

/// The draft without its origin, if it has a path that gives its denomination.
fn freed(draft: &Located<AssetDraft>) -> Option<Located<AssetDraft>> {
    draft.part.origin.as_ref()?;
    let path = draft.part.path.as_deref()?;
    let fits = draft.part.denom.as_deref().is_none_or(|denom| denom == denom::of_path(path));
    let part = AssetDraft { origin: None, ..draft.part.clone() };
    fits.then(|| Located { source: draft.source, place: draft.place.clone(), part })
}

/// The contract that a denomination names.
fn contract_of(kind: ChainKind, denom: &str) -> Option<String> {
    match denom.strip_prefix("evm/") {
        Some(hex) => Some(format!("0x{hex}")),
        None => (kind == ChainKind::Evm && denom.starts_with("0x")).then(|| denom.to_owned()),
    }
}

/// The way from `start` back to it, if there is one.
fn ring(parents: &BTreeMap<(String, String), (String, String)>, start: &(String, String)) -> Option<String> {
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
