//! Importers of public registries: the Initia registry and the cosmos chain registry, as stored on disk.
//!
//! # Invariants
//!
//! * Reading is lenient: unknown keys are ignored, and an unknown word is neutral.
//! * An invalid chain or asset is skipped and reported, and never fails the rest. A file that is broken stays in its last
//!   good version.
//! * A name of a chain is unique only within its registry.

mod assets;
mod chains;
mod cosmos;
mod initia;
mod layout;
mod names;
mod shape;
mod traces;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::draft::{ChainDraft, Draft, Import, Located};
use crate::files;
use crate::last_good::{Files, OnDisk};
use crate::problem::{LoadError, Place, Problem};

use layout::Json;
pub(crate) use layout::{Layout, recognize};
use shape::Kind;
use words::UnknownWords;

/// Drafts of public registries, and their problems.
pub(crate) struct Imported<'b> {
    pub(crate) draft: Draft,
    pub(crate) problems: Vec<Problem>,
    /// The files in use.
    pub(crate) files: Files,
    /// Those before.
    before: &'b Files,
    words: UnknownWords,
    /// The chains to import, and whether they were found; `None` imports all.
    wanted: Option<BTreeMap<String, bool>>,
}

impl<'b> Imported<'b> {
    pub(crate) fn new(before: &'b Files) -> Self {
        Self {
            draft: Draft::default(),
            problems: Vec::new(),
            files: Files::default(),
            before,
            words: UnknownWords::default(),
            wanted: None,
        }
    }

    /// Reads the registries that `[import]` names, relative to `dir`.
    pub(crate) fn named(&mut self, dir: &Path, import: &Located<Import>) -> Result<(), LoadError> {
        let Located { place, part: import, .. } = import;
        self.wanted =
            import.chains.as_ref().map(|chains| chains.iter().map(|chain| (chain.clone(), false)).collect());
        if let Some(folder) = &import.initia {
            let at = dir.join(folder);
            let layout = recognize(&at, import.network.as_deref())?;
            self.initia(dir, &at, &layout.ok_or(LoadError::Empty(at.clone()))?)?;
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
            _ => self.initia(dir, dir, layout),
        }
    }

    /// All problems, when everything was read.
    pub(crate) fn problems(&mut self) -> Vec<Problem> {
        let mut problems = std::mem::take(&mut self.problems);
        problems.extend(self.words.problems());
        problems
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

    /// Reads a file of the registry in `root`, named relative to `dir` in messages; its last good version if it is broken.
    fn read(&mut self, dir: &Path, root: &Path, path: &Path, kind: Kind) -> Option<Json> {
        let file: Arc<str> = files::name(dir, path).into();
        let place = Place::new(&file, "*");
        let (disk, parsed, reason) = match files::text(path).map_err(|error| error.to_string()) {
            Err(reason) if !path.exists() => (OnDisk::Missing, None, vec![format!("is gone: {reason}")]),
            Err(reason) => (OnDisk::Unusable, None, vec![reason]),
            Ok(text) => match shape::parse(&text, kind) {
                Err(reason) => (OnDisk::Unusable, None, vec![format!("cannot be read: {reason}")]),
                Ok((value, flaws)) => {
                    let reason = flaws.wrong.iter().cloned().collect();
                    // Parts of the other kinds are reported where they are left out.
                    if kind == Kind::Pair {
                        for what in &flaws.lacking {
                            self.skip(&place, what);
                        }
                    }
                    let disk = OnDisk::Usable {
                        text: text.into(),
                        is_sound: flaws.wrong.is_empty(),
                        flaws: flaws.wrong.into_iter().chain(flaws.lacking).collect(),
                    };
                    (disk, Some(value), reason)
                }
            },
        };
        let chosen = self.before.choose(&mut self.files, path, &files::name(root, path), disk);
        let end = match &chosen {
            None => "the file is left out",
            Some((_, true)) => "its last good version stays in use",
            Some((_, false)) => "what is wrong counts as absent, and of a repeated key the last is used",
        };
        self.problems.extend(reason.iter().map(|reason| place.error(format!("{reason}; {end}"))));
        let (text, is_older) = chosen?;
        if is_older && reason.is_empty() {
            let what = "a part lacks a member that it had; the last good version of the file stays in use";
            self.problems.push(place.error(what));
        }
        let value = if is_older { shape::parse(&text, kind).ok()?.0 } else { parsed? };
        Some(Json { file, value })
    }

    /// The chains' folders of the registry in `root`, also those whose `chain.json` is gone. Folders that were read before
    /// come first, so that of two chains with one id the known one stays.
    fn folders(&self, root: &Path, found: &[PathBuf]) -> Result<Vec<PathBuf>, LoadError> {
        let is_known = |folder: &PathBuf| self.before.has(&folder.join("chain.json"));
        let mut folders: Vec<_> = files::entries(root)?
            .into_iter()
            .filter(|folder| found.contains(folder) || folder.is_dir() && is_known(folder))
            .collect();
        folders.sort_by_key(|folder| !is_known(folder));
        Ok(folders)
    }

    /// Whether a file is there, or its last good version is in use.
    fn has(&self, path: &Path) -> bool {
        path.is_file() || self.before.has(path)
    }

    /// Parses a chain; `None` if it is not to be imported, or is invalid, which is reported.
    fn chain(&mut self, place: &Place, json: &Value) -> Option<ChainDraft> {
        let draft =
            chains::chain(json, place, &mut self.words).map_err(|what| self.skip(place, what)).ok()??;
        self.imports(&draft.id, draft.name.as_deref().unwrap_or_default()).then_some(draft)
    }

    /// Whether the chain is the first with its id in one registry; reports it if not.
    fn is_first(&mut self, ids: &mut BTreeMap<String, Place>, draft: &ChainDraft, place: &Place) -> bool {
        if let Some(first) = ids.get(&draft.id) {
            let what = format!("chain `{}` is there twice: also in {first}", draft.id);
            self.skip(place, what);
            return false;
        }
        ids.insert(draft.id.clone(), place.clone());
        true
    }

    /// Reports that a part is skipped.
    fn skip(&mut self, place: &Place, what: impl std::fmt::Display) {
        self.problems.push(place.warning(format!("{what}; it is left out")));
    }
}
