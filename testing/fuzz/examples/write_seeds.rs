//! Writes the seeds and the dictionary of every target into a folder, for `make fuzz`: `<folder>/<target>/<number>` and
//! `<folder>/<target>.dict`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a developer tool that panics at the first error"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("usage: write_seeds <folder>"));
    for target in fuzz::TARGETS {
        let corpus = folder.join(target.name);
        fs::create_dir_all(&corpus).unwrap();
        for (number, seed) in (target.seeds)().iter().enumerate() {
            fs::write(corpus.join(format!("seed-{number}")), seed).unwrap();
        }
        // libFuzzer treats an empty file as a missing one.
        let mut words = format!("# {}\n", target.name);
        for word in target.words {
            words.push('"');
            for byte in word.bytes() {
                write!(words, "\\x{byte:02x}").unwrap();
            }
            words.push_str("\"\n");
        }
        fs::write(folder.join(format!("{}.dict", target.name)), words).unwrap();
    }
}
