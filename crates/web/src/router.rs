//! A routing trie: maps paths to endpoints.
//!
//! Segments are compared without regard to case and a slash at the end is ignored, as the deployed server does
//! (`indexer-api.md` §1.1). A literal segment takes precedence over a parameter, with backtracking to the parameter.
//! The path is split before anything is decoded, so an escaped slash stays inside its segment.

use bytes::Bytes;
use http::HeaderValue;

use crate::endpoint::{Endpoint, Freshness, Method, Param};
use crate::health::Probe;
use crate::limits::MAX_PATH_PARAMS;
use crate::meter::Meter;

/// An invalid list of endpoints.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// Two endpoints answer the same requests.
    #[error("`{0}`: another endpoint has this method and path")]
    Duplicate(&'static str),
    /// Every server answers this path by itself.
    #[error("`{0}`: the path is one of those that every server has (see web::health)")]
    Taken(&'static str),
    /// The template is malformed.
    #[error(
        "`{0}`: a path starts with `/`, does not end with it, and each segment is a literal or `{{name}}`"
    )]
    Template(&'static str),
    /// Too many parameters.
    #[error("`{0}`: over {MAX_PATH_PARAMS} parameters in a path")]
    TooMany(&'static str),
    /// Template and declared parameters differ.
    #[error("`{path}`: parameter `{name}` is not both in the path and among the parameters")]
    Undeclared {
        /// The template.
        path: &'static str,
        /// What is missing on one side.
        name: &'static str,
    },
}

/// The endpoints of a server as a tree of path segments.
pub struct Router<A: 'static> {
    nodes: Vec<Node<A>>,
}

struct Node<A: 'static> {
    literals: Vec<(&'static str, usize)>,
    parameter: Option<usize>,
    get: Option<Route<A>>,
    post: Option<Route<A>>,
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
    pub(crate) values: Values<'p>,
}

#[derive(Default)]
pub(crate) struct Values<'p> {
    raw: [&'p str; MAX_PATH_PARAMS],
    len: usize,
}

impl<A> Router<A> {
    /// # Errors
    /// If an endpoint's path is not a template, differs from its parameters, or is there twice.
    pub fn new(groups: &'static [&'static [Endpoint<A>]]) -> Result<Self, RouteError> {
        let mut router = Self { nodes: vec![Node::default()] };
        for endpoint in groups.iter().copied().flatten() {
            router.add(endpoint)?;
        }
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
        let mut values = Values::default();
        let node = self.descend(0, Some(path).filter(|path| !path.is_empty()), &mut values)?;
        let Node { get, post, .. } = &self.nodes[node];
        Some(Found { get: get.as_ref(), post: post.as_ref(), values })
    }

    /// Visits a node at most once, so its cost is bounded by the tree whatever the path.
    fn descend<'p>(&self, node: usize, path: Option<&'p str>, values: &mut Values<'p>) -> Option<usize> {
        let here = &self.nodes[node];
        let Some(path) = path else {
            return (here.get.is_some() || here.post.is_some()).then_some(node);
        };
        let (segment, rest) = path.split_once('/').map_or((path, None), |(first, rest)| (first, Some(rest)));
        let literal = here.literals.iter().find(|(literal, _)| literal.eq_ignore_ascii_case(segment));
        if let Some(found) = literal.and_then(|(_, next)| self.descend(*next, rest, values)) {
            return Some(found);
        }
        let next = here.parameter.filter(|_| !segment.is_empty())?;
        let len = values.len;
        values.push(segment);
        let found = self.descend(next, rest, values);
        if found.is_none() {
            values.len = len;
        }
        found
    }

    fn add(&mut self, endpoint: &'static Endpoint<A>) -> Result<(), RouteError> {
        let path = endpoint.path;
        let bad = RouteError::Template(path);
        if Probe::of(path).is_some() {
            return Err(RouteError::Taken(path));
        }
        let inner = path.strip_prefix('/').ok_or(RouteError::Template(path))?;
        let mut names = Vec::new();
        let mut node = 0;
        for segment in inner.split('/').filter(|_| !inner.is_empty()) {
            node = match segment.strip_prefix('{').map(|name| name.strip_suffix('}')) {
                Some(Some(name)) if !name.is_empty() => {
                    names.push(name);
                    self.parameter_below(node)
                }
                None if !segment.is_empty() && !segment.contains(['{', '}', '%']) => {
                    self.literal_below(node, segment)
                }
                _ => return Err(bad),
            };
        }
        check_names(endpoint, &names)?;
        let meter = Meter::new(path);
        let route = Route { endpoint, names, cache_control: cache_control(endpoint.cache), meter };
        let place = match endpoint.method {
            Method::Get => &mut self.nodes[node].get,
            Method::Post => &mut self.nodes[node].post,
        };
        match place.replace(route) {
            Some(_) => Err(RouteError::Duplicate(path)),
            None => Ok(()),
        }
    }

    fn parameter_below(&mut self, node: usize) -> usize {
        self.nodes[node].parameter.unwrap_or_else(|| {
            let next = self.push();
            self.nodes[node].parameter = Some(next);
            next
        })
    }

    fn literal_below(&mut self, node: usize, segment: &'static str) -> usize {
        let known = self.nodes[node].literals.iter().find(|(other, _)| other.eq_ignore_ascii_case(segment));
        let known = known.map(|(_, next)| *next);
        known.unwrap_or_else(|| {
            let next = self.push();
            self.nodes[node].literals.push((segment, next));
            next
        })
    }

    fn push(&mut self) -> usize {
        self.nodes.push(Node::default());
        self.nodes.len() - 1
    }
}

impl<'r, A> Found<'r, '_, A> {
    /// The route of this method, `OPTIONS` excepted.
    pub(crate) fn of(&self, method: &http::Method) -> Option<&'r Route<A>> {
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

impl<'p> Values<'p> {
    pub(crate) fn raw(&self) -> &[&'p str] {
        &self.raw[..self.len]
    }

    fn push(&mut self, segment: &'p str) {
        self.raw[self.len] = segment;
        self.len += 1;
    }
}

impl<A> Default for Node<A> {
    fn default() -> Self {
        Self { literals: Vec::new(), parameter: None, get: None, post: None }
    }
}

fn check_names<A>(endpoint: &Endpoint<A>, names: &[&'static str]) -> Result<(), RouteError> {
    let path = endpoint.path;
    if names.len() > MAX_PATH_PARAMS {
        return Err(RouteError::TooMany(path));
    }
    let declared: Vec<_> = endpoint
        .params
        .iter()
        .filter_map(|param| match param {
            Param::Path(param) => Some(param.name),
            Param::Query(_) | Param::Group(_) | Param::Body(_) => None,
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
fn cache_control(freshness: Freshness) -> HeaderValue {
    let value = Bytes::from(format!("public, max-age={}", freshness.0));
    HeaderValue::from_maybe_shared(value).expect("letters and digits are a header value")
}
