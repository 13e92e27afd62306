//! Swaps on the pages of routes and transfers, over the recorded chains with pools.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use explorer::routing::Routing as _;
use http::Method;
use registry::Endpoints;
use replay::{Addresses, Options, Recording, ReplayNode};
use serde_json::{Value, json};

use crate::dom::Document;
use crate::routes::{Local, form, local, page};

const L1: &str = "swap-l1-1";
const L2: &str = "swap-l2-1";
const BRIDGED: &str = "l2/771d639f30fbe45e3fbca954ffbe2fcc26f915f5513c67a4a2d0bc1d635bdefd";

/// Both nodes, and a service over them that has read their pools and hooks.
struct Chains {
    _nodes: Vec<ReplayNode>,
    local: Arc<Local>,
}

impl Chains {
    async fn start() -> Self {
        let mut nodes = Vec::new();
        for name in ["l1-l2-swaps/l1", "l1-l2-swaps/l2"] {
            let recording = Arc::new(Recording::open(&testkit::recording(name)).unwrap());
            nodes.push(ReplayNode::start(recording, Addresses::default(), Options::default()).await.unwrap());
        }
        let registry = registry::load(&testkit::recording("l1-l2-swaps/registry")).unwrap().registry;
        let local = local(registry.with_endpoints(|id| {
            let node = nodes.iter().find(|node| node.recording().summary().chain_id == id)?;
            Some(Endpoints {
                rpc: vec![node.comet_url()],
                rest: vec![node.rest_url()],
                ..Endpoints::default()
            })
        }));
        let chains = Self { _nodes: nodes, local };
        let service = chains.local.app.state();
        let read = async {
            while chains.route((L2, BRIDGED), (L1, "uinit"), "1000000").await["does_swap"] != true {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            () = service.follow_pools(pending()) => {}
            () = service.refresh(pending()) => {}
            read = tokio::time::timeout(Duration::from_mins(1), read) => read.unwrap(),
        }
        chains
    }

    async fn route(&self, from: (&str, &str), to: (&str, &str), amount: &str) -> Value {
        let body = json!({
            "amount_in": amount, "allow_multi_tx": true,
            "source_asset_chain_id": from.0, "source_asset_denom": from.1,
            "dest_asset_chain_id": to.0, "dest_asset_denom": to.1,
        });
        let body = body.to_string();
        let reply = self.local.request(Method::POST, "/v2/fungible/route", body.as_bytes(), None).await;
        serde_json::from_slice(&reply.unwrap().body).unwrap()
    }

    async fn page(&self, path: &str) -> Document {
        page(&self.local, path).await.document()
    }
}

/// Amounts in base units: the titles of what is shown in units.
fn has_amount(document: &Document, amount: &str) -> bool {
    document.all("span").any(|span| span.get("title") == Some(amount))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swap_has_its_rate_impact_and_minimum_and_the_block_of_its_pools() {
    let chains = Chains::start().await;
    let route = chains.route((L1, "uusdc"), (L1, "uinit"), "250000000").await;
    let document = chains.page(&form((L1, "uusdc"), (L1, "uinit"), "250")).await;
    assert_eq!(document.errors, [""; 0]);
    let out: u64 = route["amount_out"].as_str().unwrap().parse().unwrap();
    for amount in [out, out * 995 / 1000, out * 1_000_000 / 250_000_000] {
        assert!(has_amount(&document, &format!("{amount} uinit")), "{amount}: {}", document.text);
    }
    let impact = route["swap_price_impact_percent"].as_str().unwrap();
    assert_ne!(impact, "0.00");
    for shown in [
        "Best route",
        "1 USDC  = ",
        "at initia-dex",
        "pool ",
        "Received at least",
        "0.5 %",
        &format!("Price impact {impact}"),
        "Quoted at block 570, 2026-11-26 19:04:14 UTC",
    ] {
        assert!(
            squeezed(&document).contains(&shown.replace("  ", " ")),
            "{shown} is not in {}",
            document.text
        );
    }
    assert!(!document.text.contains("Lossless"), "{}", document.text);
}

fn squeezed(document: &Document) -> String {
    document.text.split_whitespace().collect::<Vec<_>>().join(" ").replace(" ,", ",")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_way_off_the_rollup_has_a_fast_and_a_lossless_box() {
    let chains = Chains::start().await;
    let route = chains.route((L2, BRIDGED), (L1, "uinit"), "41000000").await;
    let document = chains.page(&form((L2, BRIDGED), (L1, "uinit"), "41")).await;
    assert_eq!(document.errors, [""; 0]);
    let text = squeezed(&document);
    let (fast, lossless) = text.split_once("Lossless").expect(&text);
    assert!(fast.contains("Best route: fast") && fast.contains("about 6 s"), "{fast}");
    assert!(fast.contains("IBC") && fast.contains("at minitswap"), "{fast}");
    assert!(lossless.contains("about 30 s") && lossless.contains("Optimistic bridge"), "{lossless}");
    assert!(has_amount(&document, &format!("{} uinit", route["amount_out"].as_str().unwrap())));
    assert!(has_amount(&document, "41000000 uinit"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swap_is_a_step_of_a_transfer() {
    let chains = Chains::start().await;
    let service = chains.local.app.state();
    let fast = (L2, "CB9961FB16E834658D558EB71D871EE918ACF9745020175D7650F8B6AACD7616");
    let sent_on = (L1, "97F288DCDAF61B092A214C70F59BFBFC594E87D2C55AD3B91A62084EEF44B255");
    let recovered = (L1, "271F699F1B737D5CD04484235C8204A59DCD09B4035B7620C048C579D093E4C2");
    // Where each is, in the order of the page: hops and swaps.
    let cases = [
        (fast, vec!["completed success", "IBC", "Swap done", "swapped"], ["55000000", "52232723 uinit"]),
        (sent_on, vec!["completed success", "Swap done", "IBC"], ["uusdc", "61624432 uinit"]),
        (
            recovered,
            vec!["completed error", "Swap failed", "code=196610"],
            ["5000000 uusdc", "5000000 uusdc"],
        ),
    ];
    let tracker = Arc::clone(service.tracker());
    let followed = async {
        for ((chain, hash), parts, amounts) in cases {
            let body = json!({ "chain_id": chain, "tx_hash": hash }).to_string();
            chains.local.request(Method::POST, "/v2/tx/track", body.as_bytes(), None).await.unwrap();
            let path = format!("/transfer?chain_id={chain}&tx_hash={hash}");
            let document = loop {
                let document = chains.page(&path).await;
                if !document.all("div").any(|div| div.get("data-poll").is_some()) {
                    break document;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            };
            let text = squeezed(&document);
            let mut rest = text.as_str();
            for part in parts {
                rest = rest.split_once(part).unwrap_or_else(|| panic!("{part} is not in {rest} of {text}")).1;
            }
            let shown: Vec<_> = document.all("span").filter_map(|span| span.get("title")).collect();
            for amount in amounts {
                assert!(shown.iter().any(|title| title.contains(amount)), "{amount} is not in {shown:?}");
            }
        }
    };
    tokio::select! {
        ran = tracker.run(pending()) => ran.unwrap(),
        followed = tokio::time::timeout(Duration::from_mins(1), followed) => followed.unwrap(),
    }
}
