//! The pages of routes, over the example registry and the recorded chains that it describes.

use std::net::IpAddr;
use std::sync::Arc;

use explorer::routing::{Routing, Unit};
use http::{Method, Request};
use registry::{Endpoints, Registry};
use replay::{Addresses, Options, Recording, ReplayNode};
use routing_api::{Config, Service};
use serde_json::{Value, json};
use store::MemStore;
use tempfile::TempDir;
use tokio::sync::watch;
use web::app::App;
use web::http_error::HttpError;
use web::reply::Reply;

use crate::dom::Document;
use crate::site::{Answer, Site, answer, browse};

/// A deposit into a rollup, which is recorded to its end.
const DEPOSIT: (&str, &str) =
    ("e2e-l1-1", "6D83FA6F14D265F1168480841D3630011A81BA4B783EA9EB2EC17D69AD2CFC88");

/// A routing service in this process.
pub(crate) struct Local {
    pub(crate) app: App<Service>,
    _data: TempDir,
}

impl Routing for Local {
    fn request<'a>(
        &'a self,
        method: Method,
        target: &'a str,
        body: &'a [u8],
        client: Option<IpAddr>,
    ) -> futures_util::future::BoxFuture<'a, Result<Reply, HttpError>> {
        Box::pin(self.app.read_later(method, target, body, client))
    }

    fn unit(&self, chain: &str, denom: &str) -> Option<Unit> {
        let registry = self.app.state().world().registry;
        let asset = &registry[registry.asset(registry.chain(chain)?, denom)?];
        Some(Unit { symbol: asset.symbol.clone(), decimals: asset.decimals })
    }
}

pub(crate) fn local(registry: Registry) -> Arc<Local> {
    let data = tempfile::tempdir().unwrap();
    let service = Service::open(registry, data.path(), Config::default(), "0.0.0").unwrap();
    Arc::new(Local { app: App::new(service, routing_api::ENDPOINTS).unwrap(), _data: data })
}

fn example() -> Registry {
    registry::load(&testkit::root().join("routing/registry/example")).unwrap().registry
}

/// The page at `path` of a service without an index.
pub(crate) async fn page(local: &Arc<Local>, path: &str) -> Answer {
    let pages = explorer::route_pages(Arc::clone(local) as _, "1.2.3").unwrap();
    answer(&pages, path).await
}

fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

pub(crate) fn form(from: (&str, &str), to: (&str, &str), amount: &str) -> String {
    let (from_denom, to_denom) = (encoded(from.1), encoded(to.1));
    format!(
        "/route?from_chain={}&from={from_denom}&to_chain={}&to={to_denom}&amount={}",
        from.0,
        to.0,
        encoded(amount)
    )
}

const L1: &str = "e2e-l1-1";
const L2: &str = "e2e-l2-1";
const WRAPPED: &str = "evm/1EBEB4AA9d6b7ad48E093A336FEb6C17358250e2";

#[tokio::test]
async fn the_form_has_the_chains_and_the_assets_of_the_chosen_ones() {
    let local = local(example());
    let home = page(&local, "/").await;
    assert_eq!((home.status.as_u16(), home.header("location")), (303, "/route"));
    let document = page(&local, &format!("/route?from_chain={L1}&to_chain={L2}")).await.document();
    assert_eq!(document.errors, [""; 0]);
    let options: Vec<_> = document.all("option").filter_map(|option| option.get("value")).collect();
    for value in [L1, L2, "31337", "uinit", WRAPPED] {
        assert!(options.contains(&value), "{value} is not in {options:?}");
    }
    assert!(!options.contains(&"test-evm-a-native"), "only assets of the chosen chains are listed");
    assert!(!options.contains(&"GAS"), "the token does not reach it");
}

/// The page that the form of a page leads to, with its chosen options.
fn submitted(document: &Document) -> String {
    let mut fields = Vec::new();
    for element in &document.elements {
        match element.name.as_str() {
            "select" => fields.push((element.get("name").unwrap().to_owned(), None)),
            "option" => {
                let (_, value) = fields.last_mut().unwrap();
                if value.is_none() || element.get("selected").is_some() {
                    *value = element.get("value").map(str::to_owned);
                }
            }
            "input" if element.get("name") == Some("amount") => {
                fields.push(("amount".to_owned(), element.get("value").map(str::to_owned)));
            }
            _ => {}
        }
    }
    let fields = fields.into_iter().map(|(name, value)| format!("{name}={}", encoded(&value.unwrap())));
    format!("/route?{}", fields.collect::<Vec<_>>().join("&"))
}

