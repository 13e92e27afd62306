//! Fault injection: slow, refused, truncated, stale and false replies, each with a probability.
//!
//! The seed, the service, the ordinal of the request on that service and the fault's position in the list determine the
//! affected requests: the same seed and the same requests give the same faults. Delays are bounded.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use http::StatusCode;

use crate::answers::{Deviation, Deviations, Service};
use crate::seeded_rng::{mix, random_at, unit};

/// The longest delay.
pub const MAX_DELAY: Duration = Duration::from_mins(1);

/// Heights that a `stale` fault without a number subtracts from the tip.
const STALE_BY: u64 = 5;

const ALLOWED: &str = "allowed: [comet:|rest:|json-rpc:|executor:] then delay=50ms, 429, 429=2s (with retry-after), 500, 502, \
                       503, 504, cut, hang-up, stale or stale=3, null-receipts, no-results, discard-abci-responses, \
                       no-tracing, pruned=100, pruned-receipts=100, block-hashes=100, state-lag=400ms, lie-txs, lie-header, \
                       lie-header-rehashed, lie-results, lie-events, lie-receipts, other-height, wrong-chain, no-search, no-index, \
                       pruned-index=100, search-range=100, search-delay=20s, late-tip=86400, unseen-withdrawals, \
                       ws-silent or ws-refused, \
                       then [@probability, 0 to 1]";

/// The kind of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The reply is delayed by this time.
    Delay(Duration),
    /// This status instead of a reply; a 429 may have a `Retry-After` in seconds.
    Status(StatusCode, Option<u64>),
    /// The body ends in the middle, as when a connection breaks.
    Cut,
    /// The connection is closed without a reply.
    HangUp,
    /// Answered as if the tip were this many heights lower.
    Stale(u64),
    /// The reply differs from that of a correct node.
    Deviation(Deviation),
    /// A deviation with a number, such as the height of [`Deviation::Pruned`].
    DeviationBy(Deviation, u64),
    /// A search for transactions is delayed by this time.
    SearchDelay(Duration),
    /// For up to this time after a height is shown, requests about its state are answered from the state of the
    /// previous height. The probability applies per height; eight later heights end the lag.
    StateLag(Duration),
    /// Websockets open and then send no messages.
    WsSilent,
    /// Websockets are rejected with 404, as by a proxy without websocket support.
    WsRefused,
}

/// A fault with its services and its share of requests.
///
/// Parsed from text such as `delay=50ms@0.1` or `json-rpc:500@0.2`; without a probability it affects every request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// The service; `None` means every service.
    pub service: Option<Service>,
    /// The kind.
    pub kind: Kind,
    /// The share of requests, 0 to 1.
    pub probability: f64,
}

/// The text is not a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a fault: {reason}; {ALLOWED}")]
pub struct FaultError {
    text: String,
    reason: String,
}

/// The combined effects of all faults on one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    pub(crate) delay: Duration,
    pub(crate) search_delay: Duration,
    pub(crate) status: Option<(StatusCode, Option<u64>)>,
    pub(crate) cut: bool,
    pub(crate) hang_up: bool,
    pub(crate) stale_by: u64,
    pub(crate) deviations: Deviations,
    pub(crate) websocket: Websocket,
}

/// The effect of a fault on a websocket when it is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Websocket {
    #[default]
    Served,
    Silent,
    Refused,
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let error = |reason: &str| FaultError { text: text.to_owned(), reason: reason.to_owned() };
        let (service, rest) = match text.split_once(':') {
            None => (None, text),
            Some((name, rest)) => {
                let service = Service::ALL.into_iter().find(|service| service.name() == name);
                (Some(service.ok_or_else(|| error("unknown service"))?), rest)
            }
        };
        let (what, probability) = match rest.split_once('@') {
            None => (rest, 1.0),
            Some((what, share)) => {
                (what, share.parse().map_err(|_| error("the probability is not a number"))?)
            }
        };
        if !(0.0..=1.0).contains(&probability) {
            return Err(error("the probability is not between 0 and 1"));
        }
        let kind = kind(what).map_err(error)?;
        Ok(Self { service, kind, probability })
    }
}

