//! The routing part of the demo: replay nodes of recorded chains, and a routing service over them.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::registry::Endpoints;
use ::replay::{Addresses, Options, Recording, ReplayNode};
use chain::Timestamp;
use tokio::sync::watch;
use web::cors::Cors;

use crate::local_index::CurrentIndex;
use crate::pages::CurrentRouting;
use crate::route::{self, Routing};
use crate::settings::RouteSettings;

/// Path of the example registry, relative to the parent of the recordings' directory: in the repository, and next to an
/// installed program.
const REGISTRIES: [&str; 2] = ["routing/registry/example", "registry/example"];

/// The recorded chains of the example registry.
const RECORDINGS: [&str; 4] = ["l1-l2/l1", "l1-l2/l2", "evm-oft/a", "evm-oft/b"];

/// Recorded transfers that the demo registers, for status queries, if it has their chains: a forwarded packet, a deposit, a
/// claimed withdrawal, an omnichain token; a swap whose coin goes to the rollup, a fast withdrawal.
const TRANSFERS: [(&str, &str); 6] = [
    ("e2e-l1-1", "80AB577C8435BC2C746415571CD99C7E593E6BBC67749B4C40B4AA5186CDEB4A"),
    ("e2e-l1-1", "6D83FA6F14D265F1168480841D3630011A81BA4B783EA9EB2EC17D69AD2CFC88"),
    ("e2e-l2-1", "F21ACD740CFEBAAB277158CD439DCBBD7A374F61FD706211A348EA185546E1E2"),
    ("31337", "0xdb933870507194390ef579a41ba25f43a3d90d18a1ef923fbb00668bcfb24c94"),
    ("swap-l1-1", "97F288DCDAF61B092A214C70F59BFBFC594E87D2C55AD3B91A62084EEF44B255"),
    ("swap-l2-1", "5E2994B3C7C5167B5099FA05205AB19DF42D63334AB40E3A4A2B575E1BC1D316"),
];

/// Bodies of example route requests, by the chain that they start on.
const EXAMPLE_REQUESTS: [(&str, &str); 2] = [
    (
        "e2e-l1-1",
        r#"{"amount_in":"1500000","source_asset_chain_id":"e2e-l1-1","source_asset_denom":"uinit","dest_asset_chain_id":"e2e-l2-1","dest_asset_denom":"evm/1EBEB4AA9d6b7ad48E093A336FEb6C17358250e2"}"#,
    ),
    (
        "swap-l1-1",
        r#"{"amount_in":"1500000","source_asset_chain_id":"swap-l1-1","source_asset_denom":"uusdc","dest_asset_chain_id":"swap-l1-1","dest_asset_denom":"uinit"}"#,
    ),
];

/// Nodes and the service over them.
pub(crate) struct RouteDemo {
    nodes: Vec<ReplayNode>,
    routing: Routing,
    current: CurrentRouting,
    settings: RouteSettings,
}

impl RouteDemo {
    /// Replays the chains of the registry beside the recording in `shown`, or else of the example registry, and serves
    /// routes between them; `None` if a recording is missing.
    pub(crate) async fn start(
        shown: &Path,
        data: &Path,
        listen: SocketAddr,
        submit: bool,
    ) -> anyhow::Result<Option<Self>> {
        let shown = shown.canonicalize()?;
        let of_pair = shown.parent().filter(|pair| pair.join("registry").is_dir());
        let found = if let Some(pair) = of_pair {
            Some((pair.join("registry"), recordings_in(pair)?))
        } else {
            example(&shown)
        };
        let Some((registry, recordings)) = found else { return Ok(None) };
        let mut nodes = Vec::new();
        for dir in &recordings {
            let recording = Arc::new(Recording::open(dir)?);
            nodes.push(ReplayNode::start(recording, Addresses::default(), Options::default()).await?);
        }
        let settings = RouteSettings {
            registry,
            data: data.to_owned(),
            listen,
            cors: Cors::any(),
            explorer: true,
            limits: web::limits::Limits { stop: Duration::from_secs(1), ..Default::default() },
            config: routing_api::Config { submit, ..routing_api::Config::default() },
        };
        let mut loaded = route::load(&settings.registry)?;
        loaded.registry = loaded.registry.with_endpoints(|chain| {
            nodes.iter().find(|node| node.recording().summary().chain_id == chain).map(endpoints)
        });
        let current = CurrentRouting::default();
        let routing = Routing::start(&settings, loaded, &current, &CurrentIndex::none())?;
        let demo = Self { nodes, routing, current, settings };
        for (chain, hash) in demo.transfers() {
            demo.routing.service().tracker().track(chain, hash, now()?)?;
        }
        Ok(Some(demo))
    }

