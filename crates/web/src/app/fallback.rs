//! The app behind another one.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::Response;
use http::request::Parts;

use super::App;
use crate::endpoint::HandlerKind;
use crate::http_error::HttpError;

/// An [`App`] behind another one (see [`App::with_fallback`]), whatever its state.
pub trait Fallback: Send + Sync {
    /// True if an endpoint has the path.
    fn has(&self, path: &str) -> bool;
    /// True if an endpoint has the path in full, without parameters.
    fn has_in_full(&self, path: &str) -> bool;
    /// See [`App::kind`].
    fn kind(&self, request: &Parts) -> HandlerKind;
    /// See [`App::respond`].
    fn respond(&self, request: &Parts, body: &[u8]) -> Response<Bytes>;
    /// See [`App::respond_later`].
    fn respond_later<'a>(&'a self, request: &'a Parts, body: &'a [u8]) -> BoxFuture<'a, Response<Bytes>>;
    /// See [`App::with_error_page`]; `None` for the error in JSON.
    fn error_page(&self, request: &Parts, error: &HttpError) -> Option<Response<Bytes>>;
}

impl<A: Send + Sync> Fallback for App<A> {
    fn has(&self, path: &str) -> bool {
        self.router.find(path).is_some()
    }

    fn has_in_full(&self, path: &str) -> bool {
        self.router.find(path).is_some_and(|found| found.is_in_full())
    }

    fn kind(&self, request: &Parts) -> HandlerKind {
        App::kind(self, request)
    }

    fn respond(&self, request: &Parts, body: &[u8]) -> Response<Bytes> {
        App::respond(self, request, body)
    }

    fn respond_later<'a>(&'a self, request: &'a Parts, body: &'a [u8]) -> BoxFuture<'a, Response<Bytes>> {
        Box::pin(App::respond_later(self, request, body))
    }

    fn error_page(&self, request: &Parts, error: &HttpError) -> Option<Response<Bytes>> {
        App::error_page(self, request, error)
    }
}

impl<A> App<A> {
    /// The fallback, if the path of a request is its own.
    pub(super) fn fallback_of(&self, request: &Parts) -> Option<&dyn Fallback> {
        let path = request.uri.path();
        self.fallback.as_deref().filter(|fallback| fallback.has(path) && self.find(request).is_none())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::call::Call;
    use crate::endpoint::{Endpoint, Handler, MaxAge, Method, Param};
    use crate::openapi::schema::of;
    use crate::reply::Reply;

    /// Nothing.
    #[derive(schemars::JsonSchema)]
    struct Nothing {}

    const fn endpoint(
        path: &'static str,
        params: &'static [Param],
        handler: fn(&(), &Call<'_>) -> Result<Reply, HttpError>,
    ) -> Endpoint<()> {
        let (response, handler) = (of::<Nothing>(), Handler::Sync(handler));
        let (tag, summary, cache) = ("Any", "Any.", MaxAge::LIST);
        Endpoint { method: Method::Get, path, tag, summary, params, response, handler, cache }
    }

    static PAGES: &[&[Endpoint<()>]] = &[&[
        endpoint("/", &[], |(), _| Ok(Reply::json("pages"))),
        endpoint("/{page}", &[Param::path("page", "Any.")], |(), _| Ok(Reply::json("page"))),
    ]];

    static API: &[&[Endpoint<()>]] = &[&[
        endpoint("/", &[], |(), _| Ok(Reply::json("never"))),
        endpoint("/api", &[], |(), _| Ok(Reply::json("api"))),
        endpoint("/{other}", &[Param::path("other", "Any.")], |(), _| Ok(Reply::json("never"))),
    ]];

    #[test]
    fn a_path_with_parameters_yields_to_one_of_the_fallback_in_full() {
        let fallback = Arc::new(App::new((), API).unwrap());
        let app = App::new((), PAGES).unwrap().with_fallback(fallback);
        for (path, body) in [("/", "pages"), ("/api", "api"), ("/other", "page")] {
            assert_eq!(app.get(path).body(), body, "{path}");
        }
    }
}
