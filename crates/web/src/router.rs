//! A linear route table: maps paths to endpoints.
//!
//! # Invariants
//! * Segments are compared without regard to case and a slash at the end is ignored, as the deployed server does.
//! * If several templates match, the one whose first literal comes earliest is chosen.
//! * The path is split before anything is decoded, so an escaped slash stays inside its segment.

use bytes::Bytes;
use http::HeaderValue;

use crate::endpoint::{Endpoint, MaxAge, Method, Param};
use crate::health::Probe;
use crate::limits::MAX_PATH_PARAMS;
use crate::meter::Meter;

/// Maximum number of segments of a path template.
const MAX_SEGMENTS: usize = 16;

/// An invalid list of endpoints.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// Two endpoints answer the same requests.
    #[error("`{0}`: another endpoint has this method and path")]
    Duplicate(&'static str),
    /// Every server answers this path itself.
    #[error("`{0}`: the path is one of those that every server has (see web::health)")]
    Taken(&'static str),
    /// The template is malformed.
    #[error(
        "`{0}`: a path starts with `/`, does not end with it, and each segment is a literal or `{{name}}`"
    )]
    Template(&'static str),
    /// Too many parameters or segments.
    #[error("`{0}`: over {MAX_PATH_PARAMS} parameters or {MAX_SEGMENTS} segments in a path")]
    TooMany(&'static str),
    /// Template and declared parameters differ.
    #[error("`{path}`: parameter `{name}` is not both in the path and among the parameters")]
    Undeclared {
        /// The template.
        path: &'static str,
        /// The parameters that one side lacks.
        name: &'static str,
    },
}

/// The endpoints of a server by path, in the order of precedence.
pub struct Router<A: 'static> {
    paths: Vec<PathRoutes<A>>,
}

struct PathRoutes<A: 'static> {
    template: Vec<Segment>,
    get: Option<Route<A>>,
    post: Option<Route<A>>,
}

#[derive(Clone, Copy)]
enum Segment {
    Literal(&'static str),
    Parameter,
}

/// An endpoint and the values derived from it at startup.
pub(crate) struct Route<A: 'static> {
    pub(crate) endpoint: &'static Endpoint<A>,
    /// The path parameters in the order of the template.
    pub(crate) names: Vec<&'static str>,
    pub(crate) cache_control: HeaderValue,
    pub(crate) meter: Meter,
}

/// The routes of a path, and the raw values of its parameters.
pub(crate) struct Found<'r, 'p, A: 'static> {
    pub(crate) get: Option<&'r Route<A>>,
    pub(crate) post: Option<&'r Route<A>>,
    /// In the order of the template; those beyond its parameters are empty.
    pub(crate) values: [&'p str; MAX_PATH_PARAMS],
}

impl<A> Found<'_, '_, A> {
    /// True if the template is the path itself, without parameters.
    pub(crate) fn is_in_full(&self) -> bool {
        self.values[0].is_empty()
    }
}

