//! The successful response of a handler.

use bytes::Bytes;
use http::StatusCode;

/// The content type of every JSON body: no charset, as the deployed servers send it.
pub const JSON: &str = "application/json";

/// Status, content type and body. The app adds length, caching headers, entity tag, compression and CORS.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Only a 200 gets an entity tag and may be cached.
    pub status: StatusCode,
    /// The media type of `body`.
    pub content_type: &'static str,
    /// Not compressed.
    pub body: Bytes,
    /// `Location` of a redirect: a path and query of this server, percent-encoded.
    pub location: Option<String>,
}

impl Reply {
    /// 200 with a JSON text.
    pub fn json(body: impl Into<Bytes>) -> Self {
        Self { status: StatusCode::OK, content_type: JSON, body: body.into(), location: None }
    }

    /// 303 to `location`.
    pub fn see_other(location: String) -> Self {
        Self { status: StatusCode::SEE_OTHER, location: Some(location), ..Self::json(Bytes::new()) }
    }
}
