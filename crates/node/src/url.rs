//! Address of one node service.
//!
//! # Invariants
//!
//! Credentials (user and password, or a key in path or query) are never printed: only scheme, host and port are.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Uri};
use percent_encoding::percent_decode_str;

/// `http://` or `https://`, host, optional port, optional path in front of every call, optional query behind it, optional
/// `user:password@` (sent as Basic authorization).
#[derive(Clone, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Url {
    scheme: Scheme,
    authority: Authority,
    path: String,
    /// Parameters of every call, as a provider's key.
    query: Option<String>,
    host: Arc<str>,
    /// User and password as written, for [`Url::secrets`].
    credentials: Option<String>,
    authorization: Option<HeaderValue>,
}

/// Length from which a part of an address may be a secret: a shorter one is guessed, and would blot out messages.
const SHORTEST_SECRET: usize = 5;

/// Reason for the rejection of an address. Contains the address with its credentials masked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("node address `{url}`: {reason}")]
pub struct UrlError {
    url: String,
    reason: String,
}

impl Url {
    /// Host and port as written, for messages.
    pub fn host(&self) -> &Arc<str> {
        &self.host
    }

    /// True if connections use TLS.
    pub fn is_https(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// True if the node is on this machine, where compressed replies cost more than they save.
    pub fn is_loopback(&self) -> bool {
        let name = self.authority.host().trim_start_matches('[').trim_end_matches(']');
        name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// True if there is a path in front of every call, or a query behind it.
    pub(crate) fn has_path(&self) -> bool {
        self.path.len() > 1 || self.query.is_some()
    }

    /// The header for the credentials in the address, marked sensitive.
    pub(crate) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    /// Texts that no message may show: the path and its parts, the query and its values, user and password, and their
    /// header. Shorter ones are not keys.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let path = std::iter::once(self.path.trim_end_matches('/')).chain(self.path.split('/'));
        let query = self.query.iter().flat_map(|query| {
            std::iter::once(query.as_str())
                .chain(query.split('&').map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value)))
        });
        let credentials =
            self.credentials.iter().flat_map(|text| std::iter::once(text.as_str()).chain(text.split(':')));
        let header = self.authorization.iter().filter_map(|header| {
            header.as_bytes().strip_prefix(b"Basic ").and_then(|encoded| std::str::from_utf8(encoded).ok())
        });
        path.chain(query).chain(credentials).chain(header).filter(|text| text.len() >= SHORTEST_SECRET)
    }

    /// The full address of a call; an empty `path_and_query` means the address as configured.
    pub(crate) fn join(&self, path_and_query: &str) -> Result<Uri, http::Error> {
        let mut path = if path_and_query.is_empty() {
            self.path.clone()
        } else {
            format!("{}{path_and_query}", self.path.trim_end_matches('/'))
        };
        if let Some(query) = &self.query {
            path.push(if path.contains('?') { '&' } else { '?' });
            path.push_str(query);
        }
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(PathAndQuery::try_from(path)?)
            .build()
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let refuse = |reason: &str| UrlError { url: masked(text), reason: reason.to_owned() };
        if text.contains('#') {
            return Err(refuse("a fragment is not supported, only a path and a query"));
        }
        let uri = text.parse::<Uri>().map_err(|e| refuse(&e.to_string()))?;
        let scheme = uri.scheme().filter(|s| [Scheme::HTTP, Scheme::HTTPS].contains(s));
        let scheme = scheme.ok_or_else(|| refuse("must begin with http:// or https://"))?.clone();
        let given = uri.authority().ok_or_else(|| refuse("has no host"))?;
        let (credentials, place) = match given.as_str().rsplit_once('@') {
            Some((credentials, place)) => (Some(credentials), place),
            None => (None, given.as_str()),
        };
        let authority = place.parse::<Authority>().map_err(|e| refuse(&e.to_string()))?;
        if authority.host().is_empty() {
            return Err(refuse("has no host"));
        }
        // `http` keeps a port that is not a number as text; the connector would silently use the default one.
        if authority.as_str().len() > authority.host().len() && authority.port_u16().is_none() {
            return Err(refuse("the port must be a number from 0 to 65535"));
        }
        let authorization = credentials.map(basic).transpose().map_err(|reason| refuse(&reason))?;
        let query = uri.query().filter(|query| !query.is_empty()).map(str::to_owned);
        let (path, credentials) = (uri.path().to_owned(), credentials.map(str::to_owned));
        Ok(Self { scheme, host: Arc::from(place), path, query, authority, credentials, authorization })
    }
}