    fn has(&self, chain: &str) -> bool {
        self.nodes.iter().any(|node| node.recording().summary().chain_id == chain)
    }

    fn transfers(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        TRANSFERS.into_iter().filter(|(chain, _)| self.has(chain))
    }

    /// The service, for the explorer's pages.
    pub(crate) fn current(&self) -> CurrentRouting {
        self.current.clone()
    }

    /// Example URLs.
    pub(crate) fn paths(&self) -> Result<String, std::fmt::Error> {
        let url = self.routing.url();
        let mut text = format!("\nRoutes between the recorded chains; {url}/swagger/ for the API:\n\n");
        for path in ["/v2/info/chains", "/v2/fungible/assets", "/openapi.json"] {
            writeln!(text, "  {url}{path}")?;
        }
        for (chain, hash) in self.transfers() {
            writeln!(text, "  {url}/v2/tx/status?chain_id={chain}&tx_hash={hash}")?;
        }
        for (_, body) in EXAMPLE_REQUESTS.into_iter().filter(|(chain, _)| self.has(chain)) {
            writeln!(
                text,
                "\n  curl -H 'content-type: application/json' {url}/v2/fungible/route -d '{body}'"
            )?;
        }
        Ok(text)
    }

    /// Follows the transfers until `stop`.
    pub(crate) async fn work(&self, stop: &watch::Receiver<bool>) -> anyhow::Result<()> {
        self.routing.work(&self.settings.registry, stop).await
    }

    /// Stops the service, and then the nodes that it queries.
    pub(crate) async fn stop(self) {
        self.routing.stop().await;
        for node in self.nodes {
            node.stop().await;
        }
    }
}

/// The example registry and its recordings, near the one in `shown`; `None` if one is missing.
fn example(shown: &Path) -> Option<(PathBuf, Vec<PathBuf>)> {
    // The recording of one of a pair is one folder deeper.
    let mut parents = shown.ancestors().skip(1).take(2);
    let has_all = |folder: &&Path| RECORDINGS.iter().all(|name| folder.join(name).is_dir());
    let Some(recordings) = parents.find(has_all) else {
        tracing::info!("recordings of the example registry are missing: no routes are shown");
        return None;
    };
    let places = recordings.ancestors().skip(1).take(2);
    let candidates = places.flat_map(|place| REGISTRIES.map(|registry| place.join(registry)));
    let Some(registry) = candidates.into_iter().find(|folder| folder.is_dir()) else {
        tracing::info!("no registry/example near the recordings: no routes are shown");
        return None;
    };
    Some((registry, RECORDINGS.map(|name| recordings.join(name)).into()))
}

/// The recordings of a folder with a registry.
fn recordings_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let dir = entry?.path();
        if dir.join("recording.json").is_file() {
            found.push(dir);
        }
    }
    Ok(found)
}

fn endpoints(node: &ReplayNode) -> Endpoints {
    let plain = node.recording().summary().vm != "ethereum";
    let if_plain = |url: String| if plain { vec![url] } else { Vec::new() };
    let has_evm = node.recording().is_evm() || !plain;
    Endpoints {
        rpc: if_plain(node.comet_url()),
        rest: if_plain(node.rest_url()),
        json_rpc: if has_evm { vec![node.json_rpc_url()] } else { Vec::new() },
        executor: node.executor_url().into_iter().collect(),
        secret: Vec::new(),
    }
}

fn now() -> anyhow::Result<Timestamp> {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    Ok(Timestamp::from_unix_nanos(i64::try_from(nanos)?))
}
