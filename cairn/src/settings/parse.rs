//! Parsers of single values. An error has the text and the accepted form.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use bytesize::ByteSize;
use chain::evm::flavour::Flavour;
use evm_rpc::{Dialect, ForwardAt, Frames, Group};
use humantime::Duration as Time;
use ingest::Verify;
use ipnet::{IpNet, Ipv4Net};
use query::EmptyCursor;
use schema::INDEXES;
use schema::index::{self, Index};
use tracing_subscriber::EnvFilter;
use web::limits::Rate;

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// The rate of `/v2/tx/track`; `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrackRate(pub(super) Option<Rate>);

/// The software of an EVM; `None` is auto.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Evm(pub(crate) Option<Flavour>);

/// The largest `u64`.
pub(super) const MAX: &str = "18446744073709551615";

/// A parser of numbers.
pub(super) fn number<T>(low: &'static str, high: &'static str) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: FromStr + PartialOrd,
{
    within("a number", low, high)
}

/// A parser of durations such as `250ms`, `2s`, `1m`, `6h` or `30d`.
pub(super) fn time(low: &'static str, high: &'static str) -> impl Fn(&str) -> Result<Time, String> + Clone {
    within("a time", low, high)
}

/// A parser of sizes such as `1048576`, `512KiB` or `2GiB`.
pub(super) fn size(
    low: &'static str,
    high: &'static str,
) -> impl Fn(&str) -> Result<ByteSize, String> + Clone {
    within("a size", low, high)
}

fn within<T: FromStr + PartialOrd>(
    noun: &'static str,
    low: &'static str,
    high: &'static str,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let parsed = text.parse::<T>().ok();
        let allowed = parsed >= low.parse().ok() && parsed <= high.parse().ok();
        parsed.filter(|_| allowed).ok_or_else(|| not(text, format!("{noun} from {low} to {high}")))
    }
}

fn not(text: &str, accepted: impl fmt::Display) -> String {
    format!("`{text}` is not {accepted}")
}

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let accepted = "an IP address and a port, such as 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080";
    text.parse().map_err(|_| not(text, accepted))
}

/// A collector receives on this machine or a private network, so that the exporter needs no TLS.
pub(super) fn collector(text: &str) -> Result<String, String> {
    let uri = text.parse::<http::Uri>().ok();
    let is_accepted = uri.is_some_and(|uri| uri.scheme_str() == Some("http") && uri.host().is_some());
    is_accepted
        .then(|| text.to_owned())
        .ok_or_else(|| not(text, "http://host:port, such as http://127.0.0.1:4317"))
}

/// An address, or a network. One of IPv4 addresses as IPv6 addresses (RFC 4291 §2.5.5.2) is that of the IPv4 addresses.
pub(super) fn proxy(text: &str) -> Result<IpNet, String> {
    let network = text.parse().ok().or_else(|| text.parse().ok().map(|address: IpAddr| address.into()));
    let network = network
        .ok_or_else(|| not(text, "an IP address or a network, such as 10.0.0.1, 10.0.0.0/8 or fd00::/8"))?;
    let mapped = |address: Ipv6Addr, length: u8| {
        Ipv4Net::new(address.to_ipv4_mapped()?, length.checked_sub(96)?).ok().map(IpNet::V4)
    };
    Ok(match network {
        IpNet::V6(v6) => mapped(v6.addr(), v6.prefix_len()).unwrap_or(network),
        IpNet::V4(_) => network,
    })
}

/// A path, in which `~` in front stands for the home directory: in a file, in a variable and behind a `=` no shell
/// replaces it.
pub(crate) fn path(text: &str) -> Result<PathBuf, String> {
    let Some(rest) = text.strip_prefix('~') else {
        return if text.is_empty() { Err("the value is empty".to_owned()) } else { Ok(PathBuf::from(text)) };
    };
    let rest = match rest.strip_prefix('/') {
        Some(below) => below,
        None if rest.is_empty() => rest,
        None => return Err(not(text, "a path: of `~` only one's own home is known, as in ~/cairn")),
    };
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let home = home.ok_or_else(|| format!("`{text}` needs the variable HOME, which has no directory"))?;
    Ok(if rest.is_empty() { home } else { home.join(rest) })
}

