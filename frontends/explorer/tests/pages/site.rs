//! The pages over a recorded chain, or over any database.

use std::sync::Arc;

use explorer::contracts::Contracts;
use explorer::media::Media;
use explorer::routing::Routing;
use explorer::{Head, Inputs};
use http::header::ACCEPT;
use http::{HeaderMap, Request, Response, StatusCode};
use query::Indexer;
use replay::{Options, Recording};
use schema::index::Index;
use serde_json::Value;
use store::{MemStore, Store};
use web::app::App;

use crate::dom::Document;

/// The indexer API with the pages behind it.
pub(crate) struct Site {
    pub(crate) app: Arc<App<Indexer>>,
}

/// A response.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn of(response: Response<impl AsRef<[u8]>>) -> Self {
        let (head, body) = response.into_parts();
        let body = String::from_utf8(body.as_ref().to_vec()).unwrap();
        Self { status: head.status, headers: head.headers, body }
    }

    pub(crate) fn document(&self) -> Document {
        Document::parse(&self.body)
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl Site {
    /// The pages over a database.
    pub(crate) fn over(store: Arc<dyn Store>, routing: Option<Arc<dyn Routing>>) -> Self {
        Self::with_contracts(store, routing, None)
    }

    fn with_contracts(
        store: Arc<dyn Store>,
        routing: Option<Arc<dyn Routing>>,
        contracts: Option<Arc<dyn Contracts>>,
    ) -> Self {
        Self::with_inputs(store, Inputs { contracts, ..Self::inputs(routing) })
    }

    /// The pages over a database, with images.
    pub(crate) fn with_media(store: Arc<dyn Store>, media: Media) -> Self {
        Self::with_inputs(store, Inputs { media, ..Self::inputs(None) })
    }

    fn inputs(routing: Option<Arc<dyn Routing>>) -> Inputs {
        let (head, base): (Head, _) = (Arc::new(|| None), String::new());
        Inputs { routing, head, contracts: None, base, media: Media::None }
    }

    fn with_inputs(store: Arc<dyn Store>, inputs: Inputs) -> Self {
        let app = App::new(testkit::indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap();
        Self { app: explorer::mount(app, inputs).unwrap() }
    }

    /// The pages over a recorded chain.
    pub(crate) async fn recorded(name: &str) -> Self {
        let recording = Arc::new(Recording::open(&testkit::recording(name)).unwrap());
        let store: Arc<dyn Store> = Arc::new(MemStore::new());
        testkit::indexed::index(recording, Options::default(), Arc::clone(&store)).await.unwrap();
        Self::over(store, None)
    }

    /// The pages over a recorded chain with optional indexes.
    pub(crate) async fn indexed(name: &str, indexes: &[&'static Index]) -> Self {
        let recording = Arc::new(Recording::open(&testkit::recording(name)).unwrap());
        let store: Arc<dyn Store> = Arc::new(MemStore::new());
        let mut config = testkit::indexed::config(&recording).unwrap();
        config.indexes = indexes.to_vec();
        testkit::indexed::index_as(config, recording, Options::default(), Arc::clone(&store)).await.unwrap();
        Self::over(store, None)
    }

    /// The pages over a recorded chain, with contracts.
    pub(crate) async fn explained(name: &str, contracts: impl Contracts + 'static) -> Self {
        let recording = Arc::new(Recording::open(&testkit::recording(name)).unwrap());
        let store = testkit::indexed::index_for_json_rpc(recording, true).await.unwrap();
        Self::with_contracts(store, None, Some(Arc::new(contracts)))
    }

    /// `GET target`.
    pub(crate) async fn get(&self, target: &str) -> Answer {
        answer(&*self.app, target).await
    }

    /// `GET target` as a browser sends it.
    pub(crate) async fn browse(&self, target: &str) -> Answer {
        browse(&*self.app, target).await
    }

    /// `GET target` of the JSON API.
    pub(crate) fn json(&self, target: &str) -> Value {
        let reply = self.app.read(target).unwrap();
        serde_json::from_slice(&reply.body).unwrap()
    }
}

/// `GET target` of any app.
pub(crate) async fn answer<A: Sync>(app: &App<A>, target: &str) -> Answer {
    ask(app, target, "*/*").await
}

/// `GET target` of any app, as a browser sends it.
pub(crate) async fn browse<A: Sync>(app: &App<A>, target: &str) -> Answer {
    ask(app, target, "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8").await
}

async fn ask<A: Sync>(app: &App<A>, target: &str, accept: &str) -> Answer {
    let (request, ()) = Request::get(target).header(ACCEPT, accept).body(()).unwrap().into_parts();
    let response = app.respond_later(&request, b"").await;
    Answer::of(response)
}
