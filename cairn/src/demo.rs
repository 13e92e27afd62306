//! `cairn demo`: replays, indexes and serves a recorded chain in one process.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::replay::recording::Summary;
use ::replay::{Addresses, Options, Recording, ReplayNode};
use anyhow::Context as _;
use evm_rpc::Dialect;
use node::Url;
use schema::activity::ACTIVITY;
use schema::bridge::BRIDGE;
use schema::contracts::CONTRACTS;
use schema::evm_block::BLOCKS;
use schema::ledger::LEDGER;
use schema::logs::LOGS;
use schema::packets::PACKETS;
use schema::parties::PARTIES;
use schema::tokens::TOKENS;

use self::routing::RouteDemo;
use crate::serve::Serving;
use crate::settings::sources::{LOG, Sources};
use crate::settings::{Settings, dialect, path};
use crate::temporary::Temporary;
use crate::{logging, output, run, runtime, shutdown};

mod routing;

/// The recording that is played by default.
const DEFAULT: &str = "evm-scenario";

/// Directories of recordings: in the repository, in the prefix of an installed program, and anywhere else.
const FOLDERS: [&str; 3] = ["testing/recordings", "share/cairn/recordings", "recordings"];

/// The default of the setting `log`.
const DEFAULT_LOG: &str = "info";

/// Printed in place of the addresses of routes.
const NO_ROUTES: &str = "\nNo routes are served: the recording has no registry.\n";

/// Flags of `cairn demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Directory of the recording; by default `evm-scenario` of those that come with the program: in `testing/recordings`,
    /// `share/cairn/recordings` or `recordings`, here or in a directory above the program
    #[arg(long, value_name = "DIR", value_parser = path)]
    recording: Option<PathBuf>,
    /// Directory of the database; a temporary one, removed at the end, if it is not given
    #[arg(long, value_name = "DIR", value_parser = path)]
    data: Option<PathBuf>,
    /// Where the JSON interface listens; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Where the gRPC interface listens; without it there is none
    #[arg(long, value_name = "ADDR")]
    grpc_listen: Option<SocketAddr>,
    /// Where Ethereum's JSON-RPC listens, with the optional indexes that it reads; without it there is none
    #[arg(long, value_name = "ADDR")]
    evm_listen: Option<SocketAddr>,
    /// Replies of Ethereum's JSON-RPC: fixed or node
    #[arg(long, value_name = "FORM", default_value = "fixed", value_parser = dialect, requires = "evm_listen")]
    evm_replies: Dialect,
    /// Folder with the build of Otterscan, to be served with Ethereum's JSON-RPC
    #[arg(long, value_name = "DIR", requires = "evm_listen")]
    otterscan: Option<PathBuf>,
    /// Folder of known contracts, for Etherscan's API on the address of Ethereum's JSON-RPC
    #[arg(long, value_name = "DIR", value_parser = path)]
    abi: Option<PathBuf>,
    /// Server of Sourcify's API, for the same
    #[arg(long, value_name = "URL")]
    sourcify: Option<Url>,
    /// Where the routing interface listens; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8081")]
    route_listen: SocketAddr,
    /// Relays signed transactions at /v2/tx/submit; the replayed chains take those that they have
    #[arg(long)]
    submit: bool,
    #[command(flatten)]
    log: Sources<LOG>,
}

/// Runs until a stop signal.
pub(crate) fn run(args: Demo) -> anyhow::Result<()> {
    let mut base = args.log.settings()?;
    if base.log == DEFAULT_LOG {
        // The routing service asks contracts for what the recorded chain was not asked.
        base.log = format!("{DEFAULT_LOG},replay=error");
    }
    let (screen, _) = logging::start(&base)?;
    let dir = args.recording.map_or_else(find, Ok)?;
    let recording = Arc::new(Recording::open(&dir)?);
    let temporary = Temporary::new("demo")?;
    let data = Some(args.data.unwrap_or_else(|| temporary.path().join("index")));
    runtime::block_on_indexing(async {
        let stop = shutdown::watch()?;
        let node = ReplayNode::start(recording, Addresses::default(), Options::default()).await?;
        let mut settings = settings_of(&node, base)?;
        (settings.data, settings.listen, settings.grpc_listen) = (data, args.listen, args.grpc_listen);
        settings.index = vec![&ACTIVITY, &BRIDGE, &LEDGER, &PACKETS, &TOKENS];
        if args.evm_listen.is_some() {
            (settings.evm_listen, settings.evm_replies) = (args.evm_listen, args.evm_replies);
            settings.otterscan = args.otterscan;
            settings.index.extend([&BLOCKS, &CONTRACTS, &LOGS, &PARTIES]);
            (settings.abi, settings.sourcify) = (args.abi, args.sourcify);
        }
        let tracked = temporary.path().join("route");
        let routes = RouteDemo::start(&dir, &tracked, args.route_listen, args.submit).await?;
        let more = routes.as_ref().map(RouteDemo::paths).transpose()?;
        let more = more.unwrap_or_else(|| NO_ROUTES.to_owned());
        let current = routes.as_ref().map(RouteDemo::current);
        let arrived = |serving: Option<&Serving>| announce(serving, node.recording().summary(), &more);
        let work = async {
            if let Some(routes) = &routes {
                routes.work(&stop).await?;
            }
            // The demo ends when the indexer does.
            std::future::pending::<anyhow::Result<Infallible>>().await
        };
        let outcome = tokio::select! {
            outcome = run::index(&settings, true, &screen, &stop, current, arrived) => outcome,
            outcome = work => outcome.map(|never| match never {}),
        };
        if let Some(routes) = routes {
            routes.stop().await;
        }
        node.stop().await;
        outcome
    })
}

