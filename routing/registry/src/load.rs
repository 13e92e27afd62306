//! Loading of a registry from files.
//!
//! # Invariants
//!
//! * The same files give the same registry, in any order of reading.
//! * The size of a file is limited before it is read.
//! * An error in the native format fails the load; an error in a public registry skips the part and is reported. A public
//!   file that is broken stays in its last good version.

use std::path::Path;
use std::sync::Arc;

use crate::assemble::assemble;
use crate::draft::Draft;
use crate::files;
use crate::import::{self, Imported};
use crate::last_good::Files;
use crate::native_format::{self, Environment};
use crate::problem::{LoadError, Problem};
use crate::snapshot::Registry;

/// A registry, and the problems of its files.
#[derive(Debug)]
pub struct Loaded {
    /// The usable registry.
    pub registry: Registry,
    /// Parts of public registries that were skipped, and warnings; sorted. Empty if there are native files only, whose
    /// errors fail the load.
    pub problems: Vec<Problem>,
    /// The files of public registries that it was made of, for the next load of the same folder.
    pub files: Files,
}

/// Loads the registry in the folder `dir`; `README.md` documents its layouts. `${NAME}` in node addresses is replaced
/// by the variable of the process's environment.
pub fn load(dir: &Path) -> Result<Loaded, LoadError> {
    load_again(dir, &Files::default())
}

/// Like [`load`], with the files of the load before: a file of a public registry that is broken now stays in its last
/// good version.
pub fn load_again(dir: &Path, before: &Files) -> Result<Loaded, LoadError> {
    load_from(dir, before, &|name| std::env::var(name).ok())
}

/// Like [`load`], with another environment.
pub fn load_with(dir: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<Loaded, LoadError> {
    load_from(dir, &Files::default(), environment)
}

fn load_from(dir: &Path, before: &Files, environment: Environment<'_>) -> Result<Loaded, LoadError> {
    let layout = import::recognize(dir, None)?;
    let mut paths = files::native_files(dir)?;
    if layout.is_some() {
        // Other files of a checkout belong to the public registry.
        paths.retain(|path| path.file_stem().is_some_and(|stem| stem == "registry"));
    }
    if paths.is_empty() && layout.is_none() {
        return Err(LoadError::Empty(dir.to_owned()));
    }
    let mut texts = Vec::new();
    for path in paths {
        texts.push((files::name(dir, &path), files::text(&path)?));
    }
    let mut draft = parse(&texts, environment)?;
    let mut imported = Imported::new(before);
    if let Some(layout) = &layout {
        imported.folder(dir, layout)?;
    }
    if let Some(import) = &draft.import {
        imported.named(dir, import)?;
    }
    let imports = layout.is_some() || draft.import.is_some();
    let mut found = imported.problems();
    draft.append(imported.draft);
    let (registry, mut problems) = assemble(draft, imports)?;
    problems.append(&mut found);
    problems.sort();
    Ok(Loaded { registry, problems, files: imported.files })
}

/// Loads a registry from pairs of file name and text in the native format; a name that ends with `.json` is JSON, all
/// others are TOML.
pub fn load_texts(texts: &[(&str, &str)]) -> Result<Registry, LoadError> {
    let files: Vec<_> = texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let draft = parse(&files, &|name| std::env::var(name).ok())?;
    if let Some(import) = &draft.import {
        return Err(import.place.error("a text has no folder to import from").into());
    }
    assemble(draft, false).map(|(registry, _)| registry)
}

/// Loads a registry from one text in TOML.
pub fn load_text(text: &str) -> Result<Registry, LoadError> {
    load_texts(&[("registry.toml", text)])
}

fn parse(files: &[(String, String)], environment: Environment<'_>) -> Result<Draft, LoadError> {
    let mut draft = Draft::default();
    for (name, text) in files {
        let file = native_format::read(&Arc::from(name.as_str()), text, environment)?;
        if let (Some(first), Some(second)) = (&draft.import, &file.import) {
            return Err(second.place.error(format!("is there twice: also in {}", first.place)).into());
        }
        draft.append(file);
    }
    Ok(draft)
}
