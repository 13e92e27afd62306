//! Compiles `proto/cairn/index/v1/*.proto` without a system `protoc`, into the server's and client's code and the
//! descriptors for reflection.
//!
//! Messages are read from the JSON API by serde. The attributes below say where the JSON differs from serde's defaults.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use prost::Message as _;

const ROOT: &str = "../../proto";
const PACKAGE: &str = "cairn/index/v1";

/// Numbers that JSON has as decimal strings.
const DECIMAL: &str =
    r#"#[serde(deserialize_with = "serde_with::As::<serde_with::DisplayFromStr>::deserialize")]"#;
const DECIMALS: [&str; 10] = [
    "Block.height",
    "Block.block_time",
    "Block.tx_count",
    "CountTxsResponse.count",
    "PageResponse.total",
    "Reorg.height",
    "StreamStart.height",
    "Tx.height",
    "Tx.gas_used",
    "Tx.gas_wanted",
];

/// Texts that JSON has as `null` where they are empty.
const NULLABLE: &str =
    r#"#[serde(deserialize_with = "serde_with::As::<serde_with::DefaultOnNull>::deserialize")]"#;
const NULLABLES: [&str; 2] = ["PageResponse.next_key", "PageResponse.previous_key"];

/// Messages that are built from an event, and have no JSON of their own.
const STREAMED: [&str; 3] = ["WatchBlocksResponse", "WatchEvmTxsResponse", "WatchTxsResponse"];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(ROOT).join(PACKAGE);
    println!("cargo::rerun-if-changed={}", folder.display());
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = fs::read_dir(&folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<PathBuf>, std::io::Error>>()?;
    // The order of a directory is not fixed, that of the descriptors is.
    files.sort();
    let descriptors = protox::compile(files, [ROOT])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.binpb"), descriptors.encode_to_vec())?;

    let mut config = tonic_prost_build::configure()
        .build_transport(false)
        .message_attribute(".", "#[derive(serde::Deserialize)]\n#[serde(default)]")
        .message_attribute("EvmTx", r#"#[serde(rename_all = "camelCase")]"#)
        .message_attribute("EvmLog", r#"#[serde(rename_all = "camelCase")]"#)
        .field_attribute("InternalTx.gas_used", r#"#[serde(rename = "gasUsed")]"#)
        .field_attribute("Tx.tx", r#"#[serde(deserialize_with = "crate::json::text")]"#)
        .field_attribute("Tx.logs", r#"#[serde(deserialize_with = "crate::json::texts")]"#);
    for message in STREAMED {
        config = config.field_attribute(format!("{message}.event"), "#[serde(skip)]");
    }
    for field in DECIMALS {
        config = config.field_attribute(field, DECIMAL);
    }
    for field in NULLABLES {
        config = config.field_attribute(field, NULLABLE);
    }
    Ok(config.compile_fds(descriptors)?)
}
