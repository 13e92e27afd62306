//! Problems of a registry's files and their location.
//!
//! # Invariants
//!
//! * A problem is one line that names file and key and says what to do.
//! * It never contains a value that could be a secret.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Position in the files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Place {
    /// The file, relative to the directory that was loaded; `None` for what no single file says.
    pub file: Option<Arc<str>>,
    /// The line, from 1, where the format tells.
    pub line: Option<usize>,
    /// The key, or the chain or asset that it is about.
    pub key: String,
}

impl Place {
    /// A key of a file whose lines are not known.
    pub fn new(file: &Arc<str>, key: impl Into<String>) -> Self {
        Self { file: Some(Arc::clone(file)), line: None, key: key.into() }
    }

    /// A problem of a part, independent of its file.
    pub fn about(key: impl Into<String>) -> Self {
        Self { file: None, line: None, key: key.into() }
    }

    /// Something that the registry cannot be used with.
    pub fn error(&self, what: impl Into<String>) -> Problem {
        Problem { place: self.clone(), what: what.into(), severity: Severity::Error }
    }

    /// Unusual, and possibly intended.
    pub fn warning(&self, what: impl Into<String>) -> Problem {
        Problem { place: self.clone(), what: what.into(), severity: Severity::Warning }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            f.write_str(file)?;
            if let Some(line) = self.line {
                write!(f, " line {line}")?;
            }
            f.write_str(": ")?;
        }
        write!(f, "`{}`", self.key)
    }
}

/// How bad a [`Problem`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// A part was left out, or routes over it will fail.
    Error,
    /// Odd, and may be meant.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// Description and remedy.
    pub what: String,
    /// How bad it is.
    pub severity: Severity,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.severity, self.place, self.what)
    }
}

/// Why there is no registry.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file or folder cannot be read.
    #[error("cannot read `{}`: {reason}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A folder has no file of any known form.
    #[error(
        "`{}` has no registry in it: put a registry.toml there, or a chains.json, or folders with a chain.json",
        .0.display()
    )]
    Empty(PathBuf),
    /// A file of our own form is no TOML or JSON.
    #[error("{file} cannot be parsed: {reason}")]
    Syntax {
        /// Which.
        file: String,
        /// Why not; with the line.
        reason: String,
    },
    /// A file of the native format has an invalid value.
    #[error("{}: {}", .0.place, .0.what)]
    Refused(Box<Problem>),
}

impl From<Problem> for LoadError {
    fn from(problem: Problem) -> Self {
        Self::Refused(Box::new(problem))
    }
}
