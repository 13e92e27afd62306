//! What can go wrong with a recording or a replay node.
//!
//! Every message names the file (and the line, counted from 1), the address or the call, and what to do about it.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Why a recording could not be read or written, or a replay node not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was being done: `open`, `read`, `write` …
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// One line of a recording is not what the format says.
    #[error("{} line {line}: {message}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        message: String,
    },
    /// A whole file is not what the format says.
    #[error("{}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// An address could not be listened on.
    #[error("the replayed {service} cannot listen on {address}: {source}; choose another address")]
    Listen {
        /// `comet`, `rest`, `json-rpc` or `executor`.
        service: &'static str,
        /// The address that was asked for.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// A height that the recording does not have was to be shown.
    #[error("height {height} is not in the recording: it has {first} to {last}")]
    NoSuchHeight {
        /// The height asked for.
        height: u64,
        /// The first recorded height.
        first: u64,
        /// The last recorded height.
        last: u64,
    },
    /// A recorded height cannot be forged, because it is not what a node of these versions says.
    #[error("height {height} cannot be forged: {message}; fork above it")]
    Fork {
        /// The height.
        height: u64,
        /// The reason.
        message: String,
    },
    /// A recording was to be played by a node that does not listen for one of its services.
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
    /// A live node answered the recorder something that is no answer to the call.
    #[error("recording: {call}: {message}")]
    Answer {
        /// The call.
        call: String,
        /// What is wrong with the answer.
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