#[tokio::test]
async fn the_first_click_shows_a_route() {
    let local = local(example());
    // The other two chains need quotes of a node.
    for form in ["/route", "/route?from_chain=e2e-l1-1", "/route?from_chain=e2e-l2-1"] {
        let document = page(&local, form).await.document();
        let target = submitted(&document);
        let text = page(&local, &target).await.document().text;
        assert!(text.contains("Best route") && text.contains("You receive"), "{form}, {target}: {text}");
    }
    // The L1 is first, the others follow by name.
    let document = page(&local, "/route").await.document();
    let chains: Vec<_> = document.all("option").filter_map(|option| option.get("value")).take(4).collect();
    assert_eq!(chains, [L1, L2, "31337", "31338"]);
}

#[tokio::test]
async fn a_choice_that_is_gone_is_named_and_the_lists_still_lead_somewhere() {
    let local = local(example());
    // As without scripts, after another chain was chosen.
    let target = form((L2, "uinit"), (L2, WRAPPED), "1");
    let document = page(&local, &target).await.document();
    assert!(document.text.contains("`uinit` is not an asset of e2e-l2-1"), "{}", document.text);
    let text = page(&local, &submitted(&document)).await.document().text;
    assert!(text.contains("Best route"), "{text}");
}

#[tokio::test]
async fn a_routing_service_without_an_index_links_its_description_and_has_pages_for_unknown_paths() {
    let local = local(example());
    let links = page(&local, "/route").await.document().links();
    for link in ["/swagger/", "/openapi.json"] {
        assert!(links.iter().any(|found| found == link), "{link} is not in {links:?}");
    }
    let pages = explorer::route_pages(Arc::clone(&local) as _, "1.2.3").unwrap();
    let unknown = browse(&pages, "/tx/0x00").await;
    assert_eq!((unknown.status.as_u16(), unknown.header("content-type")), (404, "text/html; charset=utf-8"));
    assert!(unknown.document().links().iter().any(|link| link == "/route"));
}

#[tokio::test]
async fn a_route_has_the_amounts_and_hops_of_the_json() {
    let local = local(example());
    let request = json!({
        "amount_in": "1500000", "source_asset_chain_id": L1, "source_asset_denom": "uinit",
        "dest_asset_chain_id": L2, "dest_asset_denom": WRAPPED, "allow_multi_tx": true,
    });
    let reply = local
        .request(Method::POST, "/v2/fungible/route", request.to_string().as_bytes(), None)
        .await
        .unwrap();
    let route: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(route["amount_out"], "1500000000000000000");
    let answer = page(&local, &form((L1, "uinit"), (L2, WRAPPED), "1.5")).await;
    let document = answer.document();
    assert_eq!((answer.status.as_u16(), document.errors.len()), (200, 0));
    let titles: Vec<_> = document.all("span").filter_map(|span| span.get("title")).collect();
    for title in ["1500000 uinit".to_owned(), format!("1500000000000000000 {WRAPPED}")] {
        assert!(titles.contains(&title.as_str()), "{title} is not in {titles:?}");
    }
    let hops = document.all("div").filter(|div| div.get("class") == Some("via")).count();
    assert_eq!(hops, route["operations"].as_array().unwrap().len());
    assert!(document.text.contains("Optimistic bridge"), "{}", document.text);
    // The transfer is followed from here.
    let track = document.all("form").find(|form| form.get("method") == Some("post")).unwrap();
    assert_eq!(track.get("action"), Some("/transfer"));
    let fields: Vec<_> =
        document.all("input").filter_map(|input| Some((input.get("name")?, input.get("value")))).collect();
    assert!(fields.contains(&("chain_id", Some(L1))) && fields.contains(&("tx_hash", None)), "{fields:?}");
}

