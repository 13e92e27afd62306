//! `cairn record`: makes a recording of a live node.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ::replay::{RecordOptions, Recorder};
use anyhow::Context as _;
use chain::Vm;
use ingest::{Ingest, Verify, advice};
use node::retry::{self, Backoff};
use node::{Limits, Node};
use schema::nft::Questions;
use store::key::All;
use store::{Order, RocksOptions, RocksStore, Store};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::settings::sources::{LOG, NODE, Sources};
use crate::settings::{Settings, path};
use crate::temporary::Temporary;
use crate::{logging, output, runtime, shutdown};

/// Interval between log lines.
const LOG_EVERY: Duration = Duration::from_secs(5);

/// Flags of `cairn record`.
#[derive(Debug, clap::Args)]
pub(crate) struct Record {
    /// Directory of the recording; an interrupted recording in it is continued
    #[arg(long, value_name = "DIR", value_parser = path)]
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
    /// The chain's virtual machine, evm, move, wasm or none, where the descriptors of the node do not show it
    #[arg(long, value_name = "VM")]
    vm: Option<Vm>,
    #[command(flatten)]
    node: Sources<{ LOG | NODE }>,
}

/// Records until the last height is written, or until a stop signal.
pub(crate) fn run(args: Record) -> anyhow::Result<()> {
    let settings = args.node.settings()?;
    settings.endpoints()?;
    logging::start(&settings)?;
    runtime::block_on(async {
        let stop = shutdown::watch()?;
        tokio::select! {
            outcome = record(&args, settings) => outcome,
            () = shutdown::stopped(&stop) => {
                tracing::info!(out = %args.out.display(), "interrupted; the same command continues it");
                Ok(())
            }
        }
    })
}

async fn record(args: &Record, mut settings: Settings) -> anyhow::Result<()> {
    let endpoints = settings.endpoints()?;
    let node = Node::new(endpoints.clone(), Limits::default())?;
    let status = retry::until(Backoff::default(), "status", || node.comet.status())
        .await
        .context("asking the node")?;
    let from = args.from.unwrap_or(status.earliest_height.max(1));
    let to = args.to.unwrap_or(status.latest_height);
    anyhow::ensure!(from >= 1 && from <= to, "heights {from} to {to} are not a range: see --from and --to");
    let folder = args.out.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = args.name.clone().or(folder).context("the directory has no name: give --name")?;
    let vm = vm(&node, args.vm).await?;
    settings.vm = Some(vm);
    settings.endpoints()?;
    if vm != Vm::Evm && !settings.json_rpc.is_empty() {
        output::print(&format!(
            "`json_rpc` is not used: the chain is recorded with vm {vm}; --vm evm records an EVM that is not known\n"
        ))?;
    }
    let options =
        RecordOptions { fee_denom: args.fee_denom.clone(), ..RecordOptions::named(name, vm.name()) };

    let mut logged = Instant::now();
    let on_height = |height| {
        if logged.elapsed() >= LOG_EVERY {
            logged = Instant::now();
            tracing::info!(height, to, "recording");
        }
    };
    let mut recorder = Recorder::open(endpoints, &args.out, from, to, &options).await?;
    recorder.heights(on_height).await?;
    tracing::info!(
        from,
        to,
        "indexing the recorded heights, to record the answers about state that this takes"
    );
    index(settings, &recorder, from, to).await?;
    let about = recorder.finish().await?;
    let out = args.out.display();
    output::print(&format!(
        "{out}: {} heights {} to {}, {} transactions, {} EVM transactions\n",
        about.chain_id, about.first_height, about.last_height, about.txs, about.evm_txs
    ))?;
    Ok(())
}

/// The chain's virtual machine by its descriptors; `given` for an EVM that they do not show, or for a node without any.
async fn vm(node: &Node, given: Option<Vm>) -> anyhow::Result<Vm> {
    let descriptors = retry::until(Backoff::default(), "descriptors", || node.descriptors()).await;
    let vms = match (descriptors, given) {
        (Ok(descriptors), _) => advice::vms(&descriptors)?,
        (Err(_), Some(given)) => vec![given],
        (Err(error), None) => return Err(error).context("the node has no descriptors: give --vm"),
    };
    let names = || vms.iter().map(|vm| vm.name()).collect::<Vec<_>>().join(", ");
    match (given, &*vms) {
        (Some(vm), _) if vms.contains(&vm) => Ok(vm),
        (Some(Vm::Evm), [Vm::None]) => Ok(Vm::Evm),
        (Some(vm), _) => anyhow::bail!("--vm {vm}: the chain has {}", names()),
        (None, [vm]) => Ok(*vm),
        (None, _) => anyhow::bail!("the chain has several VMs, choose one by --vm: {}", names()),
    }
}

/// Indexes the heights into a temporary directory, so that every response which an index requests is in the recording.
async fn index(mut settings: Settings, recorder: &Recorder, from: u64, to: u64) -> anyhow::Result<()> {
    let dir = Temporary::new("record")?;
    let store: Arc<dyn Store> =
        Arc::new(RocksStore::open(&dir.path().join("index"), schema::TABLES, RocksOptions::default())?);
    settings.chain_id = Some(recorder.chain_id().to_owned());
    (settings.prefix, settings.start_height) = (None, Some(from));
    let node = Arc::new(recorder.node()?);
    let descriptors = node.descriptors().await?;
    // Traces are recorded by height; where a list of coins follows from them, it asks for state.
    let follows_traces = advice::evm_of(&descriptors)?.is_some_and(|evm| !evm.denoms_are_contracts());
    (settings.internal_txs, settings.rich_list) = (follows_traces, true);
    let mut config = ingest::Config { reconcile_every: None, ..settings.ingest(false)? };
    if config.vm == Vm::Evm && !advice::vms(&descriptors)?.contains(&Vm::Evm) {
        // The receipts of an EVM that is not known cannot be checked.
        config.verify = Verify::Off;
    }
    let ingest = Ingest::prepare(config, node, Arc::clone(&store)).await?;
    let (stop, stopped) = watch::channel(false);
    let mut marks = ingest.progress();
    let done = async {
        while marks.done() < to || has_questions(&*store, to)? {
            marks.moved().await;
        }
        stop.send_replace(true);
        Ok(())
    };
    tokio::try_join!(async { ingest.run(stopped).await.map_err(anyhow::Error::from) }, done)?;
    Ok(())
}

/// True if a query about an NFT of these heights is still open.
fn has_questions(store: &dyn Store, to: u64) -> anyhow::Result<bool> {
    let first = store::table::rows::<Questions>(&*store.snapshot()?, &All, Order::Asc, 1)?;
    Ok(first.first().is_some_and(|(place, _)| place.height <= to))
}
