//! The decoded request of a handler: parameters, headers and body.
//!
//! Parameters are percent-decoded and checked for UTF-8 once, before the handler runs.

use std::borrow::Cow;
use std::net::IpAddr;

use http::HeaderMap;
use http::header::CONTENT_TYPE;

use crate::http_error::HttpError;
use crate::limits::MAX_PATH_PARAMS;
use crate::limits::share::Share;
use crate::pushes::Pushes;
use crate::query::Query;

/// One request, as its handler sees it.
pub struct Call<'a> {
    pub(crate) names: &'a [&'static str],
    pub(crate) values: [Cow<'a, str>; MAX_PATH_PARAMS],
    /// Those as they were sent.
    pub(crate) raw_values: [&'a str; MAX_PATH_PARAMS],
    pub(crate) query: Query<'a>,
    /// The query string as it was sent.
    pub(crate) raw_query: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
    pub(crate) client: Option<IpAddr>,
    pub(crate) share: Option<&'a Share>,
    pub(crate) pushes: Option<&'a Pushes>,
}

/// A name and a value, decoded.
pub type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The media type of forms.
const FORM: &str = "application/x-www-form-urlencoded";

impl Call<'_> {
    /// The path parameter `name`, percent-decoded.
    ///
    /// A name that the path template lacks is a bug: the result is empty, and debug builds fail an assertion.
    pub fn text(&self, name: &str) -> &str {
        self.position(name).map_or("", |position| &self.values[position])
    }

    /// The path parameter `name` as it was sent, for a path of another server that decodes none. See [`Call::text`].
    pub fn raw_text(&self, name: &str) -> &str {
        self.position(name).map_or("", |position| self.raw_values[position])
    }

    fn position(&self, name: &str) -> Option<usize> {
        let position = self.names.iter().position(|other| *other == name);
        debug_assert!(position.is_some(), "the path has no parameter `{name}`");
        position
    }

    /// The query parameter `name`: its first value counts, and an empty one counts as absent. Undeclared parameters
    /// are never present.
    pub fn first(&self, name: &str) -> Option<&str> {
        self.query.all(name).next().filter(|value| !value.is_empty())
    }

    /// Every value of the query parameter `name` in order, empty ones left out.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.query.all(name).filter(|value| !value.is_empty())
    }

    /// The query parameter `name` as a boolean in the notation of Go's `strconv.ParseBool`, which the deployed servers
    /// use; `default` for anything else.
    pub fn boolean(&self, name: &str, default: bool) -> bool {
        match self.first(name) {
            Some("1" | "t" | "T" | "true" | "True" | "TRUE") => true,
            Some("0" | "f" | "F" | "false" | "False" | "FALSE") => false,
            _ => default,
        }
    }

    /// All parameters of the query string, declared or not, then those of a form in the body, with their names.
    ///
    /// # Errors
    /// 400 if either has over 128 parameters, if one does not decode, or if the body is a form and not text.
    pub fn form(&self) -> Result<Vec<Pair<'_>>, HttpError> {
        let mut pairs = Query::parse(self.raw_query, |_| true)?.into_pairs();
        if self.media_type().is_some_and(|media_type| media_type.eq_ignore_ascii_case(FORM)) {
            let body = std::str::from_utf8(self.body);
            let body = body.map_err(|_| HttpError::bad_request("the form is not percent-encoded text"))?;
            pairs.extend(Query::parse(body, |_| true)?.into_pairs());
        }
        Ok(pairs)
    }

    /// The media type of `Content-Type`, without parameters; `None` without that header.
    pub fn media_type(&self) -> Option<&str> {
        let value = self.headers.get(CONTENT_TYPE)?.to_str().unwrap_or("not text");
        Some(value.split(';').next().unwrap_or_default().trim()).filter(|value| !value.is_empty())
    }

    /// The request header `name`; `None` if it is absent or not visible ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The client of a `POST` or of an asynchronous handler, as rate limits identify it: an IPv4 address, or the first
    /// address of an IPv6 /64. `None` otherwise and without a socket.
    pub fn client(&self) -> Option<IpAddr> {
        self.client
    }

    /// The share of the client of a `POST` or of an asynchronous handler, which reads from the disk in it. `None` otherwise
    /// and without a socket.
    pub fn share(&self) -> Option<&Share> {
        self.share
    }

    /// What a message of a WebSocket may send besides its response; `None` for other requests.
    pub fn pushes(&self) -> Option<&Pushes> {
        self.pushes
    }

    /// The body of a `POST`, at most [`crate::limits::Limits::body`] bytes; empty otherwise.
    pub fn body(&self) -> &[u8] {
        self.body
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use super::*;

    static NO_HEADERS: OnceLock<HeaderMap> = OnceLock::new();

    fn call(query: &str) -> Call<'_> {
        let values = ["7".into(), "".into(), "".into(), "".into()];
        Call {
            names: &["height"],
            values,
            raw_values: ["7", "", "", ""],
            query: Query::parse(query, |_| true).unwrap(),
            raw_query: query,
            headers: NO_HEADERS.get_or_init(HeaderMap::new),
            body: b"",
            client: None,
            share: None,
            pushes: None,
        }
    }

    #[test]
    fn the_first_value_counts_and_an_empty_one_is_absent() {
        assert_eq!(call("limit=1&limit=2").first("limit"), Some("1"));
        assert_eq!(call("limit=&limit=2").first("limit"), None);
        assert_eq!(call("limit").first("limit"), None);
        assert_eq!(call("Limit=1").first("limit"), None);
    }

    #[test]
    fn repeated_values_are_all_returned() {
        assert_eq!(call("msgs=a&msgs=&msgs=b%2Cc").all("msgs").collect::<Vec<_>>(), ["a", "b,c"]);
    }

    #[test]
    fn a_boolean_is_one_of_twelve_words() {
        for word in ["1", "t", "T", "true", "True", "TRUE"] {
            assert!(call(&format!("x={word}")).boolean("x", false), "{word}");
        }
        for word in ["0", "f", "F", "false", "False", "FALSE"] {
            assert!(!call(&format!("x={word}")).boolean("x", true), "{word}");
        }
        for word in ["", "yes", "tRUE", "+true", "2"] {
            assert!(call(&format!("x={word}")).boolean("x", true), "{word}");
            assert!(!call(&format!("x={word}")).boolean("x", false), "{word}");
        }
    }

    #[test]
    fn a_form_has_the_parameters_of_the_query_and_then_those_of_the_body() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, http::HeaderValue::from_static("application/x-www-form-urlencoded"));
        let with_body = |body| Call { headers: &headers, body, ..call("Module=a&x=1%2B1") };
        let of = |call: &Call<'_>| -> Vec<String> {
            call.form().unwrap().iter().map(|(name, value)| format!("{name}:{value}")).collect()
        };
        assert_eq!(of(&with_body(b"x=2+2&y")), ["Module:a", "x:1+1", "x:2 2", "y:"]);
        assert_eq!(of(&Call { body: b"x=3", ..call("x=1") }), ["x:1"], "a body that is no form");
        assert_eq!(with_body(b"x=%zz").form().unwrap_err().status(), 400);
        assert_eq!(with_body(b"\xff").form().unwrap_err().status(), 400);
    }

    #[test]
    fn a_path_parameter_is_found_by_name() {
        assert_eq!(call("").text("height"), "7");
    }
}