fn kind(what: &str) -> Result<Kind, &'static str> {
    let (name, value) = what.split_once('=').map_or((what, None), |(name, value)| (name, Some(value)));
    let kind = match (name, value) {
        ("delay", Some(value)) => Kind::Delay(duration(value)?),
        ("delay", None) => return Err("a delay needs a time, as in delay=50ms"),
        ("search-delay", Some(value)) => Kind::SearchDelay(duration(value)?),
        ("search-delay", None) => return Err("a delay needs a time, as in search-delay=20s"),
        ("state-lag", Some(value)) => Kind::StateLag(duration(value)?),
        ("state-lag", None) => return Err("a lag needs a time, as in state-lag=400ms"),
        ("429", Some(value)) => {
            let after = duration(value)?;
            if after.subsec_nanos() > 0 {
                return Err("retry-after is in whole seconds, as in 429=2s");
            }
            Kind::Status(StatusCode::TOO_MANY_REQUESTS, Some(after.as_secs()))
        }
        ("stale", Some(value)) => Kind::Stale(value.parse().map_err(|_| "stale needs a number of heights")?),
        ("cut", None) => Kind::Cut,
        ("hang-up", None) => Kind::HangUp,
        ("ws-silent", None) => Kind::WsSilent,
        ("ws-refused", None) => Kind::WsRefused,
        ("stale", None) => Kind::Stale(STALE_BY),
        ("429" | "500" | "502" | "503" | "504", None) => {
            let status = name.parse().ok().and_then(|code: u16| StatusCode::from_u16(code).ok());
            Kind::Status(status.ok_or("unknown status")?, None)
        }
        (name, height) => return deviation(name, height),
    };
    Ok(kind)
}

fn deviation(name: &str, number: Option<&str>) -> Result<Kind, &'static str> {
    const NO_NUMBER: &str = "this kind needs a number, as in pruned=100";
    let found = Deviation::ALL.iter().find(|(known, _)| *known == name);
    let (_, deviation) = *found.ok_or("unknown kind")?;
    match (deviation.has_number(), number) {
        (false, None) => Ok(Kind::Deviation(deviation)),
        (true, Some(number)) => Ok(Kind::DeviationBy(deviation, number.parse().map_err(|_| NO_NUMBER)?)),
        (true, None) => Err(NO_NUMBER),
        (false, Some(_)) => Err("this kind takes no value"),
    }
}

fn duration(text: &str) -> Result<Duration, &'static str> {
    let number = |digits: &str| digits.parse::<u64>().map_err(|_| "a time is a whole number with ms or s");
    let duration = if let Some(digits) = text.strip_suffix("ms") {
        Duration::from_millis(number(digits)?)
    } else if let Some(digits) = text.strip_suffix('s') {
        Duration::from_secs(number(digits)?)
    } else {
        return Err("a time is a whole number with ms or s");
    };
    if duration > MAX_DELAY { Err("a time is at most 60 s") } else { Ok(duration) }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(service) = self.service {
            write!(f, "{}:", service.name())?;
        }
        match self.kind {
            Kind::Delay(delay) => write!(f, "delay={}ms", delay.as_millis())?,
            Kind::Status(status, Some(after)) => write!(f, "{}={after}s", status.as_u16())?,
            Kind::Status(status, None) => write!(f, "{}", status.as_u16())?,
            Kind::Cut => f.write_str("cut")?,
            Kind::HangUp => f.write_str("hang-up")?,
            Kind::Stale(by) => write!(f, "stale={by}")?,
            Kind::Deviation(deviation) => f.write_str(deviation.name())?,
            Kind::DeviationBy(deviation, number) => write!(f, "{}={number}", deviation.name())?,
            Kind::SearchDelay(delay) => write!(f, "search-delay={}ms", delay.as_millis())?,
            Kind::StateLag(lag) => write!(f, "state-lag={}ms", lag.as_millis())?,
            Kind::WsSilent => f.write_str("ws-silent")?,
            Kind::WsRefused => f.write_str("ws-refused")?,
        }
        write!(f, "@{}", self.probability)
    }
}

/// The effects of `faults` on request number `ordinal` of a service.
pub(crate) fn effects(faults: &[Fault], seed: u64, service: Service, ordinal: u64) -> Effects {
    let mut effects = Effects::default();
    for (place, fault) in (0_u64..).zip(faults) {
        let random = random_at(seed, &[service as u64, ordinal, place]);
        if fault.service.is_some_and(|only| only != service) || unit(random) >= fault.probability {
            continue;
        }
        match fault.kind {
            Kind::Delay(delay) => effects.delay = (effects.delay + delay).min(MAX_DELAY),
            Kind::Status(status, after) => effects.status = effects.status.or(Some((status, after))),
            Kind::Cut => effects.cut = true,
            Kind::HangUp => effects.hang_up = true,
            Kind::Stale(by) => effects.stale_by = effects.stale_by.max(by),
            Kind::Deviation(deviation) => effects.deviations.add(deviation, mix(random)),
            Kind::DeviationBy(deviation, number) => effects.deviations.add(deviation, number),
            Kind::SearchDelay(delay) => effects.search_delay = effects.search_delay.max(delay),
            // It applies to heights, not requests: see `lag`.
            Kind::StateLag(_) => {}
            Kind::WsSilent => effects.websocket = Websocket::Silent,
            Kind::WsRefused => effects.websocket = Websocket::Refused,
        }
    }
    effects
}

