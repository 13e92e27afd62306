//! What cairn's tests share. For tests and benches only.
//!
//! | module | holds |
//! |---|---|
//! | [`altered`] | a replayed node some of whose answers are otherwise |
//! | [`crashing_store`], [`full_disk_store`] | stores whose process ends at some commit, or whose disk is full for a while |
//! | [`indexed`] | a recorded chain, played by a replay node and indexed |
//! | [`live`] | an ingest that runs while something is done to its node |
//! | [`golden`] | what the deployed server answered on the same chains, and what may differ |
//! | [`oracle`] | what the recorded chains said about their own state |

pub mod altered;
pub mod crashing_store;
pub mod full_disk_store;
pub mod golden;
pub mod indexed;
pub mod live;
pub mod oracle;

use std::path::PathBuf;

/// The repository's root.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder of a recorded chain, for example `evm-scenario`.
pub fn recording(name: &str) -> PathBuf {
    root().join("testing/recordings").join(name)
}