/// The recording that ships with the program.
fn find() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("where this program is")?;
    let places = std::iter::once(Path::new("")).chain(program.ancestors().skip(1));
    let mut candidates = places.flat_map(|place| FOLDERS.map(|folder| place.join(folder).join(DEFAULT)));
    match candidates.find(|dir| dir.is_dir()) {
        Some(dir) => Ok(dir),
        None => anyhow::bail!(
            "no share/cairn/recordings/{DEFAULT} here or in a directory above {}: name a recording with --recording DIR",
            program.display()
        ),
    }
}

/// The settings of `base`, with those of the chain taken from `node`.
fn settings_of(node: &ReplayNode, mut base: Settings) -> anyhow::Result<Settings> {
    let about = node.recording().summary();
    base.chain_id = Some(about.chain_id.clone());
    base.vm = Some(about.vm.parse()?);
    base.comet = vec![node.comet_url().parse()?];
    base.rest = vec![node.rest_url().parse()?];
    base.json_rpc = if node.recording().is_evm() { vec![node.json_rpc_url().parse()?] } else { Vec::new() };
    (base.grpc, base.prefix, base.start_height) = (Vec::new(), None, None);
    Ok(base)
}

/// Prints example URLs.
fn announce(serving: Option<&Serving>, about: &Summary, more: &str) -> anyhow::Result<()> {
    let Some(serving) = serving else { return Ok(()) };
    let account = some_account(serving);
    let mut text = format!(
        "\n{} is indexed: {} transactions in heights {} to {}.\n\
         Open {url}/ in a browser, {url}/swagger/ for the API, or as JSON\n\n",
        about.chain_id,
        about.txs,
        about.first_height,
        about.last_height,
        url = serving.url()
    );
    for path in paths(about, account.as_deref()) {
        writeln!(text, "  {}{path}", serving.url())?;
    }
    text.push_str(more);
    text.push_str("\nCtrl-C ends it.\n");
    Ok(output::print(&text)?)
}

fn paths(about: &Summary, account: Option<&str>) -> Vec<String> {
    let mut paths = vec![
        "/status".to_owned(),
        "/indexer/block/v1/blocks?pagination.limit=10".to_owned(),
        "/indexer/tx/v1/txs?pagination.limit=10".to_owned(),
    ];
    if about.vm == "evm" {
        paths.push("/indexer/tx/v1/evm-txs?pagination.limit=10".to_owned());
        paths.push("/indexer/tx/v1/evm-internal-txs?pagination.limit=10".to_owned());
        paths.push("/indexer/richlist/v1/GAS?pagination.limit=10".to_owned());
    }
    paths.push("/indexer/nft/v1/collections".to_owned());
    if let Some(account) = account {
        paths.push(format!("/indexer/nft/v1/tokens/by_account/{account}?pagination.limit=10"));
        paths.push(format!("/indexer/tx/v1/txs/by_account/{account}?pagination.limit=10"));
    }
    paths.push("/openapi.json".to_owned());
    paths
}

/// An account that sent one of the newest transactions.
fn some_account(serving: &Serving) -> Option<String> {
    let response = serving.app()?.get("/indexer/tx/v1/txs?pagination.limit=100");
    let page: serde_json::Value = serde_json::from_slice(response.body()).unwrap_or_default();
    let elements = |list: &serde_json::Value| list.as_array().cloned().unwrap_or_default();
    let events = elements(&page["txs"]).into_iter().flat_map(|tx| elements(&tx["events"]));
    let messages = events.filter(|event| event["type"] == "message");
    let mut senders =
        messages.flat_map(|event| elements(&event["attributes"])).filter(|of| of["key"] == "sender");
    senders
        .find_map(|sender| sender["value"].as_str().filter(|account| !account.is_empty()).map(str::to_owned))
}
