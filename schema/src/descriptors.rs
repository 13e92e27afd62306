//! The chain's protobuf descriptors, as the node returned them.
//!
//! Transactions are rendered to JSON with them. They are stored so that a database documents how its records were
//! rendered, and so that a restart does not depend on a node.

use store::Message;

store::tables! {
    /// Descriptor sets by their SHA-256.
    ///
    /// | SHA-256 of the set (32) | → [`DescriptorSet`] (protobuf)
    pub table Descriptors("descriptors", 0x04, Point): [u8; 32] => Message<DescriptorSet>;
}

/// A descriptor set.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct DescriptorSet {
    /// The first height that was rendered with it.
    #[prost(uint64, tag = "1")]
    pub first_height: u64,
    /// `google.protobuf.FileDescriptorSet`, compressed with zstd.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "2")]
    pub compressed: Vec<u8>,
}

impl DescriptorSet {
    /// The bytes of the `FileDescriptorSet`.
    ///
    /// # Errors
    /// If the row is damaged.
    pub fn bytes(&self) -> std::io::Result<Vec<u8>> {
        zstd::stream::decode_all(self.compressed.as_slice())
    }
}