impl TryFrom<String> for Url {
    type Error = UrlError;

    fn try_from(text: String) -> Result<Self, UrlError> {
        text.parse()
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// RFC 7617: user and password are percent-encoded in an address and plain in the header.
fn basic(credentials: &str) -> Result<HeaderValue, String> {
    let plain: Vec<u8> = percent_decode_str(credentials).collect();
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(plain)))
        .map_err(|_| "the user and password cannot be sent in a header".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

/// An address as far as a message may show it: `***` stands for its credentials and for path and query, in which
/// providers put keys.
pub fn masked(address: &str) -> String {
    let (scheme, rest) = address
        .split_once("://")
        .map_or(("", address), |(scheme, rest)| (&address[..scheme.len() + 3], rest));
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    // A password may contain a slash, though that is invalid.
    let (credentials, start) = rest[..end].rfind('@').map_or(("", 0), |at| ("***@", at + 1));
    let host = rest[start..end].split('/').next().unwrap_or_default();
    let path = if rest.len() > start + host.len() + 1 { "/***" } else { "" };
    format!("{scheme}{credentials}{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn a_path_precedes_every_call() {
        assert_eq!(url("http://a:1").join("/block?height=5").unwrap(), "http://a:1/block?height=5");
        assert_eq!(url("https://a/rpc/").join("/status").unwrap(), "https://a/rpc/status");
        assert_eq!(url("https://a/rpc/").join("").unwrap(), "https://a/rpc/");
        assert_eq!(url("http://[::1]:8545").join("").unwrap(), "http://[::1]:8545/");
    }

    #[test]
    fn a_query_follows_every_call() {
        let keyed = url("https://a/rpc/?key=hunter2&x=1");
        assert_eq!(keyed.join("/block?height=5").unwrap(), "https://a/rpc/block?height=5&key=hunter2&x=1");
        assert_eq!(keyed.join("/status").unwrap(), "https://a/rpc/status?key=hunter2&x=1");
        assert_eq!(keyed.join("").unwrap(), "https://a/rpc/?key=hunter2&x=1");
        assert_eq!(url("https://a?key=hunter2").join("").unwrap(), "https://a/?key=hunter2");
        assert_eq!(url("https://a?").join("/status").unwrap(), "https://a/status");
        assert_eq!(format!("{keyed} {keyed:?}"), "https://a https://a");
    }

    #[test]
    fn credentials_become_a_header_and_are_never_shown() {
        let url = url("https://me:p%40ss@node.example:443/secret-key");
        assert_eq!(url.authorization().unwrap(), "Basic bWU6cEBzcw==");
        assert_eq!(format!("{url} {url:?}"), "https://node.example:443 https://node.example:443");
        assert_eq!(url.join("/status").unwrap(), "https://node.example:443/secret-key/status");
    }

    #[test]
    fn an_invalid_address_is_reported_without_its_credentials() {
        let refused = |text: &str| text.parse::<Url>().unwrap_err().to_string();
        assert_eq!(refused("tcp://n:1"), "node address `tcp://n:1`: must begin with http:// or https://");
        assert!(refused("localhost:26657").starts_with("node address `localhost:26657`: "));
        assert!(refused("http://n:99999").starts_with("node address `http://n:99999`: "));
        assert!(refused("http://n:x").starts_with("node address `http://n:x`: "));
        assert!(refused("").starts_with("node address ``: "));
        for text in ["ws://me:hunter2@n/hunter2", "http://me:hunter2@n:1/?key=hunter2#", "http://hunter2@"] {
            assert!(!refused(text).contains("hunter2"), "{}", refused(text));
        }
    }

    #[test]
    fn loopback_is_recognised_by_name_and_by_number() {
        for text in ["http://localhost:1", "http://127.0.0.1:1", "http://127.9.9.9", "http://[::1]:1"] {
            assert!(url(text).is_loopback(), "{text}");
        }
        assert!(!url("http://node.example").is_loopback());
    }
}
