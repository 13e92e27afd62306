//! The commands and their flags.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::abi::Abi;
use crate::db::Db;
use crate::demo::Demo;
use crate::healthcheck::Healthcheck;
use crate::init::Init;
use crate::record::Record;
use crate::replay::Replay;
use crate::route::Route;
use crate::settings::sources::{FOLLOWER, SERVICE, Sources};

/// The widest line of help.
const WIDTH: usize = 110;

const EXIT_CODES: &str = "Exit codes: 0 after a clean end, also one by SIGINT or SIGTERM; 1 after a fault; 2 after wrong \
                          usage, settings included; 3 if the node's chain has another history than the database; 130 \
                          when a second signal ends it at once.";

const QUERY_HELP: &str = "It writes nothing to the database's directory, but needs a temporary one that it may write to \
                       (TMPDIR). It asks no node: /readyz reports whether it keeps up with the database, not whether a \
                       process still writes it.";

const INIT_HELP: &str = "It asks for addresses if standard input is a terminal. A setting that is given here is written to \
                         the file; an address that does not answer is left out.";

const HEALTHCHECK_HELP: &str = "Exit codes: 0 if the process is healthy, 1 if it is not or does not answer.";

const DB_HELP: &str =
    "Read-only commands write nothing to the data directory, but need a writable temporary one (TMPDIR).";

/// Indexes an Initia rollup beside its node and serves it as JSON
#[derive(Debug, Parser)]
#[command(name = "cairn", version = version(), max_term_width = WIDTH, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Probes a node, writes the configuration file for it (--config, or cairn.toml), and lists what the node lacks
    #[command(after_help = INIT_HELP)]
    Init(Init),
    /// Indexes a node's chain and serves it, in one process
    Run(Sources<SERVICE>),
    /// Indexes a node's chain
    Ingest(Sources<SERVICE>),
    /// Serves a database that `run` or `ingest` writes, while they do
    #[command(after_help = QUERY_HELP)]
    Query(Sources<FOLLOWER>),
    /// Plans transfers between chains, makes the messages to sign, and follows them
    Route(Route),
    /// Asks the process that serves on this machine whether it is healthy
    #[command(after_help = HEALTHCHECK_HELP)]
    Healthcheck(Healthcheck),
    /// Indexes and serves a recorded chain: needs no node and no network
    Demo(Demo),
    /// Plays a node from a recording
    Replay(Replay),
    /// Makes a recording of a node
    Record(Record),
    /// Inspects, verifies, repairs, backs up and exports a database
    #[command(subcommand, after_help = DB_HELP)]
    Db(Db),
    /// Keeps the folder of known contracts, whose ABIs and sources Etherscan's API serves
    #[command(subcommand)]
    Abi(Abi),
    /// Prints the effective settings as TOML, without passwords
    Config {
        /// Prints a configuration file with every setting explained instead
        #[arg(long)]
        example: bool,
        #[command(flatten)]
        settings: Sources<SERVICE>,
    },
    /// Prints the interface as an OpenAPI 3.1 document
    Openapi {
        /// That of `cairn route` instead of the indexer's
        #[arg(long)]
        route: bool,
    },
    /// Prints the completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Writes the man pages
    Man {
        /// Their directory, created if it does not exist
        dir: PathBuf,
    },
}

fn version() -> &'static str {
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("CAIRN_BUILD_COMMIT"), ")")
}
