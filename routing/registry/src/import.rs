//! Importers of public registries: the Initia registry and the cosmos chain registry, as stored on disk.
//!
//! # Invariants
//!
//! * Reading is lenient: unknown keys are ignored.
//! * An invalid chain or asset is skipped and reported, and never fails the rest.

mod assets;
mod chains;
mod cosmos;
mod initia;
mod layout;
mod traces;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::draft::{ChainDraft, Draft, Import, Located};
use crate::problem::{LoadError, Place, Problem};

use layout::Json;
pub(crate) use layout::{Layout, recognize};

/// Drafts of public registries, and their problems.
#[derive(Default)]
pub(crate) struct Imported {
    pub(crate) draft: Draft,
    pub(crate) problems: Vec<Problem>,
    /// Chain ids by name: the Cosmos chain registry refers to chains by name.
    names: BTreeMap<String, String>,
    /// The chains to import, and whether they were found; `None` imports all.
    wanted: Option<BTreeMap<String, bool>>,
}

impl Imported {
    /// Starts with the chains of the native format.
    pub(crate) fn new(native: &Draft) -> Self {
        let name = |chain: &Located<ChainDraft>| Some((chain.part.name.clone()?, chain.part.id.clone()));
        Self { names: native.chain.iter().filter_map(name).collect(), ..Self::default() }
    }

    /// Reads the registries that `[import]` names, relative to `dir`.
    pub(crate) fn named(&mut self, dir: &Path, import: &Located<Import>) -> Result<(), LoadError> {
        let Located { place, part: import, .. } = import;
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
        let warning = |(name, _): (&String, _)| {
            let what = format!("no public registry has a live chain `{name}`: take it out of `chains`");
            place.warning(what)
        };
        self.problems.extend(missing.map(warning));
        Ok(())
    }

    /// Reads a folder that is a public registry itself.
    pub(crate) fn folder(&mut self, dir: &Path, layout: &Layout) -> Result<(), LoadError> {
        match layout {
            Layout::Chains(folders) => self.cosmos(dir, dir, folders),
            _ => self.initia(dir, layout),
        }
    }

    /// Whether to import a chain.
    fn imports(&mut self, id: &str, name: &str) -> bool {
        let Some(wanted) = &mut self.wanted else { return true };
        let mut any = false;
        for key in BTreeSet::from([id, name]) {
            if let Some(found) = wanted.get_mut(key) {
                (*found, any) = (true, true);
            }
        }
        any
    }

    /// Reads a file, or reports that it is skipped.
    fn read(&mut self, dir: &Path, path: &Path) -> Option<Json> {
        Json::read(dir, path).map_err(|problem| self.skip(&problem.place, problem.what)).ok()
    }

    /// Parses a chain; `None` if it is not to be imported, or is invalid, which is reported.
    fn chain(&mut self, place: &Place, json: &Value) -> Option<ChainDraft> {
        let draft = chains::chain(json).map_err(|what| self.skip(place, what)).ok()??;
        self.imports(&draft.id, draft.name.as_deref().unwrap_or_default()).then_some(draft)
    }

    /// Reports that a part is skipped.
    fn skip(&mut self, place: &Place, what: impl std::fmt::Display) {
        self.problems.push(place.warning(format!("{what}; it is left out")));
    }
}
