//! Cross-origin resource sharing (CORS): the web origins that may read responses.
//!
//! Credentials are never allowed. A response to an origin that is not allowed lacks `Access-Control-Allow-Origin`; the
//! browser then blocks the page from reading it.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ALLOW, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue};

/// Allowed request headers if a preflight lists none.
const SAFE_HEADERS: HeaderValue = HeaderValue::from_static(
    "Origin, Content-Type, Accept, If-None-Match, Authorization, InterwovenKit-Version",
);

/// Maximum bytes of requested headers that are echoed.
const MAX_REQUESTED_HEADERS: usize = 1024;

/// The origins that may read responses.
#[derive(Clone, Debug, Default)]
pub struct Cors(Origins);

#[derive(Clone, Debug, Default)]
enum Origins {
    Off,
    #[default]
    Any,
    These(Vec<Pattern>),
}

/// An origin, or the sub-domains of a domain.
#[derive(Clone, Debug)]
struct Pattern {
    /// Any scheme if there is none.
    scheme: Option<String>,
    /// With its dot if `is_wildcard`.
    host: String,
    is_wildcard: bool,
}

/// A malformed origin in the configuration.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}`: an origin is `*`, `https://app.example`, `*.example.com` or `https://*.example.com`")]
pub struct BadOrigin(String);

impl Cors {
    /// Allows every origin.
    pub fn any() -> Self {
        Self(Origins::Any)
    }

    /// Sends no CORS headers.
    pub fn off() -> Self {
        Self(Origins::Off)
    }

    /// `*` for any, exact origins (scheme included), or all sub-domains of a domain as `*.example.com`, which does not
    /// include `example.com` itself. No origins: [`Cors::off`].
    ///
    /// # Errors
    /// If a text has another form.
    pub fn origins<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Self, BadOrigin> {
        let mut patterns = Vec::new();
        let mut any = false;
        for text in texts {
            match text.as_ref() {
                "*" => any = true,
                text => patterns.push(Pattern::parse(text).ok_or_else(|| BadOrigin(text.to_owned()))?),
            }
        }
        Ok(Self(match patterns {
            _ if any => Origins::Any,
            none if none.is_empty() => Origins::Off,
            these => Origins::These(these),
        }))
    }

    #[cfg(test)]
    fn is_any(&self) -> bool {
        matches!(self.0, Origins::Any)
    }

    /// Adds the headers that let an allowed origin read the response.
    pub(crate) fn allow(&self, request: &HeaderMap, response: &mut HeaderMap) {
        let allowed = match &self.0 {
            Origins::Off => return,
            Origins::Any => HeaderValue::from_static("*"),
            Origins::These(patterns) => {
                response.append(VARY, HeaderValue::from_static("Origin"));
                let Some(origin) = request.get(ORIGIN) else { return };
                if !origin.to_str().is_ok_and(|origin| patterns.iter().any(|pattern| pattern.matches(origin)))
                {
                    return;
                }
                origin.clone()
            }
        };
        response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        response
            .insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("ETag, Retry-After, X-Cache"));
    }

    /// The headers of a response to `OPTIONS`, the allowed origin excepted.
    pub(crate) fn options(&self, request: &HeaderMap, methods: &'static str, response: &mut HeaderMap) {
        response.insert(ALLOW, HeaderValue::from_static(methods));
        if matches!(self.0, Origins::Off) || !request.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
            return;
        }
        let requested = request
            .get(ACCESS_CONTROL_REQUEST_HEADERS)
            .filter(|requested| requested.len() <= MAX_REQUESTED_HEADERS);
        response.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
        response.insert(ACCESS_CONTROL_ALLOW_HEADERS, requested.cloned().unwrap_or(SAFE_HEADERS));
        response.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
        response.append(
            VARY,
            HeaderValue::from_static("Access-Control-Request-Method, Access-Control-Request-Headers"),
        );
    }
}

impl Pattern {
    fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let (scheme, host) =
            text.split_once("://").map_or((None, &*text), |(scheme, host)| (Some(scheme), host));
        let domain = host.strip_prefix('*').filter(|domain| domain.len() > 1 && domain.starts_with('.'));
        let is_plain =
            |text: &str| !text.is_empty() && !text.contains(['*', '/', ' ', ',']) && text.is_ascii();
        let (is_wildcard, host) = (domain.is_some(), domain.unwrap_or(host));
        let is_valid = is_plain(host) && scheme.map_or(is_wildcard, is_plain);
        is_valid.then(|| Self { scheme: scheme.map(str::to_owned), host: host.to_owned(), is_wildcard })
    }

    fn matches(&self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        let Some((scheme, host)) = origin.split_once("://") else { return false };
        let is_below = || host.len() > self.host.len() && host.ends_with(&self.host);
        self.scheme.as_deref().is_none_or(|own| own == scheme)
            && if self.is_wildcard { is_below() } else { host == self.host }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(cors: &Cors, origin: &'static str) -> Option<String> {
        let request = HeaderMap::from_iter([(ORIGIN, HeaderValue::from_static(origin))]);
        let mut response = HeaderMap::new();
        cors.allow(&request, &mut response);
        response.get(ACCESS_CONTROL_ALLOW_ORIGIN).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn by_default_every_origin_may_read() {
        assert_eq!(allowed(&Cors::default(), "https://app.example").as_deref(), Some("*"));
        assert_eq!(allowed(&Cors::off(), "https://app.example"), None);
    }

    #[test]
    fn configured_origins_are_echoed_and_others_are_not() {
        let cors =
            Cors::origins(["https://App.example", "*.wide.example", "https://*.safe.example"]).unwrap();
        let yes = [
            "https://app.example",
            "HTTPS://APP.EXAMPLE",
            "http://a.b.wide.example",
            "https://a.safe.example",
        ];
        for origin in yes {
            assert_eq!(allowed(&cors, origin).as_deref(), Some(origin));
        }
        let no = [
            "http://app.example",
            "https://app.example.evil",
            "https://wide.example",
            "https://notwide.example",
            "http://a.safe.example",
            "https://.safe.example.evil",
            "null",
            "",
        ];
        for origin in no {
            assert_eq!(allowed(&cors, origin), None, "{origin}");
        }
    }

    #[test]
    fn a_star_among_others_allows_every_origin_and_an_empty_list_none() {
        assert!(Cors::origins(["https://a.example", "*"]).unwrap().is_any());
        assert_eq!(allowed(&Cors::origins([""; 0]).unwrap(), "https://a.example"), None);
    }

    #[test]
    fn an_invalid_origin_is_an_error() {
        for text in
            ["", "app.example", "https://", "*example.com", "*.", "https://a/*", "https://a.*.b", "*://a.b"]
        {
            assert_eq!(Cors::origins([text]).unwrap_err(), BadOrigin(text.to_owned()), "{text}");
        }
    }
}
