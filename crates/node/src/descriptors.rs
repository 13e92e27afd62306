//! What the application says about itself: its protobuf descriptors and the prefix of its addresses.
//!
//! # Invariants
//!
//! The bytes are those of the node (a `FileDescriptorSet` with all extension options), identified by their hash.
//! CometBFT's RPC alone can serve them.

use bytes::Bytes;
use proto::tx::Message as _;
use sha2::{Digest as _, Sha256};
use tracing::warn;

use crate::error::{Error, RequestContext};
use crate::node::Node;
use crate::pool::better;

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

    /// The prefix of the chain's account addresses: over REST if it has an address, and if that fails or is missing by
    /// `abci_query`.
    pub async fn bech32_prefix(&self) -> Result<String, Error> {
        let failed = match &self.rest {
            Some(rest) => match rest.bech32_prefix().await {
                Ok(prefix) => return Ok(prefix),
                Err(error) => Some(error),
            },
            None => None,
        };
        match self.comet.abci_query(BECH32_PREFIX, "").await {
            // A message with one text has the form of `google.protobuf.StringValue`.
            Ok(bytes) => String::decode(&*bytes).map_err(|e| Error::Malformed {
                at: RequestContext {
                    service: "comet",
                    method: BECH32_PREFIX.into(),
                    ..RequestContext::default()
                },
                reason: e.to_string(),
            }),
            Err(error) => Err(better(failed, error)),
        }
    }
}

/// Answered with `cosmos.auth.v1beta1.Bech32PrefixResponse`: the prefix as field 1.
const BECH32_PREFIX: &str = "/cosmos.auth.v1beta1.Query/Bech32Prefix";

impl From<Bytes> for Descriptors {
    fn from(bytes: Bytes) -> Self {
        Self { sha256: Sha256::digest(&bytes).into(), bytes }
    }
}
