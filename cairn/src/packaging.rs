//! Files for packages, from the definition of the command line: shell completions and man pages.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Cli;
use crate::output;

/// Prints the completions for `shell`.
pub(crate) fn completions(shell: Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "cairn", &mut script);
    Ok(output::print(&String::from_utf8(script)?)?)
}

/// Writes a man page of each command into `folder`, which is created if it does not exist.
pub(crate) fn man(folder: &Path) -> anyhow::Result<()> {
    let write = || {
        fs::create_dir_all(folder)?;
        clap_mangen::generate_to(Cli::command(), folder)
    };
    write().with_context(|| format!("cannot write man pages to {}", folder.display()))
}