/// The id of a chain and the path or URL of its database.
pub(super) fn location(text: &str) -> Result<(String, PathBuf), String> {
    let (id, location) = pair(text)?;
    Ok((id, path(&location)?))
}

/// BIP 173: a prefix is up to 83 visible characters of ASCII, and addresses are written in lower case.
pub(super) fn prefix(text: &str) -> Result<String, String> {
    let is_valid = (1..=83).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase());
    is_valid
        .then(|| text.to_owned())
        .ok_or_else(|| not(text, "a prefix of addresses, such as init: visible characters in lower case"))
}

/// The name of an optional index.
pub(crate) fn index(text: &str) -> Result<&'static Index, String> {
    let names: Vec<&str> = INDEXES.iter().map(|index| index.name).collect();
    index::named(text).ok_or_else(|| not(text, format!("an optional index, allowed: {}", names.join(", "))))
}

/// `auto` or the name of an EVM.
pub(super) fn evm(text: &str) -> Result<Evm, String> {
    let named = text.parse().map(Some);
    let evm = if text == "auto" { Ok(None) } else { named };
    evm.map(Evm).map_err(|_| not(text, "auto, minievm, cosmos-evm or ethermint"))
}

/// `fixed` or `node`.
pub(crate) fn dialect(text: &str) -> Result<Dialect, String> {
    match text {
        "fixed" => Ok(Dialect::Fixed),
        "node" => Ok(Dialect::Node),
        _ => Err(not(text, "fixed or node")),
    }
}

/// `node` or `clean`.
pub(super) fn frames(text: &str) -> Result<Frames, String> {
    match text {
        "node" => Ok(Frames::Node),
        "clean" => Ok(Frames::Clean),
        _ => Err(not(text, "node or clean")),
    }
}

/// `node` or `index`.
pub(super) fn forward_at(text: &str) -> Result<ForwardAt, String> {
    match text {
        "node" => Ok(ForwardAt::Node),
        "index" => Ok(ForwardAt::Index),
        _ => Err(not(text, "node or index")),
    }
}

/// A group of forwarded calls.
pub(super) fn group(text: &str) -> Result<Group, String> {
    let found = Group::ALL.into_iter().find(|group| group.name() == text);
    let names = Group::ALL.map(Group::name).join(", ");
    found.ok_or_else(|| not(text, format!("a group of calls, allowed: {names}")))
}

/// `one=two`.
pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(one, two)| !one.is_empty() && !two.is_empty());
    pair.map(|(one, two)| (one.to_owned(), two.to_owned()))
        .ok_or_else(|| not(text, "a pair with `=` between, such as rollup-1=/var/lib/rollup-1"))
}

/// `50/s`, or with another burst `50/s:200`.
pub(super) fn rate(text: &str) -> Result<Rate, String> {
    let (per_second, burst) = text.split_once(':').map_or((text, None), |(rate, burst)| (rate, Some(burst)));
    let number = |digits: &str| digits.parse::<NonZeroU32>().ok().filter(|_| !digits.starts_with('+'));
    let per_second = per_second.strip_suffix("/s").and_then(number);
    let rate = per_second.zip(burst.map_or(per_second, number));
    rate.map(|(per_second, burst)| Rate { per_second, burst })
        .ok_or_else(|| not(text, "a rate such as 50/s or 50/s:200, of numbers from 1 to 4294967295"))
}

pub(super) fn track_rate(text: &str) -> Result<TrackRate, String> {
    if text == "off" {
        return Ok(TrackRate(None));
    }
    rate(text).map(|rate| TrackRate(Some(rate))).map_err(|error| format!("{error}, or `off`"))
}

