//! The settings of the program: from files, environment and flags to values with types.
//!
//! | module | one job |
//! |---|---|
//! | [`keys`] | the list of all settings; everything else is derived from it |
//! | [`given`] | flags and environment variables |
//! | `file` | the configuration file |
//! | [`value`] | a value as written, with its place |
//! | [`units`] | texts of times, bytes and choices |
//! | [`mod@print`] | `cairn config` and the example file |
//!
//! What must hold: file < environment < flags; every source is parsed by the same code; an error names the place.

mod file;
pub(crate) mod given;
pub(crate) mod keys;
pub(crate) mod print;
pub(crate) mod units;
pub(crate) mod value;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use chain::Vm;
use node::{Endpoints, Url};
use query::EmptyCursor;
use tracing_subscriber::EnvFilter;
use web::cors::Cors;
use web::limits::Limits;

use self::keys::Key;
use self::units::{BadText, ByteSize, PerSecond, Span, choice};
use self::value::Origin;
pub(crate) use self::value::{Error, Value};
use crate::route::RouteSettings;

/// Values by the name of their setting.
pub(crate) type Values = BTreeMap<&'static str, Value>;

const LOOK_AHEAD: RangeInclusive<usize> = 1..=1024;
const POLL_MS: RangeInclusive<u128> = 10..=60_000;
const RECONCILE_S: RangeInclusive<u64> = 0..=86_400;
const CACHE: RangeInclusive<usize> = 8 << 20..=1 << 40;

/// Without any, a flush of what was committed may find no room.
const DISK_RESERVE: RangeInclusive<usize> = 0..=1 << 50;
const CONNECTIONS: RangeInclusive<usize> = 1..=1_000_000;
const REQUESTS: RangeInclusive<usize> = 1..=1_000_000;

/// Requests in flight get this long when the process stops, so that all of it stops within 2 s.
const STOP: Duration = Duration::from_secs(1);

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// What is logged and how.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub(crate) filter: String,
    pub(crate) format: LogFormat,
}

/// The effective settings. What has no default may be absent.
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
    /// None is never.
    pub(crate) reconcile: Option<Duration>,
    pub(crate) look_ahead: usize,
    pub(crate) poll: Duration,
    pub(crate) cache: usize,
    /// Bytes of the data directory's file system that are left free.
    pub(crate) disk_reserve: u64,
    /// What a client may take of a server.
    pub(crate) limits: Limits,
    /// In blocks.
    pub(crate) ready_lag: u64,
    pub(crate) cors: Cors,
    pub(crate) log: Log,
    pub(crate) empty_cursor: EmptyCursor,
    /// None if transfers are not routed.
    pub(crate) route: Option<RouteSettings>,
}

impl Settings {
    /// Parses `values`, with defaults for what is absent.
    pub(crate) fn new(values: &Values) -> Result<Self, Error> {
        let read = Reader(values);
        let bytes = |bytes: &usize| units::bytes_text(u64::try_from(*bytes).unwrap_or(u64::MAX));
        let ByteSize(disk_reserve) =
            read.bounded("disk_reserve", DISK_RESERVE, |ByteSize(bytes)| *bytes, bytes)?;
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
            poll: read.bounded("poll", POLL_MS, |Span(time)| time.as_millis(), |ms| format!("{ms}ms"))?.0,
            cache: read.bounded("cache", CACHE, |ByteSize(bytes)| *bytes, bytes)?.0,
            disk_reserve: u64::try_from(disk_reserve).unwrap_or(u64::MAX),
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

    /// What the ingest is to do.
    pub(crate) fn ingest(&self) -> Result<ingest::Config, Error> {
        Ok(ingest::Config {
            chain_id: self.chain_id.clone().ok_or_else(|| missing("chain_id"))?,
            vm: self.vm.ok_or_else(|| missing("vm"))?,
            prefix: self.prefix.clone(),
            start_height: self.start_height,
            internal_txs: self.internal_txs,
            rich_list: self.rich_list,
            reconcile_every: self.reconcile,
            look_ahead: self.look_ahead,
            poll: self.poll,
        })
    }

    /// The node's services, with those that the chain cannot be indexed without.
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

/// Reads the settings of `values` by name.
struct Reader<'a>(&'a Values);

impl Reader<'_> {
    /// The value of the setting `name`, or its default.
    fn value(&self, name: &str) -> Option<(&'static Key, Value)> {
        let key = keys::known(name);
        let default = || Some(Value::split(key, [key.default?.to_owned()], Origin::Default));
        Some((key, self.0.get(key.name).cloned().or_else(default)?))
    }

    fn optional<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, Error> {
        self.value(name).map(|(key, value)| value.parse(key)).transpose()
    }

    /// A setting that has a default.
    fn one<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T, Error> {
        self.optional(name)?.ok_or_else(|| missing(name))
    }

    fn many<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Vec<T>, Error> {
        self.value(name).map_or_else(|| Ok(Vec::new()), |(key, value)| value.parse_all(key))
    }

    /// A setting that has a default and bounds; `measure` is what the bounds are about.
    fn bounded<T: FromStr<Err: Display>, M: PartialOrd>(
        &self,
        name: &str,
        allowed: RangeInclusive<M>,
        measure: impl Fn(&T) -> M,
        shown: impl Fn(&M) -> String,
    ) -> Result<T, Error> {
        let parsed: T = self.one(name)?;
        if allowed.contains(&measure(&parsed)) {
            return Ok(parsed);
        }
        let (low, high) = (shown(allowed.start()), shown(allowed.end()));
        let bad = |(key, value): (&'static Key, Value)| {
            let reason = format!("`{}` is not from {low} to {high}", value.texts.join(","));
            value.bad(key, reason)
        };
        Err(self.value(name).map_or_else(|| missing(name), bad))
    }

