//! Adapter and pools that no file names, and swaps beside routes without one.

use serde_json::{Value, json};

use crate::client::recorded::between;
use crate::swaps::{BRIDGED, Chains, INIT, L1, L2, RETURNED, number};

const ADAPTER: &str = "0x00000000000000000000000003224960d8df3d8c41ba48390cc7acdd36abe322";
/// A pool of two coins.
const STABLE: &str = "move/cdb959664900ae8063df591def25f57921304e5a704a0a3325e795b8049ea0d6";
/// A pool of these and another, with little of the first.
const OF_THREE: &str = "move/d1720052adf2b69b84920db1c7c64278ab24fbf42b4ed9104d9320cedf1f007d";

/// The pools of a route, in order.
fn pools(route: &Value) -> Vec<String> {
    let swap = route["operations"].as_array().unwrap().iter().find_map(|operation| operation.get("swap"));
    let steps = swap.and_then(|swap| swap["swap_in"]["swap_operations"].as_array()).unwrap();
    steps.iter().map(|step| step["pool"].as_str().unwrap().to_owned()).collect()
}

fn stable() -> Value {
    between((L1, "uusdc"), (L1, "uusdt"), "1000000")
}

#[tokio::test]
async fn the_adapter_and_stable_pools_are_found_on_the_chain() {
    let chains = Chains::start_with("", &[]).await;
    let facts = chains.client.service().world().facts;
    assert_eq!(facts.adapters.get(L1).map(String::as_str), Some(ADAPTER));
    assert_eq!(facts.hooks.get(L1), Some(&true));
    let route = chains.route(&stable()).await;
    assert_eq!(pools(&route), [OF_THREE]);
    let mut all = between((L1, "uusdc"), (L1, "uusdt"), "200000000000");
    all["smart_swap_options"] = json!({ "split_routes": true });
    let split = chains.route(&all).await["operations"][0]["swap"]["smart_swap_in"].to_string();
    assert!(split.contains(STABLE) && split.contains(OF_THREE), "{split}");
    // The recorded chain stands still.
    let warning = "The pools are those of block 570 of Recorded L1, the last since 2026-11-26T19:04:14Z.";
    assert_eq!(route["extra_warnings"], json!([warning]));
}

#[tokio::test]
async fn what_the_registry_names_has_precedence() {
    let venue = format!("adapter = \"0x777\"\npools = [\"{STABLE}\"]\n");
    // Without an index, the pool could not be found.
    let chains = Chains::start_with(&venue, &["no-index"]).await;
    assert!(chains.client.service().world().facts.adapters.is_empty());
    assert_eq!(pools(&chains.route(&stable()).await), [STABLE]);
    let mut ask = between((L1, "uusdc"), (L2, BRIDGED), "41000000");
    let route = chains.route(&ask).await;
    (ask["operations"], ask["amount_out"]) = (route["operations"].clone(), route["amount_out"].clone());
    let user = "init1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2sd";
    ask["address_list"] = json!([user, user]);
    let made = chains.client.post("/v2/fungible/msgs", &ask).await.ok();
    assert!(made["txs"][0]["cosmos_tx"]["msgs"][0]["msg"].as_str().unwrap().contains("\"0x777\""), "{made}");
}

#[tokio::test]
async fn stable_pools_that_no_index_has_leave_the_other_pools() {
    let chains = Chains::start_with("", &["no-index"]).await;
    let listed = chains.route(&between((L1, "uusdc"), (L1, INIT), "1000000")).await;
    assert!(pools(&listed)[0].starts_with("move/46159cee"), "{listed}");
    let used = pools(&chains.route(&stable()).await);
    assert!(![STABLE, OF_THREE].iter().any(|pool| used.iter().any(|used| used == pool)), "{used:?}");
}

#[tokio::test]
async fn a_swap_is_the_route_where_it_gives_more_than_the_bridge() {
    let chains = Chains::start_with("", &[]).await;
    // The pool sells the rollup's form of the coin below its value.
    let mut ask = between((L1, INIT), (L2, BRIDGED), "41000000");
    let swapped = chains.route(&ask).await;
    assert!(swapped["does_swap"] == true && number(&swapped["amount_out"]) > 41_000_000, "{swapped}");
    let bridged =
        &swapped["alternatives"].as_array().unwrap().iter().find(|other| other["amount_out"] == "41000000");
    assert!(bridged.is_some(), "{swapped}");
    ask["allow_swaps"] = json!(false);
    assert_eq!(chains.route(&ask).await["amount_out"], "41000000");
    // Sold, it gives less than the transfer.
    let kept = chains.route(&between((L1, RETURNED), (L2, BRIDGED), "41000000")).await;
    assert_eq!((&kept["does_swap"], &kept["amount_out"]), (&json!(false), &json!("41000000")));
    // To oneself nothing is swapped.
    let sent = chains.route(&between((L1, INIT), (L1, INIT), "41000000")).await;
    assert_eq!((&sent["does_swap"], &sent["amount_out"]), (&json!(false), &json!("41000000")));
}

#[tokio::test]
async fn an_amount_out_takes_the_least_of_swap_and_bridge() {
    let chains = Chains::start_with("", &[]).await;
    let mut ask = between((L1, INIT), (L2, BRIDGED), "1");
    ask.as_object_mut().unwrap().remove("amount_in");
    ask["amount_out"] = json!("41000000");
    let route = chains.route(&ask).await;
    assert!(route["does_swap"] == true && number(&route["amount_in"]) < 41_000_000, "{route}");
}
