//! Rate limiting of clients by a token bucket per address (generic cell rate algorithm, GCRA), and client identity.
//!
//! GCRA (ITU-T I.371 annex A) stores one instant per bucket: the time at which it is full again. A client without an
//! entry has a full bucket. The table is an LRU cache: the evicted client has been idle longest, so its bucket is the
//! most likely to be full. An attacker with enough addresses to evict its own entry could as well use a new address
//! each time.
//!
//! # Invariants
//! * The head of a request alone decides whether it is admitted.
//! * The number of buckets is bounded. A path with its own rate has its own table, so settings fix the number of
//!   tables.
//! * `X-Forwarded-For` is read only from proxies that the operator configured.

use std::fmt;
use std::hash::RandomState;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode};
use ipnet::IpNet;
use lru::LruCache;
use serde_json::json;

use crate::clock::Clock;
use crate::http_error::HttpError;
use crate::limits::{Limits, PathRate, Rate};

/// Entries of one table: about 6 MB.
const CLIENTS: NonZeroUsize = NonZeroUsize::new(1 << 16).unwrap();

/// Header with the addresses that a request came through: the client first; each proxy appends its peer.
const FORWARDED: &str = "x-forwarded-for";

/// Client identification and rate limits of a server.
pub(crate) struct Clients {
    proxies: Vec<IpNet>,
    clock: Clock,
    rate: Option<(Rate, Mutex<Buckets>)>,
    of_paths: Vec<(PathRate, Mutex<Buckets>)>,
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").finish_non_exhaustive()
    }
}

impl Clients {
    pub(crate) fn new(limits: &Limits) -> Self {
        let buckets = |rate| Mutex::new(Buckets::new(rate, CLIENTS));
        Self {
            proxies: limits.trusted_proxies.clone(),
            clock: limits.clock.clone(),
            rate: limits.per_client.map(|rate| (rate, buckets(rate))),
            of_paths: limits.per_client_of_path.iter().map(|of| (*of, buckets(of.rate))).collect(),
        }
    }

    /// The client of a connection from `peer`; `None` for a trusted proxy.
    pub(crate) fn client_of_peer(&self, peer: IpAddr) -> Option<Client> {
        (!is_within(&self.proxies, peer.to_canonical())).then(|| Client::from(peer))
    }

    /// The client of a request, behind trusted proxies if any.
    pub(crate) fn client_of_request(&self, peer: IpAddr, headers: &HeaderMap) -> Client {
        Client::from(origin(peer, headers, &self.proxies))
    }

    /// # Errors
    /// 429 with `Retry-After` if a rate is configured and the client's bucket is empty.
    pub(crate) fn admit(&self, client: Client, path: &str) -> Result<(), HttpError> {
        let take = |buckets: &Mutex<Buckets>| {
            buckets.lock().unwrap_or_else(PoisonError::into_inner).take(client, self.clock.now())
        };
        if let Some((rate, buckets)) = &self.rate {
            take(buckets).map_err(|wait| too_many(*rate, wait, ""))?;
        }
        for (of, buckets) in &self.of_paths {
            if is_path(path, of.path) {
                take(buckets).map_err(|wait| {
                    let entry = json!({
                        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                        "reason": "RATE_LIMIT",
                        "domain": "cairn",
                        "metadata": {
                            "limit": format!("{}/s:{}", of.rate.per_second, of.rate.burst),
                            "setting": of.setting,
                        },
                    });
                    too_many(of.rate, wait, &format!(" to {}", of.path)).with_details(entry)
                })?;
            }
        }
        Ok(())
    }

    /// Counts `n` more requests of a client that was admitted: the next ones wait for them.
    pub(crate) fn charge(&self, client: Client, n: u32) {
        if let Some((_, buckets)) = &self.rate {
            let mut buckets = buckets.lock().unwrap_or_else(PoisonError::into_inner);
            buckets.charge(client, n, self.clock.now());
        }
    }
}

/// True if the router maps both to the same path.
fn is_path(requested: &str, path: &str) -> bool {
    requested.strip_suffix('/').unwrap_or(requested).eq_ignore_ascii_case(path)
}

