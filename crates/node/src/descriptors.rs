//! Protobuf descriptors of the application, from the node.
//!
//! # Invariants
//!
//! The bytes are those of the node (a `FileDescriptorSet` with all extension options), identified by their hash.
//! CometBFT's RPC alone can serve them.

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tracing::warn;

use crate::error::Error;
use crate::node::Node;

/// An application's whole descriptor set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptors {
    /// An encoded `google.protobuf.FileDescriptorSet`.
    pub bytes: Bytes,
    /// SHA-256 of `bytes`.
    pub sha256: [u8; 32],
}

impl Node {
    /// Queries the application for its descriptors: by gRPC if it has an address, and if that fails or is missing by
    /// `abci_query`, which gives the same bytes.
    pub async fn descriptors(&self) -> Result<Descriptors, Error> {
        if let Some(grpc) = &self.grpc {
            match grpc.file_descriptors().await {
                Ok(bytes) => return Ok(bytes.into()),
                Err(error) => warn!(%error, "no descriptors over gRPC; querying CometBFT instead"),
            }
        }
        let bytes = self.comet.abci_query(proto::reflection::PATH, "").await?;
        Ok(Bytes::from(bytes).into())
    }
}

impl From<Bytes> for Descriptors {
    fn from(bytes: Bytes) -> Self {
        Self { sha256: Sha256::digest(&bytes).into(), bytes }
    }
}
