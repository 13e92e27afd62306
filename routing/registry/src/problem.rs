//! Problems of a registry's files and their location.
//!
//! # Invariants
//!
//! * A problem is one line with file, key and remedy.
//! * It never contains a value that could be a secret.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Position in the files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Place {
    /// The file, relative to the loaded directory; `None` for a problem that concerns no single file.
    pub file: Option<Arc<str>>,
    /// The line, from 1, if the format has lines.
    pub line: Option<usize>,
    /// The key, or the chain or asset concerned.
    pub key: String,
}

impl Place {
    /// A key of a file, without a line.
    pub fn new(file: &Arc<str>, key: impl Into<String>) -> Self {
        Self { file: Some(Arc::clone(file)), line: None, key: key.into() }
    }

    /// A problem of a part, independent of its file.
    pub fn about(key: impl Into<String>) -> Self {
        Self { file: None, line: None, key: key.into() }
    }

    /// A problem that excludes a part.
    pub fn error(&self, what: impl Into<String>) -> Problem {
        Problem { place: self.clone(), what: what.into(), severity: Severity::Error }
    }

    /// A problem that may be intended, or that the operator cannot repair.
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

/// Severity of a [`Problem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// An entry of the operator that was left out, or a part on which routes would fail.
    Error,
    /// Unusual, and possibly intended; or an entry of a public registry that was left out, which its operator cannot
    /// repair.
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

/// A problem of a registry's files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Problem {
    /// Location.
    pub place: Place,
    /// Description and remedy.
    pub what: String,
    /// Severity.
    pub severity: Severity,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.severity, self.place, self.what)
    }
}

/// Reason why no registry was loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file or folder cannot be read.
    #[error("cannot read `{}`: {reason}", path.display())]
    Read {
        /// File or folder.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// A folder has no file of a known format.
    #[error(
        "`{}` has no registry in it: put a registry.toml there, or a chains.json, or folders with a chain.json",
        .0.display()
    )]
    Empty(PathBuf),
    /// A file in the native format is not valid TOML or JSON.
    #[error("{file} cannot be parsed: {reason}")]
    Syntax {
        /// File or folder.
        file: String,
        /// Reason, with the line.
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
