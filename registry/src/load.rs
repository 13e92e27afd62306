//! Reads a registry from files.
//!
//! Must hold: the same files give the same registry, in whatever order they are read; a file is bounded before it is read;
//! what our own form says wrongly refuses the whole, what a public registry says wrongly is left out and told.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::assemble::assemble;
use crate::draft::Draft;
use crate::own::{self, Environment, Import};
use crate::problem::{LoadError, Problem};
use crate::snapshot::Registry;

/// A registry, and what was left out of it or is odd in it.
#[derive(Debug)]
pub struct Loaded {
    /// What can be used.
    pub registry: Registry,
    /// What is wrong, sorted; nothing is where there are only files of our own form, which would have been refused.
    pub problems: Vec<Problem>,
}

/// Reads the registry in the folder `dir`; `README.md` says what may be in it. `${NAME}` in addresses of nodes stands for
/// variables of the process's environment.
pub fn load(dir: &Path) -> Result<Loaded, LoadError> {
    load_with(dir, &|name| std::env::var(name).ok())
}

/// Like [`load`], with another environment.
pub fn load_with(dir: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<Loaded, LoadError> {
    let mut files = Vec::new();
    for path in crate::files::own_files(dir)? {
        files.push((name_of(dir, &path), crate::files::text(&path)?));
    }
    let (draft, import) = parse(&files, environment)?;
    finish(draft, import.is_some())
}

/// Makes a registry of texts of our own form, each with the name that messages have for it; one that ends in `.json` is
/// JSON, all others are TOML.
pub fn load_texts(texts: &[(&str, &str)]) -> Result<Registry, LoadError> {
    let files: Vec<_> = texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let (draft, import) = parse(&files, &|name| std::env::var(name).ok())?;
    if let Some(import) = import {
        return Err(import.place.error("a text has no folder to import from").into());
    }
    finish(draft, false).map(|loaded| loaded.registry)
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
        let file = own::read(&Arc::from(name.as_str()), text, environment)?;
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

fn finish(draft: Draft, imports: bool) -> Result<Loaded, LoadError> {
    let (registry, problems) = assemble(draft, imports)?;
    Ok(Loaded { registry, problems })
}

fn name_of(dir: &Path, path: &PathBuf) -> String {
    path.strip_prefix(dir).unwrap_or(path).display().to_string()
}