fn too_many(rate: Rate, wait: Duration, to: &str) -> HttpError {
    // Rounded up, so that a client that waits for this long is not rejected again.
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let Rate { per_second, burst } = rate;
    let message = format!(
        "over {per_second} requests a second{to} from your address, or {burst} at once; try again in {seconds} s"
    );
    HttpError::new(StatusCode::TOO_MANY_REQUESTS, message).with_retry_after(seconds)
}

/// The origin of a request: the peer or, behind trusted proxies, the nearest address that is not one of them.
fn origin(peer: IpAddr, headers: &HeaderMap, proxies: &[IpNet]) -> IpAddr {
    let peer = peer.to_canonical();
    if !is_within(proxies, peer) {
        return peer;
    }
    let lines = headers.get_all(FORWARDED).iter().rev();
    // Addresses beyond the first untrusted one were written by that peer and may be forged.
    let mut hops = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b',')).map(address);
    match hops.find(|hop| hop.is_none_or(|hop| !is_within(proxies, hop))) {
        Some(Some(origin)) => origin,
        // No address, or a malformed one that a trusted proxy should not have forwarded.
        Some(None) | None => peer,
    }
}

/// True if one of `networks` has `address`, which is canonical.
fn is_within(networks: &[IpNet], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(&address))
}

/// Parses an address as proxies write it, with or without a port.
fn address(hop: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(hop.trim_ascii()).ok()?;
    let address = text.parse().or_else(|_| text.parse().map(|socket: SocketAddr| socket.ip()));
    address.ok().map(|address: IpAddr| address.to_canonical())
}

/// The unit of rate limiting: an IPv4 address, or an IPv6 /64, the smallest network that a customer gets (RFC 6177).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    V4(Ipv4Addr),
    V6([u16; 4]),
}

impl From<IpAddr> for Client {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => Self::V6(network(address)),
        }
    }
}

impl From<Client> for IpAddr {
    fn from(client: Client) -> Self {
        match client {
            Client::V4(address) => address.into(),
            Client::V6([a, b, c, d]) => Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into(),
        }
    }
}

fn network(address: Ipv6Addr) -> [u16; 4] {
    let [a, b, c, d, ..] = address.segments();
    [a, b, c, d]
}

/// For each client, the time at which its bucket is full again.
struct Buckets {
    /// Time to refill one token.
    refill: Duration,
    /// Time to refill an empty bucket.
    depth: Duration,
    full_at: LruCache<Client, Instant, RandomState>,
}

impl Buckets {
    fn new(rate: Rate, clients: NonZeroUsize) -> Self {
        let refill = Duration::from_secs(1) / rate.per_second.get();
        // A keyed hash (that of the standard library), because clients choose their addresses.
        Self {
            refill,
            depth: refill * rate.burst.get(),
            full_at: LruCache::with_hasher(clients, RandomState::new()),
        }
    }

    /// Takes a token; otherwise the error is the time until there is one.
    fn take(&mut self, client: Client, now: Instant) -> Result<(), Duration> {
        let full_at = self.full_at.get_or_insert_mut(client, || now);
        let after = (*full_at).max(now) + self.refill;
        let debt = after.saturating_duration_since(now).saturating_sub(self.depth);
        if debt.is_zero() {
            *full_at = after;
            return Ok(());
        }
        Err(debt)
    }

