//! Errors of the descriptor registry and the JSON printer.
//!
//! Every error names the place or the limit. [`Error::may_be_cured_by_newer_descriptors`] tells the errors that
//! a fresh set of descriptors can cure from those that lie in the bytes.

/// Why a registry cannot be built or a message cannot be printed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// The bytes given as descriptors are no `FileDescriptorSet`.
    #[error("the descriptor set does not decode: {0}")]
    Descriptors(#[from] prost::DecodeError),
    /// The set has no transaction types, so it is not that of a Cosmos application.
    #[error("the descriptor set has no {name}; take the answer of the application's FileDescriptors call")]
    NotAnApplication {
        /// The type that every application has.
        name: &'static str,
    },
    /// No descriptor for a type.
    #[error(
        "no descriptor for type {type_url:?}; the chain may have been upgraded, fetch its descriptors again"
    )]
    UnknownType {
        /// The type URL as it stands in the message, or `/` and the name that a descriptor refers to.
        type_url: String,
    },
    /// A field that the descriptors do not have and that may not be ignored.
    #[error("{message} has no field {number}; the chain may have been upgraded, fetch its descriptors again")]
    UnknownField {
        /// Full name of the message.
        message: String,
        /// Number of the field.
        number: u32,
    },
    /// The bytes do not fit the descriptor, or hold a value that the node refuses too.
    #[error("{place}: {reason}")]
    Malformed {
        /// Full name of the message, and the field where known.
        place: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// Nested deeper than is printed.
    #[error("nested deeper than {limit} levels")]
    TooDeep {
        /// Levels of objects and arrays.
        limit: usize,
    },
    /// The JSON would become too large.
    #[error("the JSON is larger than {limit} bytes")]
    TooLarge {
        /// Bytes that one call may write.
        limit: usize,
    },
}

impl Error {
    /// The bytes may be fine: the descriptors lack something that the message uses.
    pub fn may_be_cured_by_newer_descriptors(&self) -> bool {
        matches!(self, Self::UnknownType { .. } | Self::UnknownField { .. })
    }
}
