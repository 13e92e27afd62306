//! Protobuf: messages, descriptors and calls that several crates use, and the JSON of messages.
//!
//! A message that is declared here has exactly the members that cairn reads, and the field numbers of the `.proto` file in
//! its doc comment; those of transactions are cosmrs's. Building needs no `protoc`.

pub mod descriptor;
pub mod json;
pub mod reflection;
pub mod tx;
