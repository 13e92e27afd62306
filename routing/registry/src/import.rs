//! Importers of public registries: the Initia registry and the cosmos chain registry, as stored on disk.
//!
//! # Invariants
//!
//! * Reading is lenient: unknown keys are ignored.
//! * An invalid chain or asset is skipped and reported, and never fails the rest (`router-mechanics.md` §1.1, §1.2).

mod assets;
mod chains;
mod cosmos;
mod initia;
mod layout;
mod traces;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::draft::{Draft, Located};
use crate::native_format::Import;
use crate::problem::{LoadError, Place, Problem};

pub(crate) use layout::{Layout, recognize};

/// Drafts of public registries, and their problems.
#[derive(Default)]
pub(crate) struct Imported {
    pub(crate) draft: Draft,
    pub(crate) problems: Vec<Problem>,
    /// Ids by name: traces of the cosmos chain registry name chains only so.
    names: BTreeMap<String, String>,
    /// The chains to take, and which of them were found; all if not given.
    wanted: Option<BTreeMap<String, bool>>,
}

impl Imported {
    /// With the chains that our own form knows already.
    pub(crate) fn new(own: &Draft) -> Self {
        let name = |chain: &Located<crate::draft::ChainDraft>| {
            Some((chain.part.name.clone()?, chain.part.id.clone()))
        };
        Self { names: own.chains.iter().filter_map(name).collect(), ..Self::default() }
    }

    /// Reads what `[import]` names, relative to `dir`.
    pub(crate) fn ask(&mut self, dir: &Path, import: &Import) -> Result<(), LoadError> {
        self.wanted =
            import.chains.as_ref().map(|chains| chains.iter().map(|chain| (chain.clone(), false)).collect());
        if let Some(folder) = &import.initia {
            let at = dir.join(folder);
            let layout = recognize(&at, import.network.as_deref())?;
            self.initia(dir, &layout.ok_or(LoadError::Empty(at))?)?;
        }
        if let Some(folder) = &import.chain_registry {
            let at = dir.join(folder);
            match layout::chain_folders(&at)? {
                folders if folders.is_empty() => return Err(LoadError::Empty(at)),
                folders => self.cosmos(dir, &at, &folders)?,
            }
        }
        let missing = self.wanted.iter().flatten().filter(|(_, found)| !**found);
        let said = |(name, _): (&String, _)| {
            import
                .place
                .warning(format!("no public registry has a live chain `{name}`: take it out of `chains`"))
        };
        self.problems.extend(missing.map(said));
        Ok(())
    }

    /// Reads a folder that is a public registry itself.
    pub(crate) fn folder(&mut self, dir: &Path, layout: &Layout) -> Result<(), LoadError> {
        match layout {
            Layout::Chains(folders) => self.cosmos(dir, dir, folders),
            _ => self.initia(dir, layout),
        }
    }

    /// Whether a chain is to be taken.
    fn takes(&mut self, id: &str, name: &str) -> bool {
        let Some(wanted) = &mut self.wanted else { return true };
        let mut any = false;
        for key in BTreeSet::from([id, name]) {
            if let Some(found) = wanted.get_mut(key) {
                (*found, any) = (true, true);
            }
        }
        any
    }

    fn left_out(&mut self, place: &Place, what: impl std::fmt::Display) {
        self.problems.push(place.error(format!("{what}; it is left out")));
    }
}
