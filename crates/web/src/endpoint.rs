//! API operations as values: path, parameters, response schema and handler.
//!
//! The list of endpoints is the only description of an API: routing, 404 and 405, the parameters of a handler, caching
//! and the OpenAPI document all derive from it.

use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::call::Call;
use crate::event::EventStream;
use crate::http_error::HttpError;
use crate::openapi::schema::Object;
use crate::reply::Reply;

/// One operation. `A` is the shared state of the handlers.
pub struct Endpoint<A: 'static> {
    /// A `Get` endpoint answers `HEAD` too.
    pub method: Method,
    /// The template in full, for example `/indexer/tx/v1/txs/{tx_hash}`: a segment is a literal or one
    /// parameter, and every parameter is declared in `params`.
    pub path: &'static str,
    /// Its group in the document.
    pub tag: &'static str,
    /// One sentence for the document.
    pub summary: &'static str,
    /// Every parameter that the handler reads; it cannot see others.
    pub params: &'static [Param],
    /// The schema of a 200 response; of a stream, that of the data of its main event.
    pub response: &'static dyn Object,
    /// The handler.
    pub handler: Handler<A>,
    /// How long a client may cache a 200.
    pub cache: MaxAge,
}

/// The handler of an [`Endpoint`].
pub enum Handler<A: 'static> {
    /// Synchronous. It runs on the server's own threads, so it may block on the disk but not on the network.
    Sync(fn(&A, &Call<'_>) -> Result<Reply, HttpError>),
    /// Asynchronous, for handlers that query other machines; bounded by [`crate::limits::Limits::answer`].
    Async(AsyncHandler<A>),
    /// Opens an event stream. It runs on the server's own threads, as do the polls of the stream: both may block on the
    /// disk but not on the network. For [`Method::Get`] only. The response is never cached or compressed, and limited
    /// by
    /// [`crate::limits::Limits::streams`] instead of the limits of requests.
    Stream(fn(&A, &Call<'_>) -> Result<EventStream, HttpError>),
}

/// The kind of a [`Handler`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerKind {
    /// See [`Handler::Sync`].
    Sync,
    /// See [`Handler::Async`].
    Async,
    /// See [`Handler::Stream`].
    Stream,
}

impl<A> Handler<A> {
    pub(crate) fn kind(&self) -> HandlerKind {
        match self {
            Self::Sync(_) => HandlerKind::Sync,
            Self::Async(_) => HandlerKind::Async,
            Self::Stream(_) => HandlerKind::Stream,
        }
    }
}

/// An asynchronous handler.
pub type AsyncHandler<A> = for<'a> fn(&'a A, &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>>;

/// The request methods an endpoint can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads; also answers `HEAD`.
    Get,
    /// Carries a body, see [`Call::body`].
    Post,
}

/// The `max-age` of a 200 in seconds, sent as `Cache-Control: public, max-age=N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxAge(pub u32);

impl MaxAge {
    /// Lists and the status: one second, as the deployed indexer caches them.
    pub const LIST: Self = Self(1);
    /// A single record that is final once it exists: ten seconds, as the deployed indexer caches it.
    pub const RECORD: Self = Self(10);

    /// The same as a duration.
    pub const fn duration(self) -> Duration {
        Duration::from_secs(self.0 as u64)
    }
}

/// A parameter of an endpoint, or a group of them that several endpoints share.
#[derive(Clone, Copy, Debug)]
pub enum Param {
    /// A segment of the path.
    Path(PathParam),
    /// A name in the query string.
    Query(QueryParam),
    /// A name in the query string that must be present.
    Required(QueryParam),
    /// An older spelling of another parameter: read, and left out of the document, where clients would make two of them.
    OldName(QueryParam),
    /// Several names in the query string.
    Group(&'static [QueryParam]),
    /// The JSON object in the body of a `POST`.
    Body(&'static dyn Object),
}

/// A segment of the path: always present, never empty.
#[derive(Clone, Copy, Debug)]
pub struct PathParam {
    /// As between the braces of the template.
    pub name: &'static str,
    /// The type of its value.
    pub ty: Type,
    /// One sentence for the document.
    pub doc: &'static str,
}

/// A name in the query string; optional unless it is [`Param::Required`]. Names are case-sensitive, and an empty value
/// counts as absent.
#[derive(Clone, Copy, Debug)]
pub struct QueryParam {
    /// As on the wire.
    pub name: &'static str,
    /// The type of its value.
    pub ty: Type,
    /// One sentence for the document.
    pub doc: &'static str,
    /// The value if it is absent, as text; documented, not applied.
    pub default: Option<&'static str>,
}

/// The type of a parameter. Documented, not enforced: handlers parse values. It must describe exactly the values that
/// the
/// handler accepts, because the document is tested against the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Any text.
    String,
    /// A text that matches a regular expression (ECMA 262).
    Pattern(&'static str),
    /// A text that matches a regular expression, or another one of a form that none can describe (a checksum, for
    /// example): of those, some recorded ones.
    PatternOr(&'static str, &'static [&'static str]),
    /// A decimal number of 64 bits.
    Integer,
    /// A decimal number in these bounds.
    Between(i64, i64),
    /// The same, without an upper bound if it is `i64::MAX`; a text that is not a decimal number counts as absent.
    BetweenOrAbsent(i64, i64),
    /// See [`Call::boolean`]: any other text counts as absent.
    Boolean,
    /// `true` or `false`, and nothing else.
    Flag,
    /// One of these values.
    OneOf(&'static [&'static str]),
    /// Several texts: the parameter is repeated.
    Texts,
    /// Several texts that match a regular expression (ECMA 262).
    TextsOf(&'static str),
}

impl Param {
    /// The segment `{name}` of the path: any text.
    pub const fn path(name: &'static str, doc: &'static str) -> Self {
        Self::path_of(name, Type::String, doc)
    }

    /// The segment `{name}` of the path.
    pub const fn path_of(name: &'static str, ty: Type, doc: &'static str) -> Self {
        Self::Path(PathParam { name, ty, doc })
    }

    /// `name=value` in the query string, without a default.
    pub const fn query(name: &'static str, ty: Type, doc: &'static str) -> Self {
        Self::Query(QueryParam { name, ty, doc, default: None })
    }

    /// `name=value` in the query string, without which the request is refused.
    pub const fn required(name: &'static str, ty: Type, doc: &'static str) -> Self {
        Self::Required(QueryParam { name, ty, doc, default: None })
    }

    /// `name=value` in the query string, with a documented default.
    pub const fn query_or(name: &'static str, ty: Type, default: &'static str, doc: &'static str) -> Self {
        Self::Query(QueryParam { name, ty, doc, default: Some(default) })
    }

    /// `name=value` in the query string: an older spelling of another parameter.
    pub const fn old_name(name: &'static str, ty: Type, doc: &'static str) -> Self {
        Self::OldName(QueryParam { name, ty, doc, default: None })
    }

    /// The query parameters that it declares: none, one or several.
    pub const fn queries(&self) -> &[QueryParam] {
        match self {
            Self::Path(_) | Self::Body(_) => &[],
            Self::Query(one) | Self::Required(one) | Self::OldName(one) => std::slice::from_ref(one),
            Self::Group(several) => several,
        }
    }
}

/// The five parameters of every paged list, with any text as key: see [`pagination`].
pub const PAGINATION: Param = Param::Group(&pagination(Type::String));

/// The five parameters of a paged list (the Cosmos SDK's `PageRequest` as query parameters), with the type of its keys.
pub const fn pagination(key: Type) -> [QueryParam; 5] {
    [
        QueryParam {
            name: "pagination.key",
            ty: key,
            doc: "The next_key or previous_key of a page, to go on from there. Wins over the offset.",
            default: None,
        },
        QueryParam {
            name: "pagination.offset",
            ty: Type::BetweenOrAbsent(0, i64::MAX),
            doc: "How many rows to skip, 0 or more.",
            default: Some("0"),
        },
        QueryParam {
            name: "pagination.limit",
            ty: Type::BetweenOrAbsent(1, 1000),
            doc: "How many rows to answer, 1 to 1000.",
            default: Some("100"),
        },
        QueryParam {
            name: "pagination.count_total",
            ty: Type::Boolean,
            doc: "Whether to answer how many rows the whole list has.",
            default: Some("true"),
        },
        QueryParam {
            name: "pagination.reverse",
            ty: Type::Boolean,
            doc: "Whether the newest row comes first.",
            default: Some("true"),
        },
    ]
}

impl<A> Endpoint<A> {
    /// Every query parameter, those of groups included.
    pub fn queries(&self) -> impl Iterator<Item = &'static QueryParam> + use<A> {
        self.params.iter().flat_map(Param::queries)
    }
}
