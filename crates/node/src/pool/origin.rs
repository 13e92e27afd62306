//! Origin of a reply: the endpoint that sent it.
//!
//! # Invariants
//!
//! * Origins of different addresses of a service differ, even on the same host.
//! * An origin shows service, host and port only: never user, password or path.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// One endpoint of one service. Cheap to clone; equal only to itself within one [`crate::Node`].
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Origin {
    service: &'static str,
    host: Arc<str>,
    /// Its position among the addresses of the service.
    place: usize,
}

/// A reply with its origin, so that a caller that proves it false can report that ([`crate::Node::distrust`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The reply without its envelope, as the node sent it.
    pub bytes: Bytes,
    /// The endpoint that sent it.
    pub origin: Origin,
}

impl Origin {
    pub(crate) fn new(service: &'static str, host: Arc<str>, place: usize) -> Self {
        Self { service, host, place }
    }

    /// `comet`, `rest`, `json-rpc` or `executor`.
    pub fn service(&self) -> &'static str {
        self.service
    }

    /// Host and port as configured.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Its position among the addresses of the service, from 0.
    pub(crate) fn place(&self) -> usize {
        self.place
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.service, self.host)
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} (address {})", self.place + 1)
    }
}

impl From<(Bytes, Origin)> for Reply {
    fn from((bytes, origin): (Bytes, Origin)) -> Self {
        Self { bytes, origin }
    }
}