/// A height and the hash of its block.
pub(super) fn block(text: &str) -> Result<(u64, [u8; 32]), String> {
    let parsed = text
        .split_once(':')
        .and_then(|(height, hash)| Some((height.parse().ok()?, hex::decode(hash).ok()?.try_into().ok()?)));
    let accepted = "a height and the 64 hex digits of its block's hash, such as 1200:2D35…9184C";
    parsed.ok_or_else(|| not(text, accepted))
}

pub(super) fn log_filter(text: &str) -> Result<String, String> {
    let accepted = "a log filter such as info or info,ingest=debug";
    EnvFilter::try_new(text)
        .map(|_| text.to_owned())
        .map_err(|error| not(text, format!("{accepted}: {error}")))
}

pub(super) fn log_format(text: &str) -> Result<LogFormat, String> {
    choice(text, [("text", LogFormat::Text), ("json", LogFormat::Json)])
}

pub(super) fn boolean(text: &str) -> Result<bool, String> {
    choice(text, [("true", true), ("false", false)])
}

pub(super) fn cursor(text: &str) -> Result<EmptyCursor, String> {
    choice(text, [("null", EmptyCursor::Null), ("string", EmptyCursor::String)])
}

pub(super) fn verify(text: &str) -> Result<Verify, String> {
    let signatures = Verify::Signatures { trusted: None };
    choice(text, [("off", Verify::Off), ("hashes", Verify::Hashes), ("signatures", signatures)])
}

fn choice<T, const N: usize>(text: &str, choices: [(&str, T); N]) -> Result<T, String> {
    let names = choices.each_ref().map(|(name, _)| *name).join(", ");
    let chosen = choices.into_iter().find(|(name, _)| *name == text);
    chosen.map(|(_, value)| value).ok_or_else(|| not(text, format!("one of {names}")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_and_sizes_are_read_with_their_units() {
        let parse = |text| time("0s", "3650d")(text).map(Duration::from);
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse("2m"), Ok(Duration::from_mins(2)));
        assert_eq!(parse("6h"), Ok(Duration::from_hours(6)));
        assert_eq!(parse("30d"), Ok(Duration::from_hours(720)));
        let parse = |text| size("0", "1TiB")(text).map(|size| size.as_u64());
        assert_eq!(parse("64KiB"), Ok(65_536));
        assert_eq!(parse("12"), Ok(12));
    }

    #[test]
    fn texts_without_unit_or_number_are_refused() {
        for text in ["", "5", "ms", "-1s", "1 fortnight", "99999999999999999999s", "18446744073709551615m"] {
            assert_eq!(time("0s", "30d")(text), Err(format!("`{text}` is not a time from 0s to 30d")));
        }
        for text in ["", "MiB", "-1", "1 apple", "99999999999GiB"] {
            assert_eq!(size("8MiB", "1TiB")(text), Err(format!("`{text}` is not a size from 8MiB to 1TiB")));
        }
    }

    #[test]
    fn bounds_are_included() {
        let parse = number::<u8>("2", "200");
        for (text, is_accepted) in [("1", false), ("2", true), ("200", true), ("201", false), ("256", false)]
        {
            assert_eq!(parse(text).is_ok(), is_accepted, "{text}");
        }
    }

    #[test]
    fn rates_have_a_second_and_maybe_a_burst() {
        let expected = |per_second, burst| {
            let some = |n| NonZeroU32::new(n).unwrap();
            Ok(Rate { per_second: some(per_second), burst: some(burst) })
        };
        assert_eq!(rate("50/s"), expected(50, 50));
        assert_eq!(rate("50/s:200"), expected(50, 200));
        for text in
            ["", "50", "0/s", "50/s:", "50/s:0", "50/m", "-1/s", "+1/s", "1.5/s", "4294967296/s", "50/s:1:2"]
        {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
