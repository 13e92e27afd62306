//! A small API for the tests: a shop with items, a warehouse of large replies, and a till.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};
use schemars::JsonSchema;
use web::app::App;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method, PAGINATION, Param, Type};
use web::event::{Event, EventStream};
use web::http_error::HttpError;
use web::limits::Limits;
use web::limits::lane;
use web::openapi::schema::of;
use web::reply::Reply;
use web::serve::server::Server;

/// The state of the handlers: the slow one reports its start and waits for its release.
pub(crate) struct Shop {
    begun: Sender<()>,
    release: Mutex<Receiver<()>>,
}

/// The test's end of [`Shop`].
#[allow(dead_code, reason = "not every test file uses the slow handler")]
pub(crate) struct SlowHandler {
    pub(crate) begun: Receiver<()>,
    pub(crate) release: Sender<()>,
}

/// What is for sale.
#[derive(JsonSchema)]
#[schemars(rename = "shop.Item")]
#[allow(dead_code, reason = "only its schema is used")]
struct Item {
    /// What it is called.
    name: String,
    parts: Vec<Item>,
    /// Who made it.
    maker: Option<Maker>,
}

/// A maker.
#[derive(JsonSchema)]
#[schemars(rename = "shop.Maker")]
struct Maker {}

/// A page of items.
#[derive(JsonSchema)]
#[schemars(rename = "shop.ItemsResponse")]
#[allow(dead_code, reason = "only its schema is used")]
struct Items {
    items: Vec<Item>,
    pagination: Page,
}

/// Where a page stands in its list.
#[derive(JsonSchema)]
#[schemars(rename = "common.PaginationResponse")]
#[allow(dead_code, reason = "only its schema is used")]
struct Page {
    next_key: Option<String>,
    total: String,
}

