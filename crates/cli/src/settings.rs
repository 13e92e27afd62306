//! Configuration: typed settings from a TOML file, environment variables and flags.
//!
//! | module | purpose |
//! |---|---|
//! | [`keys`] | the table of all settings; everything else derives from it |
//! | [`sources`] | flags and environment variables |
//! | `file` | the configuration file |
//! | `read` | parsers and bounds of values |
//! | [`value`] | a raw value with its source |
//! | [`units`] | parsers of durations, sizes, rates and choices |
//! | [`mod@print`] | `cairn config` and the example file |
//!
//! # Invariants
//! * Precedence: file < environment < flags.
//! * The same code parses values of every source, and an error names the source.

mod file;
pub(crate) mod keys;
pub(crate) mod log;
pub(crate) mod print;
mod read;
pub(crate) mod routing;
pub(crate) mod sources;
pub(crate) mod units;
pub(crate) mod value;

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use chain::Vm;
use ingest::Verify;
use node::{Endpoints, Url};
use query::EmptyCursor;
use web::cors::Cors;
use web::limits::Limits;

use self::log::{Filter, Log};
pub(crate) use self::read::missing;
use self::read::{Address, CACHE, Cursor, LOOK_AHEAD, POLL_MS, Reader, Text};
use self::routing::RouteSettings;
use self::units::{ByteSize, DurationArg};
pub(crate) use self::value::{Error, Value, Values};

/// Retry interval of a daemon for requests that the node does not support.
const TRY_AGAIN: Duration = Duration::from_secs(15);

/// The effective settings. Settings without a default are optional.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) data: Option<PathBuf>,
    pub(crate) listen: SocketAddr,
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) chain_id: Option<String>,
    pub(crate) vm: Option<Vm>,
    pub(crate) comet: Vec<Url>,
    pub(crate) rest: Vec<Url>,
    pub(crate) json_rpc: Vec<Url>,
    pub(crate) grpc: Vec<Url>,
    pub(crate) prefix: Option<String>,
    pub(crate) start_height: Option<u64>,
    pub(crate) internal_txs: bool,
    pub(crate) rich_list: bool,
    /// `None` disables it.
    pub(crate) reconcile: Option<Duration>,
    pub(crate) look_ahead: usize,
    pub(crate) poll: Duration,
    pub(crate) verify: Verify,
    /// In blocks.
    pub(crate) max_rewind: u64,
    pub(crate) cache: usize,
    /// Bytes kept free on the file system of the data directory.
    pub(crate) disk_reserve: u64,
    /// Limits of the servers.
    pub(crate) limits: Limits,
    /// In blocks.
    pub(crate) ready_lag: u64,
    pub(crate) cors: Cors,
    pub(crate) log: Log,
    pub(crate) empty_cursor: EmptyCursor,
    /// `None` without a routing service.
    pub(crate) route: Option<RouteSettings>,
}

impl Settings {
    /// Parses `values`; absent settings get their defaults.
    pub(crate) fn new(values: &Values) -> Result<Self, Error> {
        let read = Reader(values);
        let bytes = |bytes: &usize| units::bytes_text(u64::try_from(*bytes).unwrap_or(u64::MAX));
        let cors = read.cors()?;
        let limits = read.limits()?;
        Ok(Self {
            route: read.route(&cors, &limits)?,
            data: read.optional("data")?.map(|Text(text)| PathBuf::from(text)),
            listen: read.one::<Address>("listen")?.0,
            metrics: read.optional::<Address>("metrics")?.map(|Address(at)| at),
            chain_id: read.optional("chain_id")?.map(|Text(text)| text),
            vm: read.optional("vm")?,
            comet: read.many("comet")?,
            rest: read.many("rest")?,
            json_rpc: read.many("json_rpc")?,
            grpc: read.many("grpc")?,
            prefix: read.optional("prefix")?.map(|Text(text)| text),
            start_height: read.optional::<NonZeroU64>("start_height")?.map(NonZeroU64::get),
            internal_txs: read.one("internal_txs")?,
            rich_list: read.one("rich_list")?,
            reconcile: read.reconcile()?,
            look_ahead: read.bounded("look_ahead", LOOK_AHEAD, |n| *n, usize::to_string)?,
            poll: read
                .bounded("poll", POLL_MS, |DurationArg(time)| time.as_millis(), |ms| format!("{ms}ms"))?
                .0,
            verify: read.verify()?,
            max_rewind: read.one("max_rewind")?,
            disk_reserve: read.disk_reserve()?,
            cache: read.bounded("cache", CACHE, |ByteSize(bytes)| *bytes, bytes)?.0,
            limits,
            ready_lag: read.one("ready_lag")?,
            cors,
            log: Log { filter: read.one::<Filter>("log")?.0, format: read.one("log_format")? },
            empty_cursor: read.one::<Cursor>("pagination.empty_cursor")?.0,
        })
    }

    /// The data directory.
    pub(crate) fn data(&self) -> Result<&std::path::Path, Error> {
        self.data.as_deref().ok_or_else(|| missing("data"))
    }

