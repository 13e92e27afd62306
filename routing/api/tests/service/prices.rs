//! Prices of a feed: they appear, expire, and never delay a route.

use std::sync::Arc;
use std::time::{Duration, Instant};

use registry::Registry;
use routing_api::{Config, PriceSource};
use serde_json::{Value, json};

use crate::client::fixture::Fixture;
use crate::client::recorded::{Chains, L1, L2, VOUCHER, WRAPPED, between};
use crate::client::{ASK, Client};

/// Age up to which a price is used here; a sixth of it passes between two requests.
const MAX_AGE: Duration = Duration::from_millis(1500);

fn priced_by(feed: &Fixture, registry: Registry) -> Client {
    let prices = Some(PriceSource { url: feed.url.parse().unwrap(), max_age: MAX_AGE });
    Client::with(registry, Config { query_timeout: ASK, prices, ..Config::default() })
}

/// A feed that knows one token.
async fn feed() -> Fixture {
    Fixture::start(
        |target| {
            assert_eq!(target, "/simple/price?vs_currencies=usd&precision=full&ids=initia");
            Ok(json!({ "initia": { "usd": 0.2 }, "not-asked-for": { "usd": 1 } }))
        },
        |_| Value::Null,
    )
    .await
}

/// Polls a route until its value in is `wanted`.
async fn until(client: &Client, ask: &Value, wanted: &Value) -> Value {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let route = client.post("/v2/fungible/route", ask).await.ok();
        if route["usd_amount_in"] == *wanted {
            return route;
        }
        assert!(Instant::now() < deadline, "{}", route["usd_amount_in"]);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn prices_of_a_feed_are_used_until_they_are_too_old() {
    let chains = Chains::start().await;
    let feed = feed().await;
    // The registry of the recorded chains has a price of its own, which comes first.
    let client = Arc::new(priced_by(&feed, chains.altered(&[("price_usd = \"0.15\"\n", "")])));
    let follower = Arc::clone(&client);
    let task = tokio::spawn(async move { follower.service().follow_prices(std::future::pending()).await });
    let ask = between((L1, "uinit"), (L2, WRAPPED), "5000000");
    // The wrapped token has no name at CoinGecko: its origin's counts.
    assert_eq!(until(&client, &ask, &json!("1.00")).await["usd_amount_out"], "1.00");
    assert_eq!(client.get("/health").await.ok()["prices"], 1);
    drop(feed);
    until(&client, &ask, &Value::Null).await;
    task.abort();
}

#[tokio::test]
async fn a_price_of_the_registry_comes_before_the_feed() {
    let chains = Chains::start().await;
    let feed = Fixture::start(|target| panic!("{target}"), |_| Value::Null).await;
    let client = priced_by(&feed, chains.registry());
    client.service().set_prices([("initia".to_owned(), "9".to_owned())].into());
    let ask = between((L1, "uinit"), (L2, VOUCHER), "1000000");
    assert_eq!(client.post("/v2/fungible/route", &ask).await.ok()["usd_amount_in"], "0.15");
    // Nothing is left to ask for.
    let task = tokio::time::timeout(MAX_AGE / 2, client.service().follow_prices(std::future::pending()));
    task.await.unwrap_err();
}

#[tokio::test]
async fn a_feed_that_hangs_delays_no_route() {
    let chains = Chains::start().await;
    let silent = Fixture::silent().await;
    let client = Arc::new(priced_by(&silent, chains.altered(&[("price_usd = \"0.15\"\n", "")])));
    let follower = Arc::clone(&client);
    let task = tokio::spawn(async move { follower.service().follow_prices(std::future::pending()).await });
    let begun = Instant::now();
    for amount in 1..100 {
        let ask = between((L1, "uinit"), (L2, VOUCHER), &amount.to_string());
        assert!(client.post("/v2/fungible/route", &ask).await.ok()["usd_amount_in"].is_null());
    }
    assert!(begun.elapsed() < ASK, "{:?}", begun.elapsed());
    task.abort();
}

#[tokio::test]
async fn a_route_that_loses_much_of_the_value_has_a_warning() {
    let chains = Chains::start().await;
    let ibc = "ibc = { channel = \"channel-0\", from = \"uinit\" }";
    let charged = format!("{ibc}\nterms = {{ fee_bps = 2000 }}");
    let client = Client::over(chains.altered(&[(ibc, &charged)]));
    let ask = between((L1, "uinit"), (L2, VOUCHER), "100000000");
    let route = client.post("/v2/fungible/route", &ask).await.ok();
    let message = "20 % of the value is lost: $15.00 are sent, $12.00 arrive.";
    assert_eq!(route["warning"], json!({ "type": "BAD_PRICE_WARNING", "message": message }));
    let plain = chains.client().post("/v2/fungible/route", &ask).await.ok();
    assert_eq!(plain["warning"], Value::Null);
}