impl<A> Router<A> {
    /// # Errors
    /// If an endpoint's path is not a template, differs from its parameters, or is a duplicate.
    pub fn new(groups: &'static [&'static [Endpoint<A>]]) -> Result<Self, RouteError> {
        let mut router = Self { paths: Vec::new() };
        for endpoint in groups.iter().copied().flatten() {
            router.add(endpoint)?;
        }
        router.paths.sort_by_cached_key(|routes| {
            routes.template.iter().map(|segment| matches!(segment, Segment::Parameter)).collect::<Vec<_>>()
        });
        Ok(router)
    }

    /// The template of the endpoint that answers a `GET` of `path`.
    pub fn template(&self, path: &str) -> Option<&'static str> {
        Some(self.find(path)?.get?.endpoint.path)
    }

    /// The routes of `path`; `None` if no method has one.
    pub(crate) fn find<'p>(&self, path: &'p str) -> Option<Found<'_, 'p, A>> {
        let path = path.strip_prefix('/')?;
        let path = path.strip_suffix('/').unwrap_or(path);
        let (mut segments, mut len) = ([""; MAX_SEGMENTS], 0);
        for segment in path.split('/').filter(|_| !path.is_empty()) {
            // A longer path matches no template.
            *segments.get_mut(len)? = segment;
            len += 1;
        }
        let segments = &segments[..len];
        let PathRoutes { template, get, post } = self.paths.iter().find(|routes| routes.matches(segments))?;
        let mut values = [""; MAX_PATH_PARAMS];
        let parameters = template.iter().zip(segments).filter(|(part, _)| matches!(part, Segment::Parameter));
        for (value, (_, segment)) in values.iter_mut().zip(parameters) {
            *value = segment;
        }
        Some(Found { get: get.as_ref(), post: post.as_ref(), values })
    }

    fn add(&mut self, endpoint: &'static Endpoint<A>) -> Result<(), RouteError> {
        let path = endpoint.path;
        if Probe::from_path(path).is_some() {
            return Err(RouteError::Taken(path));
        }
        let inner = path.strip_prefix('/').ok_or(RouteError::Template(path))?;
        let (mut template, mut names) = (Vec::new(), Vec::new());
        for segment in inner.split('/').filter(|_| !inner.is_empty()) {
            template.push(match segment.strip_prefix('{').map(|name| name.strip_suffix('}')) {
                Some(Some(name)) if !name.is_empty() => {
                    names.push(name);
                    Segment::Parameter
                }
                None if !segment.is_empty() && !segment.contains(['{', '}', '%']) => {
                    Segment::Literal(segment)
                }
                _ => return Err(RouteError::Template(path)),
            });
        }
        if names.len() > MAX_PATH_PARAMS || template.len() > MAX_SEGMENTS {
            return Err(RouteError::TooMany(path));
        }
        check_names(endpoint, &names)?;
        let meter = Meter::new(path);
        let route = Route { endpoint, names, cache_control: cache_control(endpoint.cache), meter };
        let known = self.paths.iter().position(|routes| routes.has_template(&template));
        let at = known.unwrap_or_else(|| {
            self.paths.push(PathRoutes { template, get: None, post: None });
            self.paths.len() - 1
        });
        let place = match endpoint.method {
            Method::Get => &mut self.paths[at].get,
            Method::Post => &mut self.paths[at].post,
        };
        match place.replace(route) {
            Some(_) => Err(RouteError::Duplicate(path)),
            None => Ok(()),
        }
    }
}

impl<A> PathRoutes<A> {
    /// Compares from the end, where paths differ most.
    fn matches(&self, segments: &[&str]) -> bool {
        self.template.len() == segments.len()
            && self.template.iter().zip(segments).rev().all(|(part, segment)| match part {
                Segment::Literal(literal) => literal.eq_ignore_ascii_case(segment),
                Segment::Parameter => !segment.is_empty(),
            })
    }

    /// True if both templates match the same paths.
    fn has_template(&self, other: &[Segment]) -> bool {
        self.template.len() == other.len()
            && self.template.iter().zip(other).all(|pair| match pair {
                (Segment::Literal(one), Segment::Literal(other)) => one.eq_ignore_ascii_case(other),
                (Segment::Parameter, Segment::Parameter) => true,
                _ => false,
            })
    }
}

impl<'r, A> Found<'r, '_, A> {
    /// The route of this method, `OPTIONS` excepted.
    pub(crate) fn route(&self, method: &http::Method) -> Option<&'r Route<A>> {
        match *method {
            http::Method::GET | http::Method::HEAD => self.get,
            http::Method::POST => self.post,
            _ => None,
        }
    }

    /// The methods of the path, as `Allow` lists them.
    pub(crate) fn allow(&self) -> &'static str {
        match (self.get, self.post) {
            (Some(_), Some(_)) => "GET, HEAD, POST, OPTIONS",
            (Some(_), None) => "GET, HEAD, OPTIONS",
            (None, _) => "POST, OPTIONS",
        }
    }
}

fn check_names<A>(endpoint: &Endpoint<A>, names: &[&'static str]) -> Result<(), RouteError> {
    let path = endpoint.path;
    let declared: Vec<_> = endpoint
        .params
        .iter()
        .filter_map(|param| match param {
            Param::Path(param) => Some(param.name),
            Param::Query(_) | Param::Required(_) | Param::OldName(_) | Param::Group(_) | Param::Body(_) => {
                None
            }
        })
        .collect();
    let missing =
        |of: &[&'static str], from: &[&'static str]| of.iter().find(|name| !from.contains(name)).copied();
    match missing(names, &declared).or_else(|| missing(&declared, names)) {
        Some(name) => Err(RouteError::Undeclared { path, name }),
        None => Ok(()),
    }
}

#[expect(clippy::expect_used, reason = "the text says why it cannot fail")]
fn cache_control(freshness: MaxAge) -> HeaderValue {
    let value = Bytes::from(format!("public, max-age={}", freshness.0));
    HeaderValue::from_maybe_shared(value).expect("letters and digits are a header value")
}
