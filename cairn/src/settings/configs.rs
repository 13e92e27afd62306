//! The configurations of the indexer, the clients of the node and the servers, as they follow from the settings.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use chain::Vm;
use etherscan::Contracts;
use evm_rpc::{Dialect, Forward, ForwardAt, Frames, Otterscan};
use ingest::Verify;
use node::Endpoints;
use schema::balances::BALANCES;
use schema::bridge::BRIDGE;
use schema::call_errors::CALL_ERRORS;
use schema::ledger::LEDGER;
use schema::undo::Horizon;
use web::cors::Cors;
use web::limits::{self, Limits, PathRate};

use super::Settings;
use super::values::{Error, env_of, flag_of, missing};

/// Retry interval of a daemon for requests that the node does not support.
const TRY_AGAIN: Duration = Duration::from_secs(15);

/// Grace period of requests in flight at a stop, so that the process stops within 2 s.
const STOP: Duration = Duration::from_secs(1);

/// Settings of a routing service.
#[derive(Clone, Debug)]
pub(crate) struct RouteSettings {
    /// Directory of the registry.
    pub(crate) registry: PathBuf,
    /// Directory of the database.
    pub(crate) data: PathBuf,
    /// Address of the HTTP server.
    pub(crate) listen: SocketAddr,
    /// Origins that may read responses.
    pub(crate) cors: Cors,
    /// Whether it has the pages of routes.
    pub(crate) explorer: bool,
    /// Per-client and total limits of the server. The routing API sets the limit of request bodies itself.
    pub(crate) limits: Limits,
    /// The routing service itself.
    pub(crate) config: routing_api::Config,
}

impl Settings {
    /// The URL of the OpenTelemetry collector.
    pub(crate) fn collector(&self) -> Result<Option<&str>, Error> {
        match &self.otlp_endpoint {
            Some(_) if !cfg!(feature = "otlp") => Err(Error(format!(
                "`otlp_endpoint` is set, but this program was built without the cargo feature `otlp`: build it with \
                 --features cairn/otlp, or remove --{}, {} or `otlp_endpoint` in the file",
                flag_of("otlp_endpoint"),
                env_of("otlp_endpoint"),
            ))),
            endpoint => Ok(endpoint.as_deref()),
        }
    }

    /// Bytes of the cache of the database.
    pub(crate) fn cache_bytes(&self) -> usize {
        usize::try_from(self.cache.as_u64()).unwrap_or(usize::MAX)
    }

    /// What the undo log keeps.
    pub(crate) fn undo(&self) -> Horizon {
        Horizon { time: *self.undo_horizon, bytes: self.undo_bytes.as_u64() }
    }

    /// The configuration of the indexer. With `keep_trying` it retries requests that the node does not support.
    pub(crate) fn ingest(&self, keep_trying: bool) -> Result<ingest::Config, Error> {
        if self.trusted.is_some() && !matches!(self.verify, Verify::Signatures { .. }) {
            let text = "`trusted` counts only with `verify = \"signatures\"`: set that, or remove `trusted`";
            return Err(Error(text.to_owned()));
        }
        let verify = match &self.verify {
            Verify::Signatures { .. } => Verify::Signatures { trusted: self.trusted },
            other => other.clone(),
        };
        if self.index.contains(&&BALANCES) && !self.index.contains(&&LEDGER) {
            let text = "`index` names `balances`, which follow from the movements of `ledger`: name that too";
            return Err(Error(text.to_owned()));
        }
        // On an EVM chain the rich list has them.
        let is_written =
            |index: &&'static schema::index::Index| self.vm != Some(Vm::Evm) || **index != BALANCES;
        let bridge = ingest::config::Bridge { l1: self.bridge_l1.clone(), poll: *self.bridge_poll };
        if !bridge.l1.is_empty() && !self.index.contains(&&BRIDGE) {
            let text = "`bridge.l1` is of the index `bridge`: name that in `index`, or remove `bridge.l1`";
            return Err(Error(text.to_owned()));
        }
        // Whole seconds, and never 0 for less than one.
        let reconcile = Duration::from_secs_f64(self.reconcile.as_secs_f64().ceil());
        Ok(ingest::Config {
            chain_id: self.chain_id.clone().ok_or_else(|| missing("chain_id"))?,
            vm: self.vm.ok_or_else(|| missing("vm"))?,
            evm: self.evm.0,
            prefix: self.prefix.clone(),
            start_height: self.start_height,
            internal_txs: self.internal_txs,
            rich_list: self.rich_list,
            reconcile_every: Some(reconcile).filter(|every| !every.is_zero()),
            believe_after: ingest::config::BELIEVE_AFTER,
            look_ahead: self.look_ahead,
            poll: *self.poll,
            verify,
            max_rewind: self.max_rewind,
            indexes: self.index.iter().copied().filter(is_written).collect(),
            bridge: (!bridge.l1.is_empty()).then_some(bridge),
            undo: self.undo(),
            keep_trying: keep_trying.then_some(TRY_AGAIN),
        })
    }