#[tokio::test]
async fn a_missing_route_has_its_reason() {
    let local = local(example());
    let path = form((L1, "uinit"), ("31337", "test-evm-a-native"), "1");
    let text = page(&local, &path).await.document().text;
    assert!(text.contains("No route") && text.contains("no routes found"), "{text}");
    let text = page(&local, &form((L1, "uinit"), (L2, WRAPPED), "<b>1</b>")).await;
    assert!(text.document().text.contains("must be a decimal number"), "{}", text.body);
    assert!(!text.body.contains("<b>1</b>"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tracked_transfer_is_shown_hop_by_hop_until_its_end() {
    let mut nodes = Vec::new();
    for name in ["l1-l2/l1", "l1-l2/l2"] {
        let recording = Arc::new(Recording::open(&testkit::recording(name)).unwrap());
        nodes.push(ReplayNode::start(recording, Addresses::default(), Options::default()).await.unwrap());
    }
    let local = local(example().with_endpoints(|id| {
        let node = nodes.iter().find(|node| node.recording().summary().chain_id == id)?;
        Some(Endpoints {
            rpc: vec![node.comet_url()],
            rest: vec![node.rest_url()],
            executor: node.executor_url().into_iter().collect(),
            ..Endpoints::default()
        })
    }));
    let (chain, hash) = DEPOSIT;
    let path = format!("/transfer?chain_id={chain}&tx_hash={hash}");
    assert!(page(&local, &path).await.document().text.contains("tx not found"));
    let body = json!({ "chain_id": chain, "tx_hash": hash }).to_string();
    local.request(Method::POST, "/v2/tx/track", body.as_bytes(), None).await.unwrap();
    // While it is followed, the script fetches the page again.
    let followed = page(&local, &path).await.document();
    assert!(followed.all("div").any(|div| div.get("data-poll").is_some()), "{}", followed.text);

    let (stop, mut stopped) = watch::channel(false);
    let tracker = Arc::clone(local.app.state().tracker());
    let running = tracker.run(async move { drop(stopped.changed().await) });
    let ended = async {
        loop {
            let document = page(&local, &path).await.document();
            if !document.all("div").any(|div| div.get("data-poll").is_some()) {
                return document;
            }
            tokio::task::yield_now().await;
        }
    };
    let shown = async {
        let document = tokio::time::timeout(std::time::Duration::from_mins(1), ended).await.unwrap();
        stop.send_replace(true);
        document
    };
    let (ran, document) = tokio::join!(running, shown);
    ran.unwrap();
    for part in ["completed success", "Optimistic bridge", "received", chain, L2] {
        assert!(document.text.contains(part), "{part} is not in {}", document.text);
    }
    // Hashes lead to the pages that the registry has for their chains.
    let link = format!("https://explorer.example.org/{chain}/txs/{hash}");
    assert!(document.links().contains(&link), "{link} is not in {:?}", document.links());
    for node in nodes {
        node.stop().await;
    }
}

/// The answer to the form that registers a transfer.
async fn follow(local: &Arc<Local>, body: &str, site: Option<&str>) -> Answer {
    let pages = explorer::route_pages(Arc::clone(local) as _, "1.2.3").unwrap();
    let mut request = Request::post("/transfer");
    if let Some(site) = site {
        request = request.header("sec-fetch-site", site);
    }
    let (request, ()) = request.body(()).unwrap().into_parts();
    Answer::of(pages.respond_later(&request, body.as_bytes()).await)
}

#[tokio::test]
async fn a_button_follows_a_transfer_that_is_not_known_yet() {
    let local = local(example());
    let (chain, hash) = DEPOSIT;
    let path = format!("/transfer?chain_id={chain}&tx_hash={hash}");
    let form = page(&local, &path).await.document();
    let hidden = |name| {
        let input = form
            .all("input")
            .find(|input| input.get("type") == Some("hidden") && input.get("name") == Some(name));
        encoded(input.unwrap().get("value").unwrap())
    };
    let body = format!("chain_id={}&tx_hash={}", hidden("chain_id"), hidden("tx_hash"));
    let foreign = follow(&local, &body, Some("cross-site")).await;
    assert_eq!(foreign.status, 400, "{}", foreign.body);
    assert!(page(&local, &path).await.document().text.contains("tx not found"));
    let followed = follow(&local, &body, Some("same-origin")).await;
    assert_eq!((followed.status.as_u16(), followed.header("location")), (303, path.as_str()));
    assert!(page(&local, &path).await.document().all("div").any(|div| div.get("data-poll").is_some()));
    for (body, shown) in [
        ("chain_id=none-1&tx_hash=00", "chain"),
        ("chain_id=e2e-l1-1&tx_hash=zz", "tx_hash"),
        ("tx_hash=00", "chain_id"),
        ("", "chain_id"),
        ("%ff=%ff&chain_id=%ff", "tx_hash"),
    ] {
        let refused = follow(&local, body, None).await;
        assert!(refused.status.is_client_error(), "{body}: {}", refused.body);
        let document = refused.document();
        let problem = document.text.to_lowercase();
        assert!(problem.contains(shown), "{body}: {problem}");
    }
}

#[tokio::test]
async fn an_index_beside_a_routing_service_has_the_pages_of_both() {
    let store = Arc::new(MemStore::new());
    let identity = schema::meta::Identity {
        format: schema::FORMAT,
        chain_id: L1.to_owned(),
        vm: "move".to_owned(),
        prefix: "init".to_owned(),
        start_height: 1,
    };
    schema::open::or_create(&*store, &identity).unwrap();
    let site = Site::over(store, Some(local(example())));
    let links = site.get("/").await.document().links();
    for link in ["/route", "/transfer", "/blocks"] {
        assert!(links.iter().any(|found| found == link), "{link} is not in {links:?}");
        assert_eq!(site.get(link).await.status, 200, "{link}");
    }
}
