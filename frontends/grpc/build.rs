//! Compiles the service of `proto/cairn/index/v1/*.proto` without a system `protoc`, into the server's and client's code
//! and the descriptors for reflection. The messages are those of [`query::v1`].

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use prost::Message as _;

const ROOT: &str = "../../proto";
const PACKAGE: &str = "cairn/index/v1";

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
    let config = tonic_prost_build::configure().build_transport(false);
    Ok(config.extern_path(".cairn.index.v1", "::query::v1").compile_fds(descriptors)?)
}