/// Time for which the state of a height lags on a service after it is shown; zero for most heights.
///
/// A function of the seed, the height, and the number of the history that the height belongs to.
pub(crate) fn lag(faults: &[Fault], seed: u64, service: Service, history: u64, height: u64) -> Duration {
    let lags = faults.iter().filter_map(|fault| match fault.kind {
        Kind::StateLag(longest) if fault.service.is_none_or(|only| only == service) => Some((fault, longest)),
        _ => None,
    });
    let of_height = lags.map(|(fault, longest)| {
        let random = random_at(seed, &[history, height]);
        if unit(random) < fault.probability { longest.mul_f64(unit(mix(random))) } else { Duration::ZERO }
    });
    of_height.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_printed_as_it_is_parsed() {
        for text in [
            "delay=50ms@0.1",
            "429@0.05",
            "429=2s@0.05",
            "500@0.05",
            "cut@0.02",
            "null-receipts@0.1",
            "no-results@0.1",
            "comet:pruned=100@1",
            "json-rpc:pruned-receipts=7@0.5",
            "json-rpc:block-hashes=7@1",
            "state-lag=400ms@0.33",
            "comet:search-delay=20000ms@1",
            "ws-silent@1",
            "comet:ws-refused@0.5",
            "stale=3@0.1",
            "hang-up@0.01",
            "json-rpc:500@0.2",
            "comet:cut@1",
            "rest:503@0",
        ] {
            assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
        }
        assert_eq!("stale".parse::<Fault>().unwrap().to_string(), "stale=5@1");
    }

    #[test]
    fn every_deviation_is_parsed_and_named_in_the_error_of_others() {
        for (name, deviation) in Deviation::ALL {
            let text = if deviation.has_number() { format!("{name}=100@1") } else { format!("{name}@0.5") };
            assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
            assert!(ALLOWED.contains(&format!(" {name}")), "{name}");
        }
    }

    #[test]
    fn a_false_answer_differs_by_request_and_repeats_with_the_same_seed() {
        let faults = ["lie-txs".parse().unwrap()];
        let numbers = |seed| -> Vec<_> {
            (0..50)
                .map(|n| effects(&faults, seed, Service::Comet, n).deviations.get(Deviation::FalseTxs))
                .collect()
        };
        let mut first = numbers(3);
        assert_eq!(first, numbers(3));
        first.dedup();
        assert_eq!(first.len(), 50);
    }

    #[test]
    fn an_invalid_fault_is_an_error_with_the_allowed_ones() {
        for text in [
            "",
            "delay",
            "delay=5",
            "delay=61s",
            "429=500ms",
            "429=1500ms",
            "418",
            "500@2",
            "500@x",
            "soap:500",
            "cut=3",
            "500@NaN",
            "pruned",
            "lie-txs=1",
            "pruned=x",
            "state-lag",
            "state-lag=61s",
            "lie",
        ] {
            let message = text.parse::<Fault>().unwrap_err().to_string();
            assert!(message.contains(&format!("{text:?}")) && message.contains("null-receipts"), "{message}");
        }
    }

    #[test]
    fn a_fault_hits_its_share_of_requests_and_the_same_ones_with_the_same_seed() {
        let faults = ["500@0.25".parse().unwrap()];
        let hits = |seed| -> Vec<_> {
            let hit = |n: &u64| effects(&faults, seed, Service::Rest, *n).status.is_some();
            (0..10_000).filter(hit).collect()
        };
        let first = hits(7);
        assert!((2_400..2_600).contains(&first.len()), "{}", first.len());
        assert_eq!(first, hits(7));
        assert_ne!(first, hits(8));
    }

    #[test]
    fn a_share_of_heights_lags_each_for_a_time_of_its_own_and_the_same_with_the_same_seed() {
        let faults = ["rest:state-lag=400ms@0.33".parse().unwrap()];
        let lags = |seed, history, service| -> Vec<_> {
            (0..10_000).map(|height| lag(&faults, seed, service, history, height)).collect()
        };
        let first = lags(7, 0, Service::Rest);
        let lagging: Vec<_> = first.iter().filter(|lag| !lag.is_zero()).collect();
        assert!((3_100..3_500).contains(&lagging.len()), "{}", lagging.len());
        assert!(lagging.iter().all(|lag| **lag < Duration::from_millis(400)));
        assert!(lagging.iter().any(|lag| **lag > Duration::from_millis(350)));
        assert_eq!(first, lags(7, 0, Service::Rest));
        assert_ne!(first, lags(8, 0, Service::Rest));
        assert_ne!(first, lags(7, 1, Service::Rest));
        assert!(lags(7, 0, Service::JsonRpc).iter().all(Duration::is_zero));
    }

    #[test]
    fn a_fault_of_one_service_does_not_affect_the_others() {
        let faults =
            ["json-rpc:hang-up".parse().unwrap(), "stale=2".parse().unwrap(), "stale=9".parse().unwrap()];
        assert!(effects(&faults, 1, Service::JsonRpc, 0).hang_up);
        let rest = effects(&faults, 1, Service::Rest, 0);
        assert_eq!(rest, Effects { stale_by: 9, ..Effects::default() });
    }
}
