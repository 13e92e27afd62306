//! The `cairn` binary: command line, configuration, process lifecycle, logs and metrics.
//!
//! | module | purpose |
//! |---|---|
//! | `abi` | folder of known contracts |
//! | `args` | command-line definition |
//! | `settings` | settings from flags, environment and file |
//! | `init` | `init`: probes a node and writes a configuration file |
//! | `run` | `run` and `ingest`: the indexer, with the API |
//! | `route` | the routing service |
//! | `reader`, `chains` | `query`: a read-only process with the API, of one chain and of several |
//! | `follow` | following of a database that another process writes |
//! | `database` | the database of a command, on either engine |
//! | `demo`, `replay`, `record` | recorded chains: demo, replay node, recorder |
//! | `db` | database maintenance |
//! | `control` | control socket of the writer |
//! | `serve`, `metrics`, `otlp` | API server, Prometheus exporter, exporter of spans |
//! | `local_index` | the index of this process, for the tracker |
//! | `ready` | readiness check |
//! | `healthcheck` | health check by exit code |
//! | `reload` | settings reload on SIGHUP |
//! | `progress`, `logging`, `output` | progress bar, log and standard output |
//! | `temporary` | temporary directories |
//! | `packaging` | shell completions and man pages |
//! | `shutdown`, `running`, `runtime` | signals, unclean-shutdown marker, tokio runtime |
//!
//! # Invariants
//! Exit codes; systemd must not restart after 2 and 3:
//! * 0: clean stop, also by SIGINT or SIGTERM
//! * 1: failure
//! * 2: wrong usage or settings, also those that contradict the node, or a database that could not be checked
//! * 3: the database and the node have different histories, and the operator must decide
//! * 130: immediate exit on a second signal

mod abi;
mod args;
mod chains;
mod contracts;
mod control;
mod database;
mod db;
mod demo;
mod follow;
mod healthcheck;
mod init;
mod local_index;
mod logging;
mod metrics;
mod otlp;
mod output;
mod packaging;
mod pages;
mod progress;
mod reader;
mod ready;
mod record;
mod reload;
mod replay;
mod route;
mod run;
mod running;
mod runtime;
mod serve;
mod settings;
mod shutdown;
mod temporary;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;

use crate::args::{Cli, Command};
use crate::settings::Settings;

/// Replaces malloc, also that of RocksDB: buffers of many sizes and threads cost a tenth of the CPU of an ingest with
/// glibc's.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Time for work that outlives its request, until the process ends: that of the largest one.
const LAST_WORK: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let code = exit_code();
    if !store::rocks::wait_until_closed(LAST_WORK) {
        tracing::warn!("the program ends while a request still reads the database");
    }
    code
}

fn exit_code() -> ExitCode {
    match execute(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            // If standard error is closed, the exit code still reports the failure.
            drop(io::stderr().write_all(chain(&error).as_bytes()));
            let of_index = error.downcast_ref::<ingest::Error>();
            if error.is::<settings::values::Error>()
                || error.is::<db::NotChecked>()
                || of_index.is_some_and(ingest::Error::is_contradiction)
                // Of a probe.
                || matches!(error.downcast_ref(), Some(node::Error::WrongChain { .. }))
            {
                ExitCode::from(2)
            } else if of_index.is_some_and(ingest::Error::needs_an_operator) {
                ExitCode::from(3)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

fn execute(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Route(args) => return route::run(args),
        Command::Init(args) => init::run(args),
        Command::Run(sources) => run::run(sources, true),
        Command::Ingest(sources) => run::run(sources, false),
        Command::Query(sources) => reader::query(sources),
        Command::Healthcheck(args) => healthcheck::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Record(args) => record::run(args),
        Command::Db(command) => db::run(command),
        Command::Abi(command) => abi::run(command),
        Command::Config { example: true, .. } => Ok(output::print(&settings::print::example())?),
        Command::Config { example: false, settings } => {
            let values = settings.merged()?;
            Settings::new(&values)?;
            for variable in settings::sources::unknown_variables() {
                drop(writeln!(io::stderr(), "warning: {variable}"));
            }
            Ok(output::print(&settings::print::effective(&values))?)
        }
        Command::Completions { shell } => packaging::completions(shell),
        Command::Man { dir } => packaging::man(&dir),
        Command::Openapi { route: false } => {
            let document = query::document(serve::VERSION, true);
            Ok(output::print(&format!("{document:#}\n"))?)
        }
        Command::Openapi { route: true } => {
            let document = routing_api::document(serve::VERSION);
            Ok(output::print(&format!("{document:#}\n"))?)
        }
    }
    .map(|()| ExitCode::SUCCESS)
}

/// `error: … caused by: …`, one per line. Causes that the text already contains are skipped.
fn chain(error: &anyhow::Error) -> String {
    let mut text = format!("error: {error}\n");
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}  caused by: {cause}\n");
        }
    }
    text
}
