//! Typed values of settings: parsers, bounds and dependencies between settings.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use ingest::Verify;
use query::EmptyCursor;
use web::cors::Cors;
use web::limits::{self, Limits, PathRate};

use super::keys::{self, Key};
use super::routing::RouteSettings;
use super::units::{self, BadText, ByteSize, DurationArg, PerSecond, choice};
use super::value::{Error, Source, Value, Values};

pub(super) const LOOK_AHEAD: RangeInclusive<usize> = 1..=1024;
pub(super) const POLL_MS: RangeInclusive<u128> = 10..=60_000;
const RECONCILE_S: RangeInclusive<u64> = 0..=86_400;
/// With 0, a flush of committed data may run out of space.
const DISK_RESERVE: RangeInclusive<usize> = 0..=1 << 50;
pub(super) const CACHE: RangeInclusive<usize> = 8 << 20..=1 << 40;
const CONNECTIONS: RangeInclusive<usize> = 1..=1_000_000;
const REQUESTS: RangeInclusive<usize> = 1..=1_000_000;
const UNSEEN: RangeInclusive<usize> = 1..=1_000_000;
const RETENTION_HOURS: RangeInclusive<u64> = 1..=3_650 * 24;

/// Grace period of requests in flight at a stop, so that the process stops within 2 s.
const STOP: Duration = Duration::from_secs(1);

/// Reads the settings of `values` by name.
pub(super) struct Reader<'a>(pub(super) &'a Values);