const fn endpoint(
    path: &'static str,
    params: &'static [Param],
    handler: fn(&Shop, &Call<'_>) -> Result<Reply, HttpError>,
) -> Endpoint<Shop> {
    Endpoint {
        method: Method::Get,
        path,
        tag: "Shop",
        summary: "Answers.",
        params,
        response: of::<Item>(),
        handler: Handler::Sync(handler),
        cache: MaxAge::RECORD,
    }
}

static GOODS: &[Endpoint<Shop>] = &[
    Endpoint {
        response: of::<Items>(),
        cache: MaxAge::LIST,
        ..endpoint(
            "/shop/v1/items",
            &[
                PAGINATION,
                Param::query("kinds", Type::Texts, "Only these."),
                Param::query_or("order_by", Type::OneOf(&["name", "price"]), "name", "What comes first."),
            ],
            |_, call| {
                let kinds: Vec<_> = call.all("kinds").collect();
                echo(&[
                    call.first("pagination.limit").unwrap_or("-"),
                    &kinds.join("|"),
                    call.first("order_by").unwrap_or("-"),
                ])
            },
        )
    },
    endpoint("/shop/v1/items/{name}", &[Param::path("name", "Its name.")], |_, call| {
        echo(&["item", call.text("name")])
    }),
    endpoint("/shop/v1/items/count", &[], |_, _| echo(&["count"])),
    endpoint("/shop/v1/items/by_kind/{kind}", &[Param::path("kind", "Its kind.")], |_, call| {
        echo(&["kind", call.text("kind")])
    }),
    endpoint(
        "/shop/v1/parts/{item}/{part}",
        &[Param::path("item", "Its item."), Param::path("part", "Its name.")],
        |_, call| echo(&["part", call.text("item"), call.text("part")]),
    ),
];

static REST: &[Endpoint<Shop>] = &[
    Endpoint {
        tag: "Warehouse",
        ..endpoint("/large/{size}", &[Param::path("size", "How many bytes.")], large)
    },
    Endpoint {
        tag: "Till",
        method: Method::Post,
        ..endpoint("/till", &[], |_, call| echo(&[&String::from_utf8_lossy(call.body())]))
    },
    Endpoint { tag: "Till", ..endpoint("/till", &[], |_, _| echo(&["till"])) },
    Endpoint { tag: "Courier", handler: Handler::Async(courier), ..endpoint("/courier", &[], large) },
    Endpoint {
        tag: "Courier",
        method: Method::Post,
        handler: Handler::Async(courier),
        ..endpoint("/courier", &[], large)
    },
    Endpoint {
        tag: "Courier",
        handler: Handler::Async(|_, _| Box::pin(std::future::pending())),
        ..endpoint("/lost", &[], large)
    },
    Endpoint {
        tag: "Courier",
        method: Method::Post,
        handler: Handler::Async(|_, _| Box::pin(std::future::pending())),
        ..endpoint("/lost", &[], large)
    },
    Endpoint {
        tag: "Courier",
        handler: Handler::Async(|_, _| Box::pin(async { panic!("on purpose") })),
        ..endpoint("/faints", &[], large)
    },
    Endpoint {
        tag: "Courier",
        handler: Handler::Stream(news),
        ..endpoint("/news/{count}", &[Param::path("count", "How many events.")], large)
    },
    endpoint("/missing", &[], |_, _| Err(HttpError::not_found("no such item"))),
    endpoint("/broken", &[], |_, _| Err(HttpError::internal("shelf 7 fell down"))),
    endpoint("/panics", &[], |_, _| panic!("on purpose")),
    endpoint("/closed", &[], |_, _| Err(HttpError::unavailable("the shop opens at nine"))),
    endpoint("/slow", &[], |shop, _| slow(shop)),
    endpoint("/heavy", &[], |shop, _| {
        lane::heavy()?;
        slow(shop)
    }),
    endpoint("/locked", &[], |shop, _| {
        lane::serial()?;
        slow(shop)
    }),
    endpoint("/costs/{bytes}", &[Param::path("bytes", "What it costs.")], |_, call| {
        let bytes = call.text("bytes").parse().map_err(|_| HttpError::bad_request("bytes is a number"))?;
        lane::spend(bytes)?;
        echo(&[&niceness()])
    }),
];

/// The niceness of this thread (`proc_pid_stat(5)`); empty on other systems than Linux.
fn niceness() -> String {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_whitespace().nth(16).unwrap_or_default().to_owned()
}

/// Reports its start and waits for its release.
fn slow(shop: &Shop) -> Result<Reply, HttpError> {
    shop.begun.send(()).map_err(HttpError::internal)?;
    shop.release.lock().unwrap_or_else(PoisonError::into_inner).recv().map_err(HttpError::internal)?;
    echo(&["slow"])
}

/// So many events, then none for ever; for `endless`, large ones without an end; for `end`, one and the end.
fn news(_: &Shop, call: &Call<'_>) -> Result<EventStream, HttpError> {
    let event = |n: usize| Event::new("news", &n.to_string(), format!("{{\"n\":{n}}}").as_bytes());
    let large = Event::new("news", "0", &vec![b'1'; 1 << 16]);
    match call.text("count") {
        "endless" => Ok(stream::repeat(large).boxed()),
        "huge" => Ok(stream::repeat(Event::new("news", "0", &vec![b'1'; 20 << 20])).boxed()),
        "end" => Ok(stream::iter([event(1)]).boxed()),
        count => {
            let count: usize = count.parse().map_err(|_| HttpError::bad_request("count is a number"))?;
            let after = call.header("last-event-id").and_then(|id| id.parse().ok()).unwrap_or(0);
            Ok(stream::iter(after + 1..=count).map(event).chain(stream::pending()).boxed())
        }
    }
}

/// All endpoints, in two groups.
pub(crate) static ENDPOINTS: &[&[Endpoint<Shop>]] = &[GOODS, REST];

/// The texts as a JSON list.
fn echo(texts: &[&str]) -> Result<Reply, HttpError> {
    serde_json::to_vec(texts).map(Reply::json).map_err(HttpError::internal)
}

/// Yields once and returns the body.
fn courier<'a>(_: &'a Shop, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(async {
        tokio::task::yield_now().await;
        echo(&["brought", &String::from_utf8_lossy(call.body())])
    })
}

/// A JSON list of about so many bytes; like a page of events, it is repetitive, but not quite.
fn large(_: &Shop, call: &Call<'_>) -> Result<Reply, HttpError> {
    let size: usize = call.text("size").parse().map_err(|_| HttpError::bad_request("size is a number"))?;
    let numbers: Vec<_> = (0..size / 16).map(|n| format!("{{\"height\":{n:05}}}")).collect();
    Ok(Reply::json(format!("[{}]", numbers.join(",")).into_bytes()))
}

pub(crate) fn app() -> (App<Shop>, SlowHandler) {
    let (begun_here, begun) = channel();
    let (release, release_here) = channel();
    let shop = Shop { begun: begun_here, release: Mutex::new(release_here) };
    (
        App::new(shop, ENDPOINTS).unwrap().with_websockets_at(&["/courier", "/till"]),
        SlowHandler { begun, release },
    )
}

/// Two threads suffice here.
#[allow(dead_code, reason = "not every test file opens a socket")]
pub(crate) fn open(limits: Limits) -> (Server, SlowHandler) {
    let (app, slow) = app();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    (Server::start(listener, Arc::new(app), limits, 2).unwrap(), slow)
}
