//! Shared test support, for tests and benches only.
//!
//! | module | contents |
//! |---|---|
//! | [`overridden_node`] | a replay node whose answers a test can override |
//! | [`crashing_store`], [`full_disk_store`] | stores that simulate a crash or a full disk |
//! | [`indexed`] | a recorded chain, served by a replay node and indexed |
//! | [`live`] | a running ingest, with control of its node |
//! | [`golden`] | answers of the deployed server on the same chains, and the allowed differences |
//! | [`oracle`] | answers of the recorded chains about their own state |

pub mod crashing_store;
pub mod full_disk_store;
pub mod golden;
pub mod indexed;
pub mod live;
pub mod oracle;
pub mod overridden_node;

use std::path::PathBuf;

/// The repository's root.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder of a recorded chain, for example `evm-scenario`.
pub fn recording(name: &str) -> PathBuf {
    root().join("testing/recordings").join(name)
}
