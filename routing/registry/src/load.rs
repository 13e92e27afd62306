//! Loading of a registry from files.
//!
//! # Invariants
//!
//! * The same files give the same registry, in any order of reading.
//! * The size of a file is limited before it is read.
//! * An error in the native format fails the load; an error in a public registry skips the part and is reported.

use std::path::Path;
use std::sync::Arc;

use crate::assemble::assemble;
use crate::draft::Draft;
use crate::files;
use crate::import::{self, Imported};
use crate::native_format::{self, Environment, Import};
use crate::problem::{LoadError, Problem};
use crate::snapshot::Registry;

/// A registry, and what was left out of it or is odd in it.
#[derive(Debug)]
pub struct Loaded {
    /// The usable registry.
    pub registry: Registry,
    /// What is wrong, sorted; nothing is where there are only files of our own form, which would have been refused.
    pub problems: Vec<Problem>,
}

/// Reads the registry in the folder `dir`; `README.md` says what may be in it. `${NAME}` in addresses of nodes stands
/// for variables of the process's environment.
pub fn load(dir: &Path) -> Result<Loaded, LoadError> {
    load_with(dir, &|name| std::env::var(name).ok())
}

/// Like [`load`], with another environment.
pub fn load_with(dir: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<Loaded, LoadError> {
    let layout = import::recognize(dir, None)?;
    let mut paths = files::own_files(dir)?;
    if layout.is_some() {
        // A checkout may hold others.
        paths.retain(|path| path.file_stem().is_some_and(|stem| stem == "registry"));
    }
    if paths.is_empty() && layout.is_none() {
        return Err(LoadError::Empty(dir.to_owned()));
    }
    let mut texts = Vec::new();
    for path in paths {
        texts.push((files::name(dir, &path), files::text(&path)?));
    }
    let (mut draft, import) = parse(&texts, environment)?;
    let mut imported = Imported::new(&draft);
    if let Some(layout) = &layout {
        imported.folder(dir, layout)?;
    }
    if let Some(import) = &import {
        imported.ask(dir, import)?;
    }
    let imports = layout.is_some() || import.is_some();
    draft.append(imported.draft);
    let (registry, mut problems) = assemble(draft, imports)?;
    problems.append(&mut imported.problems);
    problems.sort();
    Ok(Loaded { registry, problems })
}

/// Makes a registry of texts of our own form, each with the name that messages have for it; one that ends in `.json` is
/// JSON, all others are TOML.
pub fn load_texts(texts: &[(&str, &str)]) -> Result<Registry, LoadError> {
    let files: Vec<_> = texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let (draft, import) = parse(&files, &|name| std::env::var(name).ok())?;
    if let Some(import) = import {
        return Err(import.place.error("a text has no folder to import from").into());
    }
    assemble(draft, false).map(|(registry, _)| registry)
}

/// Makes a registry of one text in TOML.
pub fn load_text(text: &str) -> Result<Registry, LoadError> {
    load_texts(&[("registry.toml", text)])
}

fn parse(
    files: &[(String, String)],
    environment: Environment<'_>,
) -> Result<(Draft, Option<Import>), LoadError> {
    let (mut draft, mut import) = (Draft::default(), None::<Import>);
    for (name, text) in files {
        let file = native_format::read(&Arc::from(name.as_str()), text, environment)?;
        draft.append(file.draft);
        if let Some(other) = file.import {
            if let Some(first) = &import {
                return Err(other.place.error(format!("is there twice: also in {}", first.place)).into());
            }
            import = Some(other);
        }
    }
    Ok((draft, import))
}
