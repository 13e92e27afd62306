//! The amount of a route: rounded down where a wrapper would refuse a remainder, and counted back from an amount out.

use serde_json::{Value, json};

use crate::client::Client;
use crate::client::recorded::{
    BRIDGED, Chains, L1, L2, TOKEN_A, TOKEN_B, USER, VOUCHER, WRAPPED, between, texts,
};

const ROUTE: &str = "/v2/fungible/route";

/// A route request for an amount out.
fn wanting(source: (&str, &str), dest: (&str, &str), amount: &str) -> Value {
    let mut ask = between(source, dest, amount);
    let amount = ask.as_object_mut().unwrap().remove("amount_in").unwrap();
    ask["amount_out"] = amount;
    ask
}

/// (amount in, amount out, number of infos) of a route.
async fn amounts(client: &Client, ask: &Value) -> (String, String, usize) {
    let route = client.post(ROUTE, ask).await.ok();
    let text = |name: &str| route[name].as_str().unwrap().to_owned();
    (text("amount_in"), text("amount_out"), route["extra_infos"].as_array().unwrap().len())
}

#[tokio::test]
async fn a_remainder_that_the_wrapper_would_refuse_stays_in_the_account() {
    let chains = Chains::start().await;
    let client = chains.client();
    let ask = between((L2, WRAPPED), (L1, "uinit"), "1500000000000000001");
    let route = client.post(ROUTE, &ask).await.ok();
    assert_eq!(
        (&route["amount_in"], &route["amount_out"]),
        (&json!("1500000000000000000"), &json!("1500000"))
    );
    let info = "1.5 INIT are sent and 0.000000000000000001 INIT stay in the account: the route takes no smaller units.";
    assert_eq!(route["extra_infos"], json!([info]));

    // The messages are those of the amount in the reply, as clients send it back.
    let mut echo = ask.clone();
    for name in ["amount_in", "amount_out", "operations"] {
        echo[name] = route[name].clone();
    }
    echo["address_list"] = json!([USER, USER]);
    let msgs = client.post("/v2/fungible/msgs", &echo).await.ok();
    assert!(msgs.to_string().contains(&hex_of(1_500_000_000_000_000_000)), "{msgs}");
    echo["amount_in"] = ask["amount_in"].clone();
    let (status, code, message) = client.post("/v2/fungible/msgs", &echo).await.refusal();
    assert_eq!((status, code), (400, 3));
    assert!(message.starts_with("amount_in must be a multiple of 1000000000000"), "{message}");

    let mut direct = ask.clone();
    direct["chain_ids_to_addresses"] = json!({ L1: USER, L2: USER });
    let direct = client.post("/v2/fungible/msgs_direct", &direct).await.ok();
    assert_eq!(direct["route"]["extra_infos"], json!([info]));

    let whole = between((L2, WRAPPED), (L1, "uinit"), "1500000000000000000");
    assert_eq!(client.post(ROUTE, &whole).await.ok()["extra_infos"], json!([]));
    // Nothing is left of less than a unit.
    let answer = client.post(ROUTE, &between((L2, WRAPPED), (L1, "uinit"), "999999999999")).await;
    assert_eq!(answer.refusal().1, 3);
    assert_eq!(answer.json()["info"], "Send at least 1000000000000 base units.");
}

/// An amount as in the calldata of a contract.
fn hex_of(amount: u128) -> String {
    format!("{amount:064x}")
}

#[tokio::test]
async fn an_amount_out_gives_the_least_amount_in() {
    let chains = Chains::start().await;
    let client = chains.client();
    let tok = 10u64.pow(12);
    let cases = [
        ((L1, "uinit"), (L2, VOUCHER), "1000000", ("1000000", "1000000", 0)),
        ((L2, BRIDGED), (L1, "uinit"), "7", ("7", "7", 0)),
        ((L2, "GAS"), (L2, "GAS"), "7", ("7", "7", 0)),
        ((L2, WRAPPED), (L1, "uinit"), "1000001", ("1000001000000000000", "1000001", 0)),
        ((L1, "uinit"), (L2, WRAPPED), "1500000000000000000", ("1500000", "1500000000000000000", 0)),
        ((L1, "uinit"), (L2, WRAPPED), "1500000000000000001", ("1500001", "1500001000000000000", 1)),
        ((L1, "uinit"), (L2, WRAPPED), "1", ("1", "1000000000000", 1)),
    ];
    for (source, dest, wanted, (sent, out, infos)) in cases {
        let found = amounts(&client, &wanting(source, dest, wanted)).await;
        assert_eq!(found, (sent.to_owned(), out.to_owned(), infos), "{wanted} of {dest:?}");
    }
    // The contract quotes for the amount that is sent.
    let ask = wanting(("31337", TOKEN_A), ("31338", TOKEN_B), &(1_000_000 * tok).to_string());
    assert_eq!(
        amounts(&client, &ask).await,
        ((1_000_000 * tok).to_string(), (1_000_000 * tok).to_string(), 0)
    );

    let mut direct = wanting((L1, "uinit"), (L2, VOUCHER), "1000000");
    direct["chain_ids_to_addresses"] = json!({ L1: USER, L2: USER });
    let direct = client.post("/v2/fungible/msgs_direct", &direct).await.ok();
    assert_eq!(direct["route"]["amount_in"], "1000000");
}

#[tokio::test]
async fn an_amount_out_includes_the_fees_of_the_operator() {
    let chains = Chains::start().await;
    let fees = "ibc = { channel = \"channel-0\", from = \"uinit\" }";
    assert!(texts().iter().any(|(_, text)| text.contains(fees)));
    let charged = format!("{fees}\nterms = {{ min_amount = 5000, fee_amount = 100, fee_bps = 25 }}");
    let client = Client::over(chains.altered(&[(fees, &charged)]));
    for wanted in [1u64, 4_887, 4_888, 1_000_000, 123_456_789] {
        let ask = wanting((L1, "uinit"), (L2, VOUCHER), &wanted.to_string());
        let (sent, out, _) = amounts(&client, &ask).await;
        let (sent, out): (u64, u64) = (sent.parse().unwrap(), out.parse().unwrap());
        assert!(out >= wanted && sent >= 5_000, "{sent} -> {out} for {wanted}");
        if sent > 5_000 {
            let less = between((L1, "uinit"), (L2, VOUCHER), &(sent - 1).to_string());
            let (_, less, _) = amounts(&client, &less).await;
            assert!(less.parse::<u64>().unwrap() < wanted, "{} is enough for {wanted}", sent - 1);
        }
    }
}
