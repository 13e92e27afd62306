//! Errors of recordings, the recorder and the replay node.
//!
//! Every message names the file (and the line, counted from 1), the address or the call, and the remedy.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A recording cannot be read or written, or a replay node cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation on a file failed.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The operation: `open`, `read`, `write` …
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A line of a recording is invalid.
    #[error("{} line {line}: {message}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The reason.
        message: String,
    },
    /// A file of a recording is invalid.
    #[error("{}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        message: String,
    },
    /// Listening on an address failed.
    #[error("the replayed {service} cannot listen on {address}: {source}; choose another address")]
    Listen {
        /// `comet`, `rest`, `json-rpc` or `executor`.
        service: &'static str,
        /// The requested address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The recording does not have the height.
    #[error("height {height} is not in the recording: it has {first} to {last}")]
    NoSuchHeight {
        /// The requested height.
        height: u64,
        /// The first recorded height.
        first: u64,
        /// The last recorded height.
        last: u64,
    },
    /// A recorded height cannot be forged: its format is not that of the supported node versions.
    #[error("height {height} cannot be forged: {message}; fork above it")]
    Fork {
        /// The height.
        height: u64,
        /// The reason.
        message: String,
    },
    /// The running node has no listener for a service of the recording.
    #[error(
        "{name} has answers of the service {service}, which the running node does not listen for; start another node"
    )]
    NoListener {
        /// The recording.
        name: String,
        /// The service.
        service: &'static str,
    },
    /// A live node did not answer the recorder.
    #[error("recording: {0}")]
    Node(#[from] node::Error),
    /// The clients of a live node could not be set up.
    #[error("recording: {0}")]
    Setup(#[from] node::SetupError),
    /// A reply of a live node does not match the call.
    #[error("recording: {call}: {message}")]
    Response {
        /// The call.
        call: String,
        /// The defect of the reply.
        message: String,
    },
}

impl Error {
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { doing, path: path.to_path_buf(), source }
    }

    pub(crate) fn line(path: &Path, line: u64, message: impl Into<String>) -> Self {
        Self::Line { path: path.to_path_buf(), line, message: message.into() }
    }

    pub(crate) fn file(path: &Path, message: impl Into<String>) -> Self {
        Self::File { path: path.to_path_buf(), message: message.into() }
    }
}