impl Reader<'_> {
    /// The value of the setting `name`, or its default.
    pub(super) fn value(&self, name: &str) -> Option<(&'static Key, Value)> {
        let key = keys::known(name);
        let default = || Some(Value::split(key, [key.default?.to_owned()], Source::Default));
        Some((key, self.0.get(key.name).cloned().or_else(default)?))
    }

    pub(super) fn optional<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, Error> {
        self.value(name).map(|(key, value)| value.parse(key)).transpose()
    }

    /// A setting that has a default.
    pub(super) fn one<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T, Error> {
        self.optional(name)?.ok_or_else(|| missing(name))
    }

    pub(super) fn many<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Vec<T>, Error> {
        self.value(name).map_or_else(|| Ok(Vec::new()), |(key, value)| value.parse_all(key))
    }

    /// A setting that has a default and bounds; `measure` is the quantity that the bounds limit.
    pub(super) fn bounded<T: FromStr<Err: Display>, M: PartialOrd>(
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

    /// Whole seconds; `None` disables it.
    pub(super) fn reconcile(&self) -> Result<Option<Duration>, Error> {
        let seconds = |DurationArg(time): &DurationArg| time.as_secs() + u64::from(time.subsec_nanos() > 0);
        let span = self.bounded("reconcile", RECONCILE_S, seconds, |s| format!("{s}s"))?;
        Ok(Some(Duration::from_secs(seconds(&span))).filter(|every| !every.is_zero()))
    }

    /// `verify`, with `trusted` for signatures; other modes ignore `trusted`.
    pub(super) fn verify(&self) -> Result<Verify, Error> {
        let trusted = self.optional("trusted")?.map(|KnownBlock(height, hash)| (height, hash));
        let Checks(verify) = self.one("verify")?;
        Ok(match verify {
            Verify::Signatures { .. } => Verify::Signatures { trusted },
            other => other,
        })
    }

    pub(super) fn limits(&self) -> Result<Limits, Error> {
        let connections = self.bounded("max_connections", CONNECTIONS, |n| *n, usize::to_string)?;
        let requests = self.bounded("max_requests", REQUESTS, |n| *n, usize::to_string)?;
        Ok(Limits {
            connections,
            connections_per_client: limits::share(connections),
            requests,
            requests_per_client: limits::share(requests),
            per_client: self.optional("rate_limit")?.map(|PerSecond(rate)| rate),
            trusted_proxies: self.many("trusted_proxies")?.into_iter().map(|Proxy(at)| at).collect(),
            stop: STOP,
            ..Limits::default()
        })
    }

    pub(super) fn disk_reserve(&self) -> Result<u64, Error> {
        let shown = |bytes: &usize| units::bytes_text(u64::try_from(*bytes).unwrap_or(u64::MAX));
        let ByteSize(bytes) = self.bounded("disk_reserve", DISK_RESERVE, |ByteSize(b)| *b, shown)?;
        Ok(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    pub(super) fn route(&self, cors: &Cors, limits: &Limits) -> Result<Option<RouteSettings>, Error> {
        let Some(Text(registry)) = self.optional("route.registry")? else { return Ok(None) };
        let Text(data) = self.one("route.data")?;
        let track_rate = self.value("route.track_rate").filter(|(_, value)| value.texts != ["off"]);
        let track_rate = track_rate.map(|(key, value)| value.parse(key)).transpose()?;
        let of_track = |PerSecond(rate)| PathRate { path: "/v2/tx/track", rate, setting: "route.track_rate" };
        let days = |hours: &u64| {
            if hours.is_multiple_of(24) { format!("{}d", hours / 24) } else { format!("{hours}h") }
        };
        let hours = |DurationArg(time): &DurationArg| time.as_secs() / 3_600;
        let unseen = |name| self.bounded(name, UNSEEN, |n| *n, usize::to_string);
        Ok(Some(RouteSettings {
            registry: PathBuf::from(registry),
            data: PathBuf::from(data),
            listen: self.one::<Address>("route.listen")?.0,
            cors: cors.clone(),
            limits: Limits {
                per_client_of_path: track_rate.map(of_track).into_iter().collect(),
                ..limits.clone()
            },
            tracker: tracker::Options {
                retention: self.bounded("route.retention", RETENTION_HOURS, hours, days)?.0,
                unseen_per_client: unseen("route.unseen_per_client")?,
                unseen_per_chain: unseen("route.unseen_per_chain")?,
                reserve_bytes: self.disk_reserve()?,
                ..tracker::Options::default()
            },
        }))
    }

    pub(super) fn cors(&self) -> Result<Cors, Error> {
        let Some((key, value)) = self.value("cors") else { return Ok(Cors::any()) };
        let origins = if value.texts == ["none"] { &[] } else { value.texts.as_slice() };
        Cors::origins(origins).map_err(|error| value.bad(key, format!("{error}, or `none`")))
    }
}

/// The error for the missing setting `name`.
pub(crate) fn missing(name: &str) -> Error {
    let key = keys::known(name);
    Error::Missing { name: key.name, flag: key.flag, env: key.env }
}

/// A text that is not empty.
pub(super) struct Text(pub(super) String);

impl FromStr for Text {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        if text.is_empty() { Err(BadText::new(text, "a text")) } else { Ok(Self(text.to_owned())) }
    }
}

/// A socket address.
pub(super) struct Address(pub(super) SocketAddr);

impl FromStr for Address {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let wanted = "an IP address and a port, such as 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080";
        text.parse().map(Self).map_err(|_| BadText::new(text, wanted))
    }
}

/// An address without a port.
pub(super) struct Proxy(pub(super) IpAddr);

impl FromStr for Proxy {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        text.parse().map(Self).map_err(|_| BadText::new(text, "an IP address, such as 10.0.0.1 or fd00::1"))
    }
}

pub(super) struct Cursor(pub(super) EmptyCursor);

impl FromStr for Cursor {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        choice(text, &[("null", EmptyCursor::Null), ("string", EmptyCursor::String)]).map(Self)
    }
}

struct Checks(Verify);

impl FromStr for Checks {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let signatures = || Verify::Signatures { trusted: None };
        let kinds = [("off", 0), ("hashes", 1), ("signatures", 2)];
        Ok(Self(match choice(text, &kinds)? {
            0 => Verify::Off,
            1 => Verify::Hashes,
            _ => signatures(),
        }))
    }
}

/// A height and the hash of its block.
struct KnownBlock(u64, [u8; 32]);

impl FromStr for KnownBlock {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let bad = || {
            BadText::new(text, "a height and the 64 hex digits of its block's hash, such as 1200:2D35…9184C")
        };
        let (height, hash) = text.split_once(':').ok_or_else(bad)?;
        let hash = hex::decode(hash).ok().and_then(|hash| hash.try_into().ok()).ok_or_else(bad)?;
        Ok(Self(height.parse().map_err(|_| bad())?, hash))
    }
}
