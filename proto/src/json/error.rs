//! Errors of the descriptor registry and the JSON printer.
//!
//! Every error contains the place or the limit. [`Error::may_be_cured_by_newer_descriptors`] distinguishes errors that
//! a newer set of descriptors can cure from errors in the bytes.

/// Errors of building a registry or printing a message.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// The bytes are not a `FileDescriptorSet`.
    #[error("the descriptor set does not decode: {0}")]
    Descriptors(#[from] prost::DecodeError),
    /// The set has no transaction types, so it is not that of a Cosmos application.
    #[error("the descriptor set has no {name}; take the answer of the application's FileDescriptors call")]
    NotAnApplication {
        /// The required type.
        name: &'static str,
    },
    /// No descriptor for a type.
    #[error(
        "no descriptor for type {type_url:?}; the chain may have been upgraded, fetch its descriptors again"
    )]
    UnknownType {
        /// The type URL as in the message, or `/` and the name in a descriptor.
        type_url: String,
    },
    /// A field that the descriptors lack and that may not be ignored.
    #[error("{message} has no field {number}; the chain may have been upgraded, fetch its descriptors again")]
    UnknownField {
        /// Full name of the message.
        message: String,
        /// Number of the field.
        number: u32,
    },
    /// The bytes do not fit the descriptor, or contain a value that the node rejects too.
    #[error("{place}: {reason}")]
    Malformed {
        /// Full name of the message, and of the field if it is known.
        place: String,
        /// The reason.
        reason: &'static str,
    },
    /// Nested beyond the maximum depth.
    #[error("nested deeper than {limit} levels")]
    TooDeep {
        /// Levels of objects and arrays.
        limit: usize,
    },
    /// The JSON would exceed the maximum size.
    #[error("the JSON is larger than {limit} bytes")]
    TooLarge {
        /// Maximum bytes of output of one call.
        limit: usize,
    },
}

impl Error {
    /// True if the bytes may be valid: the descriptors lack something that the message uses.
    pub fn may_be_cured_by_newer_descriptors(&self) -> bool {
        matches!(self, Self::UnknownType { .. } | Self::UnknownField { .. })
    }
}