    /// Fails with all settings that an index needs and that are not set.
    pub(crate) fn require_index(&self) -> Result<(), Error> {
        let needed = [
            ("chain_id", self.chain_id.is_none()),
            ("vm", self.vm.is_none()),
            ("comet", self.comet.is_empty()),
            ("json_rpc", self.json_rpc.is_empty() && self.vm == Some(Vm::Evm)),
            ("data", self.data.is_none()),
        ];
        let lines: Vec<_> = needed
            .into_iter()
            .filter(|(_, is_missing)| *is_missing)
            .map(|(name, _)| missing(name).0)
            .collect();
        if lines.is_empty() {
            return Ok(());
        }
        Err(Error(format!("{}\n`cairn init` asks the node for them and writes the file", lines.join("\n"))))
    }

    /// The endpoints of the node; an error if a required one is missing.
    pub(crate) fn endpoints(&self) -> Result<Endpoints, Error> {
        if self.comet.is_empty() {
            return Err(missing("comet"));
        }
        if self.json_rpc.is_empty() && self.vm == Some(Vm::Evm) {
            return Err(missing("json_rpc"));
        }
        Ok(Endpoints {
            comet: self.comet.clone(),
            rest: self.rest.clone(),
            json_rpc: self.json_rpc.clone(),
            grpc: self.grpc.clone(),
        })
    }

