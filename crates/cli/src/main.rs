//! The `cairn` binary: a chain's node in, its index and a JSON interface out.
//!
//! | module | one job |
//! |---|---|
//! | `args` | the commands |
//! | `settings` | every setting: flags, environment, file, documentation |
//! | `run` | indexes a node's chain, and serves it |
//! | `route` | plans and follows transfers between chains |
//! | `follow` | serves what another process indexes |
//! | `demo`, `replay`, `record` | recorded chains: shown, played, made |
//! | `db` | looks at a database and mends it |
//! | `control` | what the process that writes a database does for others |
//! | `serve`, `metrics` | the JSON interface on a socket, and the operator's on another |
//! | `ready` | what `/readyz` says |
//! | `reload` | settings that change while the program runs |
//! | `progress`, `logging`, `output` | what the operator sees |
//! | `shutdown`, `running`, `runtime` | how the process stops, whether the one before stopped cleanly, and what it runs on |
//!
//! What must hold: a clean stop, also one by SIGINT or SIGTERM, exits with 0; a fault with 1; wrong usage, settings
//! included, with 2, and so does a database that could not be checked; a database of another history than the node's, about
//! which a person has to decide, with 3 (systemd must not restart after 2 and 3); a second signal with 130 at once.

mod args;
mod control;
mod db;
mod demo;
mod follow;
mod logging;
mod metrics;
mod output;
mod progress;
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

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Command};
use crate::settings::Settings;

fn main() -> ExitCode {
    match execute(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            // If standard error is gone, the exit code still tells.
            drop(io::stderr().write_all(chain(&error).as_bytes()));
            if error.is::<settings::Error>() || error.is::<db::NotChecked>() {
                ExitCode::from(2)
            } else if error.downcast_ref().is_some_and(ingest::Error::needs_an_operator) {
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
        Command::Run(sources) => run::run(sources, true),
        Command::Ingest(sources) => run::run(sources, false),
        Command::Query(sources) => follow::query(sources),
        Command::Demo(args) => demo::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Record(args) => record::run(args),
        Command::Db(command) => db::run(command),
        Command::Config { example: true, .. } => Ok(output::print(&settings::print::example())?),
        Command::Config { example: false, settings } => {
            let values = settings.merged()?;
            Settings::new(&values)?;
            Ok(output::print(&settings::print::effective(&values))?)
        }
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

/// `error: … caused by: …`, a line each. Some errors already end with the words of their cause.
fn chain(error: &anyhow::Error) -> String {
    let mut text = format!("error: {error}\n");
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}  caused by: {cause}\n");
        }
    }
    text
}
