//! The successful response of a handler.

use bytes::Bytes;
use http::{HeaderValue, StatusCode};

use crate::compress::compress;
use crate::encoding::Coding;
use crate::etag;

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
    /// `Link`: the next page of a response that has no place for a cursor.
    pub link: Option<String>,
    /// A header of the body's own, by name and value.
    pub header: Option<(&'static str, String)>,
    /// The compressed forms of `body` and its entity tag, if they were made before.
    pub encoded: Option<Box<Encoded>>,
}

/// What the app would compute of a body for each response; [`Prepared`] has it.
#[derive(Clone, Debug)]
pub struct Encoded {
    pub(crate) tag: HeaderValue,
    gzip: Option<Bytes>,
    zstd: Option<Bytes>,
}

impl Encoded {
    /// The body in a coding; `None` if it would not be smaller.
    pub(crate) fn body(&self, coding: Coding) -> Option<Bytes> {
        match coding {
            Coding::Identity => None,
            Coding::Gzip => self.gzip.clone(),
            Coding::Zstd => self.zstd.clone(),
        }
    }
}

/// A JSON text that is sent many times: compressed and hashed once. A reply with it copies nothing.
#[derive(Clone, Debug)]
pub struct Prepared {
    body: Bytes,
    encoded: Encoded,
}

impl Prepared {
    /// Compresses and hashes a JSON text.
    pub fn json(body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let packed = |coding| compress(coding, &body).map(|packed| Bytes::from(packed.into_boxed_slice()));
        let encoded =
            Encoded { tag: etag::tag(&body), gzip: packed(Coding::Gzip), zstd: packed(Coding::Zstd) };
        Self { body, encoded }
    }

    /// Bytes in memory.
    pub fn size(&self) -> usize {
        let packed = [&self.encoded.gzip, &self.encoded.zstd].map(|body| body.as_ref().map_or(0, Bytes::len));
        self.body.len() + packed.iter().sum::<usize>()
    }
}

impl Reply {
    /// 200 with a JSON text.
    pub fn json(body: impl Into<Bytes>) -> Self {
        let (status, body) = (StatusCode::OK, body.into());
        Self { status, content_type: JSON, body, location: None, link: None, header: None, encoded: None }
    }

    /// 200 with a JSON text that was compressed before.
    pub fn prepared(text: &Prepared) -> Self {
        Self { encoded: Some(Box::new(text.encoded.clone())), ..Self::json(text.body.clone()) }
    }

    /// Adds a header. The name is in lower case.
    #[must_use]
    pub fn with_header(self, name: &'static str, value: impl Into<String>) -> Self {
        Self { header: Some((name, value.into())), ..self }
    }

    /// 303 to `location`.
    pub fn see_other(location: String) -> Self {
        Self { status: StatusCode::SEE_OTHER, location: Some(location), ..Self::json(Bytes::new()) }
    }
}