    /// Limits of the servers.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            connections: self.max_connections,
            connections_per_client: limits::share(self.max_connections),
            requests: self.max_requests,
            requests_per_client: limits::share(self.max_requests),
            response_bytes: usize::try_from(self.max_response_memory.as_u64()).unwrap_or(usize::MAX),
            streams: self.max_streams,
            streams_per_client: self.max_client_streams,
            per_client: self.rate_limit,
            trusted_proxies: self.trusted_proxies.clone(),
            stop: STOP,
            ..Limits::default()
        }
    }

    /// Fails if a setting of Ethereum's JSON-RPC, or an index of EVM transactions, has no effect: `vm` is that of the chain, if it
    /// is known.
    pub(crate) fn check_evm(&self, vm: Option<&str>) -> Result<(), Error> {
        let of_forward = [
            ("evm_forward_to", !self.evm_forward_to.is_empty()),
            ("evm_forward_at", self.evm_forward_at != ForwardAt::Node),
        ];
        let of_listener = [
            ("otterscan", self.otterscan.is_some()),
            ("evm_currency", self.evm_currency.is_some()),
            ("evm_frames", self.evm_frames != Frames::default()),
            ("evm_filters", self.evm_filters),
            ("abi", self.abi.is_some()),
            ("sourcify", self.sourcify.is_some()),
            ("evm_replies", self.evm_replies != Dialect::Fixed),
            ("evm_forward", !self.evm_forward.is_empty()),
        ];
        let needs = |partner: &str, is_there: bool, settings: &[(&str, bool)]| {
            let unused = settings.iter().find(|(_, is_set)| *is_set && !is_there);
            unused.map_or(Ok(()), |(name, _)| {
                Err(Error(format!("`{name}` counts only with `{partner}`: set that, or remove `{name}`")))
            })
        };
        needs("evm_listen", self.evm_listen.is_some(), &of_listener)?;
        needs("evm_listen", self.evm_listen.is_some(), &of_forward)?;
        needs("evm_forward", !self.evm_forward.is_empty(), &of_forward)?;
        if self.index.contains(&&CALL_ERRORS) && !self.internal_txs {
            return Err(Error(
                "`index` names `call_errors`, which needs `internal_txs`: set that to true".to_owned(),
            ));
        }
        let Some(vm) = vm.filter(|vm| *vm != Vm::Evm.name()) else { return Ok(()) };
        if self.evm.0.is_some() {
            return Err(Error(format!("`evm` needs a chain with an EVM, and `vm` is `{vm}`: remove it")));
        }
        if self.evm_listen.is_some() {
            return Err(Error(format!(
                "`evm_listen` needs a chain with an EVM, and `vm` is `{vm}`: remove it"
            )));
        }
        match self.index.iter().find(|index| index.needs_evm) {
            Some(index) => Err(Error(format!(
                "`index` names `{}`, which needs a chain with an EVM, and `vm` is `{vm}`: remove it",
                index.name
            ))),
            None => Ok(()),
        }
    }

    /// What Ethereum's JSON-RPC forwards; `None` for nothing.
    pub(crate) fn evm_forward(&self) -> anyhow::Result<Option<Forward>> {
        if self.evm_forward.is_empty() {
            return Ok(None);
        }
        let nodes = if self.evm_forward_to.is_empty() { &self.json_rpc } else { &self.evm_forward_to };
        if nodes.is_empty() {
            let text = "`evm_forward` needs a node: set `evm_forward_to` or `json_rpc`, or remove it";
            return Err(Error(text.to_owned()).into());
        }
        Ok(Some(Forward::new(self.evm_forward.clone(), nodes.clone())?.at(self.evm_forward_at)))
    }

    /// Otterscan's pages; `None` for none.
    pub(crate) fn otterscan(&self) -> anyhow::Result<Option<Otterscan>> {
        let Some(folder) = &self.otterscan else { return Ok(None) };
        let pages = Otterscan::read(folder, self.evm_currency.clone()).context("`otterscan`")?;
        tracing::info!(folder = %folder.display(), files = pages.len(), "serving Otterscan's pages");
        Ok(Some(pages))
    }

    /// The known contracts.
    ///
    /// # Errors
    /// If their folder does not exist: with a wrong name every contract would be unknown.
    pub(crate) fn contracts(&self) -> anyhow::Result<Option<Contracts>> {
        let Some(folder) = &self.abi else { return Ok(None) };
        let path = folder.display();
        anyhow::ensure!(
            folder.is_dir(),
            "`abi`: there is no folder {path}: create it, or fill it with `cairn abi pull`"
        );
        Ok(Some(Contracts::new(folder.clone())))
    }

    /// The settings of the routing service; `None` without a registry.
    pub(crate) fn route(&self) -> Option<RouteSettings> {
        let (registry, data) = self.route_registry.clone().zip(self.route_data.clone())?;
        let of_tx = |rate| {
            [routing_api::TRACK, routing_api::SUBMIT].map(|path| PathRate {
                path,
                rate,
                setting: "route.track_rate",
            })
        };
        Some(RouteSettings {
            registry,
            data,
            listen: self.route_listen,
            cors: self.cors.clone(),
            explorer: self.explorer,
            limits: Limits {
                per_client_of_path: self.track_rate.0.into_iter().flat_map(of_tx).collect(),
                ..self.limits()
            },
            config: routing_api::Config {
                tracker: tracker::Options {
                    retention: *self.retention,
                    unseen_per_client: self.unseen_per_client,
                    unseen_per_chain: self.unseen_per_chain,
                    reserve_bytes: self.disk_reserve.as_u64(),
                    ..tracker::Options::default()
                },
                submit: self.submit,
                prices: self
                    .price_feed
                    .clone()
                    .map(|url| routing_api::PriceSource { url, max_age: *self.price_max_age }),
                ..routing_api::Config::default()
            },
        })
    }
}