    /// Whole seconds; none is never.
    fn reconcile(&self) -> Result<Option<Duration>, Error> {
        let seconds = |Span(time): &Span| time.as_secs() + u64::from(time.subsec_nanos() > 0);
        let span = self.bounded("reconcile", RECONCILE_S, seconds, |s| format!("{s}s"))?;
        Ok(Some(Duration::from_secs(seconds(&span))).filter(|every| !every.is_zero()))
    }

    fn limits(&self) -> Result<Limits, Error> {
        Ok(Limits {
            connections: self.bounded("max_connections", CONNECTIONS, |n| *n, usize::to_string)?,
            requests: self.bounded("max_requests", REQUESTS, |n| *n, usize::to_string)?,
            per_client: self.optional("rate_limit")?.map(|PerSecond(rate)| rate),
            trusted_proxies: self.many("trusted_proxies")?.into_iter().map(|Proxy(at)| at).collect(),
            stop: STOP,
            ..Limits::default()
        })
    }

    fn route(&self, cors: &Cors, limits: &Limits) -> Result<Option<RouteSettings>, Error> {
        let Some(Text(registry)) = self.optional("route.registry")? else { return Ok(None) };
        let Text(data) = self.one("route.data")?;
        Ok(Some(RouteSettings {
            registry: PathBuf::from(registry),
            data: PathBuf::from(data),
            listen: self.one::<Address>("route.listen")?.0,
            cors: cors.clone(),
            limits: limits.clone(),
        }))
    }

    fn cors(&self) -> Result<Cors, Error> {
        let Some((key, value)) = self.value("cors") else { return Ok(Cors::any()) };
        let origins = if value.texts == ["none"] { &[] } else { value.texts.as_slice() };
        Cors::origins(origins).map_err(|error| value.bad(key, format!("{error}, or `none`")))
    }
}

fn missing(name: &str) -> Error {
    let key = keys::known(name);
    Error::Missing { name: key.name, flag: key.flag, env: key.env }
}

/// A text that is not empty.
struct Text(String);

impl FromStr for Text {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        if text.is_empty() { Err(BadText::new(text, "a text")) } else { Ok(Self(text.to_owned())) }
    }
}

/// Where to listen.
struct Address(SocketAddr);

impl FromStr for Address {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let wanted = "an IP address and a port, such as 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080";
        text.parse().map(Self).map_err(|_| BadText::new(text, wanted))
    }
}

/// An address without a port.
struct Proxy(IpAddr);

impl FromStr for Proxy {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        text.parse().map(Self).map_err(|_| BadText::new(text, "an IP address, such as 10.0.0.1 or fd00::1"))
    }
}

/// A filter of logs, checked and kept as text: the filter itself cannot be cloned.
struct Filter(String);

impl FromStr for Filter {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        match EnvFilter::try_new(text) {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(error) => {
                Err(BadText::new(text, format!("a log filter such as info or info,ingest=debug: {error}")))
            }
        }
    }
}

impl FromStr for LogFormat {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        choice(text, &[("text", Self::Text), ("json", Self::Json)])
    }
}

struct Cursor(EmptyCursor);

impl FromStr for Cursor {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        choice(text, &[("null", EmptyCursor::Null), ("string", EmptyCursor::String)]).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str, text: &str) -> String {
        let key = keys::known(name);
        let value = Value::split(key, [text.to_owned()], Origin::Flag);
        Settings::new(&Values::from([(key.name, value)])).unwrap_err().to_string()
    }

    #[test]
    fn defaults_and_examples_are_values_that_are_accepted() {
        let defaults = Settings::new(&Values::new()).unwrap();
        assert_eq!(defaults.look_ahead, ingest::config::LOOK_AHEAD);
        assert_eq!(defaults.limits.connections, Limits::default().connections);
        assert_eq!(defaults.limits.requests, Limits::default().requests);
        assert_eq!(defaults.limits.per_client, None);
        assert_eq!(defaults.cache, store::RocksOptions::default().cache_bytes);
        assert_eq!(defaults.disk_reserve, store::RocksOptions::default().reserve_bytes);

        let example = |key: &&'static Key| Value::split(key, [key.example.to_owned()], Origin::Flag);
        let examples = keys::KEYS.iter().filter(|key| key.default.is_none());
        let settings = Settings::new(&examples.map(|key| (key.name, example(key))).collect()).unwrap();
        assert!(settings.ingest().is_ok() && settings.endpoints().is_ok() && settings.data().is_ok());
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_with_the_bounds() {
        assert_eq!(refused("look_ahead", "0"), "--look-ahead: `0` is not from 1 to 1024");
        assert_eq!(refused("poll", "2m"), "--poll: `2m` is not from 10ms to 60000ms");
        assert_eq!(refused("cache", "1MiB"), "--cache: `1MiB` is not from 8.0 MiB to 1.0 TiB");
        assert!(refused("max_connections", "-1").starts_with("--max-connections: "));
        assert_eq!(refused("max_requests", "0"), "--max-requests: `0` is not from 1 to 1000000");
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
        let message = settings.ingest().unwrap_err().to_string();
        assert_eq!(
            message,
            "`chain_id` is not set: give --chain-id, CAIRN_CHAIN_ID or `chain_id` in the file"
        );
    }
}
