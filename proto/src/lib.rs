//! Protobuf: messages, descriptors and calls that several crates use, and the JSON of messages.
//!
//! Every message is written by hand with exactly the members that cairn reads, so building needs no `protoc` and no
//! generated file. A field number here must be that of the `.proto` file in the doc comment.

pub mod descriptor;
pub mod json;
pub mod reflection;
pub mod tx;