    /// Takes `n` tokens, also those that are not there yet.
    fn charge(&mut self, client: Client, n: u32, now: Instant) {
        let full_at = self.full_at.get_or_insert_mut(client, || now);
        *full_at = (*full_at).max(now) + self.refill * n;
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use http::HeaderValue;

    use super::*;

    fn rate(per_second: u32, burst: u32) -> Rate {
        Rate { per_second: NonZeroU32::new(per_second).unwrap(), burst: NonZeroU32::new(burst).unwrap() }
    }

    fn client(text: &str) -> Client {
        text.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn a_client_waits_for_what_is_charged_beyond_its_bucket() {
        let mut buckets = Buckets::new(rate(4, 3), CLIENTS);
        let (now, us) = (Instant::now(), client("192.0.2.1"));
        assert_eq!(buckets.take(us, now), Ok(()));
        buckets.charge(us, 9, now);
        assert_eq!(buckets.take(us, now), Err(Duration::from_secs(2)));
        assert_eq!(buckets.take(us, now + Duration::from_secs(2)), Ok(()));
        assert_eq!(buckets.take(client("192.0.2.2"), now), Ok(()), "others do not");
    }

    #[test]
    fn a_bucket_empties_and_fills_at_its_rate() {
        let mut buckets = Buckets::new(rate(4, 3), CLIENTS);
        let (start, us) = (Instant::now(), client("192.0.2.1"));
        let after = |millis| start + Duration::from_millis(millis);
        for _ in 0..3 {
            assert_eq!(buckets.take(us, start), Ok(()));
        }
        assert_eq!(buckets.take(us, start), Err(Duration::from_millis(250)));
        assert_eq!(buckets.take(us, after(249)), Err(Duration::from_millis(1)));
        assert_eq!(buckets.take(us, after(250)), Ok(()));
        assert_eq!(buckets.take(us, after(250)), Err(Duration::from_millis(250)));
        // A clock that goes backwards refills nothing.
        assert!(buckets.take(us, start).is_err());
        // A long idle time refills the bucket and no more.
        let n_taken = (0..10).filter(|_| buckets.take(us, after(3_600_000)).is_ok()).count();
        assert_eq!(n_taken, 3);
    }

    #[test]
    fn a_network_of_64_bits_is_one_client_and_an_ipv4_address_one() {
        assert_eq!(client("2001:db8::1"), client("2001:db8:0:0:ffff::2"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
        assert_eq!(client("::ffff:192.0.2.1"), client("192.0.2.1"));
        assert_ne!(client("192.0.2.2"), client("192.0.2.1"));
    }

    #[test]
    fn a_full_table_evicts_the_client_that_was_idle_longest() {
        let now = Instant::now();
        let mut buckets = Buckets::new(rate(1, 1), NonZeroUsize::new(2).unwrap());
        let [a, b, c] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(client);
        assert!(buckets.take(a, now).is_ok() && buckets.take(b, now).is_ok());
        assert!(buckets.take(a, now).is_err());
        assert!(buckets.take(c, now).is_ok());
        assert_eq!(buckets.full_at.len(), 2);
        assert!(buckets.take(a, now).is_err(), "it came after the other");
        assert!(buckets.take(b, now).is_ok());
    }

    #[test]
    fn any_rate_that_can_be_written_can_be_kept() {
        let (now, us) = (Instant::now(), client("192.0.2.1"));
        for (per_second, burst) in [(1, u32::MAX), (u32::MAX, 1), (u32::MAX, u32::MAX)] {
            assert_eq!(Buckets::new(rate(per_second, burst), CLIENTS).take(us, now), Ok(()));
        }
    }

    fn origin_of(peer: &str, lines: &[&'static str]) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED, HeaderValue::from_static(line));
        }
        let proxies = ["10.0.0.0/30", "fd00::/8"].map(|network| network.parse().unwrap());
        origin(peer.parse().unwrap(), &headers, &proxies).to_string()
    }

    #[test]
    fn only_a_trusted_proxy_can_forward_a_client_address() {
        assert_eq!(origin_of("192.0.2.1", &["198.51.100.1"]), "192.0.2.1");
        assert_eq!(origin_of("10.0.0.1", &["198.51.100.1"]), "198.51.100.1");
        assert_eq!(origin_of("::ffff:10.0.0.1", &["[2001:db8::1]:443"]), "2001:db8::1");
        assert_eq!(origin_of("10.0.0.1", &["203.0.113.9, 198.51.100.1 ,10.0.0.2"]), "198.51.100.1");
        assert_eq!(origin_of("10.0.0.1", &["203.0.113.9", "198.51.100.1:80", "10.0.0.2"]), "198.51.100.1");
        assert_eq!(origin_of("fd00::7", &["203.0.113.9, 10.0.0.4", "10.0.0.3"]), "10.0.0.4");
        assert_eq!(origin_of("10.0.0.4", &["203.0.113.9"]), "10.0.0.4");
    }

    #[test]
    fn without_a_foreign_address_the_proxy_is_the_client() {
        for lines in [&[] as &[_], &["10.0.0.2"], &["198.51.100.1, unknown"], &[""]] {
            assert_eq!(origin_of("10.0.0.1", lines), "10.0.0.1", "{lines:?}");
        }
    }
}