    /// The configuration of the indexer. With `keep_trying` it retries requests that the node does not support.
    pub(crate) fn ingest(&self, keep_trying: bool) -> Result<ingest::Config, Error> {
        Ok(ingest::Config {
            chain_id: self.chain_id.clone().ok_or_else(|| missing("chain_id"))?,
            vm: self.vm.ok_or_else(|| missing("vm"))?,
            prefix: self.prefix.clone(),
            start_height: self.start_height,
            internal_txs: self.internal_txs,
            rich_list: self.rich_list,
            reconcile_every: self.reconcile,
            believe_after: ingest::config::BELIEVE_AFTER,
            look_ahead: self.look_ahead,
            poll: self.poll,
            verify: self.verify.clone(),
            max_rewind: self.max_rewind,
            keep_trying: keep_trying.then_some(TRY_AGAIN),
        })
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
}

#[cfg(test)]
mod tests {
    use super::keys::Key;
    use super::value::Source;
    use super::*;

    fn refused(name: &str, text: &str) -> String {
        let key = keys::known(name);
        let value = Value::split(key, [text.to_owned()], Source::Flag);
        Settings::new(&Values::from([(key.name, value)])).unwrap_err().to_string()
    }

    /// The same for a setting of a routing service.
    fn refused_of_route(name: &str, text: &str) -> String {
        let value = |name, text: &str| {
            let key = keys::known(name);
            (key.name, Value::split(key, [text.to_owned()], Source::Flag))
        };
        let values = [value("route.registry", "registry"), value("route.data", "data"), value(name, text)];
        Settings::new(&Values::from(values)).unwrap_err().to_string()
    }

    #[test]
    fn defaults_and_examples_are_values_that_are_accepted() {
        let defaults = Settings::new(&Values::new()).unwrap();
        assert_eq!(defaults.look_ahead, ingest::config::LOOK_AHEAD);
        assert_eq!(defaults.limits.connections, Limits::default().connections);
        assert_eq!(defaults.limits.requests, Limits::default().requests);
        assert_eq!(defaults.limits.requests_per_client, Limits::default().requests_per_client);
        assert_eq!(defaults.limits.connections_per_client, Limits::default().connections_per_client);
        assert_eq!(defaults.limits.per_client, None);
        assert_eq!(defaults.cache, store::RocksOptions::default().cache_bytes);

        let example = |key: &&'static Key| Value::split(key, [key.example.to_owned()], Source::Flag);
        let examples = keys::KEYS.iter().filter(|key| key.default.is_none());
        let mut examples: Values = examples.map(|key| (key.name, example(key))).collect();
        examples
            .insert("verify", Value::split(keys::known("verify"), ["signatures".to_owned()], Source::Flag));
        let settings = Settings::new(&examples).unwrap();
        let route = settings.route.as_ref().unwrap();
        assert_eq!(route.tracker, tracker::Options::default());
        assert_eq!(route.limits.per_client_of_path.len(), 1);
        assert!(settings.ingest(true).is_ok() && settings.endpoints().is_ok() && settings.data().is_ok());
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_with_the_bounds() {
        assert_eq!(refused("look_ahead", "0"), "--look-ahead: `0` is not from 1 to 1024");
        assert_eq!(refused("poll", "2m"), "--poll: `2m` is not from 10ms to 60000ms");
        assert_eq!(refused("cache", "1MiB"), "--cache: `1MiB` is not from 8.0 MiB to 1.0 TiB");
        assert!(refused("max_connections", "-1").starts_with("--max-connections: "));
        assert_eq!(refused("max_requests", "0"), "--max-requests: `0` is not from 1 to 1000000");
        assert_eq!(
            refused_of_route("route.retention", "30m"),
            "--route-retention: `30m` is not from 1h to 3650d"
        );
        assert!(refused_of_route("route.unseen_per_client", "0").ends_with("is not from 1 to 1000000"));
        assert!(refused_of_route("route.track_rate", "0/s").contains("a rate such as 50/s"));
        assert!(refused("ready_lag", "-1").starts_with("--ready-lag: "));
    }

    #[test]
    fn what_does_not_parse_is_refused_with_what_is_allowed() {
        assert!(refused("listen", "localhost").contains("127.0.0.1:8080"));
        assert!(refused("rate_limit", "50").ends_with("numbers from 1 to 4294967295"));
        assert!(refused("trusted_proxies", "10.0.0.0/8").ends_with("such as 10.0.0.1 or fd00::1"));
        assert!(refused("vm", "EVM").contains("evm, move, wasm or none"));
        assert!(refused("log_format", "xml").ends_with("`xml` is not one of text, json"));
        assert!(refused("log", "ingest=loud").contains("info,ingest=debug"));
        assert!(refused("cors", "app.example").ends_with("or `none`"));
        assert!(refused("pagination.empty_cursor", "").ends_with("is not one of null, string"));
        assert!(refused("chain_id", "").starts_with("--chain-id: "));
        assert!(refused("start_height", "0").starts_with("--start-height: "));
    }

    #[test]
    fn a_password_in_a_refused_address_is_not_shown() {
        let message = refused("comet", "ftp://me:hunter2@node/hunter2");
        assert_eq!(message, "--comet: node address `ftp://node`: must begin with http:// or https://");
    }

    #[test]
    fn what_is_missing_is_named_with_all_its_spellings() {
        let settings = Settings::new(&Values::new()).unwrap();
        let message = settings.ingest(true).unwrap_err().to_string();
        assert_eq!(
            message,
            "`chain_id` is not set: give --chain-id, CAIRN_CHAIN_ID or `chain_id` in the file"
        );
    }
}
