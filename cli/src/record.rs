//! `cairn record`: makes a recording of a live node.

use std::path::PathBuf;
use std::time::Duration;

use ::replay::RecordOptions;
use anyhow::Context as _;
use node::retry::{self, Backoff};
use node::{Endpoints, Limits, Node};
use tokio::time::Instant;

use crate::settings::Settings;
use crate::settings::given::{self, Given};
use crate::{interrupt, logging, output, runtime};

/// How often a line is logged.
const LOG_EVERY: Duration = Duration::from_secs(5);

/// Flags of `cairn record`.
#[derive(Debug, clap::Args)]
pub(crate) struct Record {
    /// Directory of the recording; an interrupted recording in it is continued
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// First height; the first that the node has if it is not given
    #[arg(long, value_name = "HEIGHT")]
    from: Option<u64>,
    /// Last height; the last that the node has if it is not given. One that is still to come is waited for
    #[arg(long, value_name = "HEIGHT")]
    to: Option<u64>,
    /// Name of the recording; that of the directory if it is not given
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Denom of fees, where the node does not say it (an EVM chain does)
    #[arg(long, value_name = "DENOM", default_value = "")]
    fee_denom: String,
    #[command(flatten)]
    node: Given<given::Node>,
}

/// Records until the last height is written, or until it is asked to stop.
pub(crate) fn run(args: Record) -> anyhow::Result<()> {
    let settings = Settings::new(&args.node.clone().merged()?)?;
    let endpoints = settings.endpoints()?;
    logging::start(&settings.log)?;
    runtime::block_on(async {
        let stop = interrupt::watch()?;
        tokio::select! {
            outcome = record(&args, endpoints) => outcome,
            () = interrupt::stopped(&stop) => {
                tracing::info!(out = %args.out.display(), "interrupted; the same command continues it");
                Ok(())
            }
        }
    })
}

async fn record(args: &Record, endpoints: Endpoints) -> anyhow::Result<()> {
    let node = Node::new(endpoints.clone(), Limits::default())?;
    let status = retry::until(Backoff::default(), "status", || node.comet.status())
        .await
        .context("asking the node")?;
    let from = args.from.unwrap_or(status.earliest_height.max(1));
    let to = args.to.unwrap_or(status.latest_height);
    anyhow::ensure!(from >= 1 && from <= to, "heights {from} to {to} are no range: see --from and --to");
    let folder = args.out.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = args.name.clone().or(folder).context("the directory has no name: give --name")?;
    let options = RecordOptions { fee_denom: args.fee_denom.clone(), ..RecordOptions::named(name) };

    let mut logged = Instant::now();
    let on_height = |height| {
        if logged.elapsed() >= LOG_EVERY {
            logged = Instant::now();
            tracing::info!(height, to, "recording");
        }
    };
    let about = ::replay::record(endpoints, &args.out, from, to, &options, on_height).await?;
    let out = args.out.display();
    output::print(&format!(
        "{out}: {} heights {} to {}, {} transactions, {} EVM transactions\n",
        about.chain_id, about.first_height, about.last_height, about.txs, about.evm_txs
    ))?;
    Ok(())
}
