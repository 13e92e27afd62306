//! `check::online` has no finding if the registry agrees with the chains, and one for every planted difference.

use http::StatusCode;
use registry::{Endpoints, Registry};
use routing_api::check::online;
use serde_json::{Value, json};
use tracker::ChainClients;

use crate::client::ASK;
use crate::client::fixture::Fixture;
use crate::client::recorded::{BRIDGED, Chains, VOUCHER, texts};

/// The findings, with prefix `?` for those of failed queries.
async fn found(registry: &Registry) -> Vec<String> {
    let findings = online(&ChainClients::new(ASK), registry).await;
    findings
        .iter()
        .map(|finding| format!("{}{finding}", if finding.unreachable { "?" } else { "" }))
        .collect()
}

/// The chains of the example, with other parts.
fn with(chains: &Chains, parts: &str) -> Registry {
    let text = texts().into_iter().find(|(name, _)| name == "chains.toml").unwrap().1;
    chains.found(registry::load_texts(&[("chains.toml", &text), ("parts.toml", parts)]).unwrap())
}

#[tokio::test]
async fn the_example_agrees_with_the_recorded_chains() {
    let chains = Chains::start().await;
    // The wrapper was not queried while the chains were recorded.
    let found = found(&chains.registry()).await;
    assert!(found.len() == 1 && found[0].starts_with("?wrapper of evm/1EBEB4AA"), "{found:?}");
    assert!(chains.l2.missing().count > 0);
    for node in [&chains.l1, &chains.a, &chains.b] {
        assert_eq!(node.missing().count, 0, "{:?}", node.missing());
    }
}

#[tokio::test]
async fn a_channel_with_another_counterparty_is_found() {
    let chains = Chains::start().await;
    let wrong = r#"
        [[channel]]
        a = "e2e-l1-1/transfer/channel-0"
        b = "e2e-l2-1/transfer/channel-9"
    "#;
    let found = found(&with(&chains, wrong)).await;
    let counterparty = "channel transfer/channel-0 of e2e-l1-1: its other end is transfer/channel-0, \
                        the registry says transfer/channel-9";
    assert!(found.contains(&counterparty.to_owned()), "{found:?}");
    let missing =
        "channel transfer/channel-9 of e2e-l2-1: channel-9 of e2e-l2-1 is not open: there is no such channel";
    assert!(found.contains(&missing.to_owned()), "{found:?}");
}

#[tokio::test]
async fn a_channel_to_another_chain_is_found() {
    let chains = Chains::start().await;
    let wrong = r#"
        [[chain]]
        id = "other-1"
        bech32_prefix = "other"
        [[channel]]
        a = "e2e-l1-1/transfer/channel-0"
        b = "other-1/transfer/channel-0"
    "#;
    assert_eq!(
        found(&with(&chains, wrong)).await,
        [
            "?chain other-1: chain `other-1` has no rest address in the registry",
            "channel transfer/channel-0 of e2e-l1-1: its client is of chain e2e-l2-1, the registry says other-1",
            "?channel transfer/channel-0 of other-1: chain `other-1` has no rest address in the registry",
        ]
    );
}

#[tokio::test]
async fn a_wrong_bridge_is_found() {
    let chains = Chains::start().await;
    let bridge = |id: u64| format!("[[bridge]]\nid = {id}\nl1 = \"e2e-l1-1\"\nl2 = \"e2e-l2-1\"\n");
    let expected = |id: u64| format!("bridge {id}: e2e-l2-1 says that it hangs on bridge 1 of e2e-l1-1");
    assert_eq!(found(&with(&chains, &bridge(1))).await, [""; 0]);
    // The L1 has a second bridge, without a rollup, and no third one.
    assert_eq!(found(&with(&chains, &bridge(2))).await, [expected(2)]);
    let found = found(&with(&chains, &bridge(3))).await;
    assert!(found.len() == 2 && found.contains(&expected(3)), "{found:?}");
    assert!(found.iter().any(|finding| finding.starts_with("bridge 3: ") && finding.contains("not found")));
}

#[tokio::test]
async fn every_claim_that_recorded_nodes_can_deny_is_compared() {
    let chains = Chains::start().await;
    let oft = "oft ADP, contract 0xFea03a0FFD816A0c93110Aed483bAEa238789A6c of 31337";
    let native = "oft ETH, contract 0x75941155e2C3bbc063A6Cb4bBddb435e9BBFB15D of 31337";
    let cases: [(&str, &str, String); 8] = [
        (
            "id = \"e2e-l1-1\"\n",
            "id = \"e2e-l1-1\"\nbech32_prefix = \"cosmos\"\n",
            "chain e2e-l1-1: its addresses begin with init, the registry says cosmos".to_owned(),
        ),
        (
            "finalization_seconds = 20",
            "finalization_seconds = 21",
            "bridge 1: its finalization period is 20 s on the L1, the registry says 21 s".to_owned(),
        ),
        (
            "submission_seconds = 15",
            "submission_seconds = 16",
            "bridge 1: its submission period is 15 s on the L1, the registry says 16 s".to_owned(),
        ),
        (
            "submission_seconds = 15",
            "submission_seconds = 15\nmigrated = [{ denom = \"uinit\", channel = \"channel-0\" }]",
            "bridge 1, migration of uinit: uinit was migrated to no channel, the registry says transfer/channel-0"
                .to_owned(),
        ),
        (
            "symbol = \"ADP\"\nname = \"ADP\"\ndecimals = 18",
            "symbol = \"ADP\"\nname = \"ADP\"\ndecimals = 8",
            "asset 0x1020352dA119bD6b02BDCB6802E9e8F0D33265bD of 31337: its ERC-20 has 18 decimals, the registry says 8"
                .to_owned(),
        ),
        (
            "kind = \"adapter\"",
            "kind = \"token\"",
            format!("{oft}: it needs an allowance, which the kind of the registry contradicts"),
        ),
        (
            "contract = \"0x245baEE4d345A1ABB41C1E961Bf86E3974eF1dD6\"",
            "contract = \"0x8E554e26bA3C2f3E6E20b5fd875D39059AAf2d4f\"",
            format!(
                "{oft}: its counterpart on 31338 is 0x245baee4d345a1abb41c1e961bf86e3974ef1dd6, the registry says \
                 0x8E554e26bA3C2f3E6E20b5fd875D39059AAf2d4f"
            ),
        ),
        (
            "kind = \"native_adapter\"",
            "kind = \"native_adapter\"\nshared_decimals = 8",
            format!("{native}: it shares 6 decimals, the registry says 8"),
        ),
    ];
    for (truth, lie, expected) in cases {
        let found = found(&chains.altered(&[(truth, lie)])).await;
        assert!(found.contains(&expected), "{expected} is not in {found:?}");
    }
}

#[tokio::test]
async fn a_node_of_another_chain_is_found() {
    let chains = Chains::start().await;
    let swapped = chains.registry().with_endpoints(|id| match id {
        "e2e-l1-1" => Some(Endpoints { rest: vec![chains.l2.rest_url()], ..Endpoints::default() }),
        "31337" => Some(Endpoints { json_rpc: vec![chains.b.json_rpc_url()], ..Endpoints::default() }),
        _ => None,
    });
    let found = found(&swapped).await;
    for expected in
        ["chain e2e-l1-1: its node is of chain e2e-l2-1", "chain 31337: its node is of chain 31338"]
    {
        assert!(found.contains(&expected.to_owned()), "{found:?}");
    }
}

/// A node with the recorded replies, except for one path.
async fn lying(of: &str, path: &'static str, lie: Value) -> Fixture {
    let mut answers = crate::client::recorded::answers(of);
    assert!(answers.insert(path.to_owned(), lie).is_some(), "{path}");
    Fixture::start(move |asked| answers.get(asked).cloned().ok_or(StatusCode::NOT_FOUND), |_| Value::Null)
        .await
}

async fn found_behind(chains: &Chains, id: &str, node: &Fixture) -> Vec<String> {
    let registry = chains.registry().with_endpoints(|other| {
        (other == id).then(|| Endpoints { rest: vec![node.url.clone()], ..Endpoints::default() })
    });
    let mut found = found(&registry).await;
    // The wrapper was not queried while the chains were recorded.
    found.retain(|finding| !finding.starts_with("?wrapper of ") && !finding.contains("no json_rpc address"));
    found
}

#[tokio::test]
async fn a_contradicting_answer_of_a_chain_is_found() {
    let chains = Chains::start().await;
    let trace =
        "/ibc/apps/transfer/v1/denom_traces/37A3FB4FED4CA04ED6D9E5DA36C6D27248645F0E22F585576A1488B8A89C5A50";
    let base = "/opinit/opchild/v1/base_denom?denom=l2%2F771d639f30fbe45e3fbca954ffbe2fcc26f915f5513c67a4a2d0bc1d635bdefd";
    let client = "/ibc/core/client/v1/client_status/07-tendermint-0";
    let channel = "/ibc/core/channel/v1/channels/channel-0/ports/transfer";
    let closed = json!({ "channel": {
        "state": "STATE_CLOSED", "counterparty": { "port_id": "transfer", "channel_id": "channel-0" },
    } });
    let cases = [
        (
            trace,
            json!({ "denom_trace": { "path": "transfer/channel-0", "base_denom": "uinot" } }),
            format!(
                "asset {VOUCHER} of e2e-l2-1: the chain says its path is transfer/channel-0/uinot, \
                 the registry transfer/channel-0/uinit"
            ),
        ),
        (
            base,
            json!({ "base_denom": "uinot" }),
            format!("asset {BRIDGED} of e2e-l2-1: the rollup says it is uinot of the L1, the registry uinit"),
        ),
        (
            client,
            json!({ "status": "Expired" }),
            "channel transfer/channel-0 of e2e-l2-1: the client behind channel-0 of e2e-l2-1 is Expired"
                .to_owned(),
        ),
        (
            channel,
            closed,
            "channel transfer/channel-0 of e2e-l2-1: channel-0 of e2e-l2-1 is not open: STATE_CLOSED"
                .to_owned(),
        ),
    ];
    for (path, lie, expected) in cases {
        let node = lying("l1-l2/l2", path, lie).await;
        let found = found_behind(&chains, "e2e-l2-1", &node).await;
        assert!(found.contains(&expected), "{found:?}");
        // The other channel has the same client.
        assert_eq!(found.len(), if path == client { 2 } else { 1 }, "{found:?}");
    }
}

#[tokio::test]
async fn a_bridge_that_is_disabled_is_found() {
    let (chains, path) = (Chains::start().await, "/opinit/ophost/v1/bridges/1");
    let mut lie = crate::client::recorded::answers("l1-l2/l1")[path].clone();
    lie["bridge_config"]["bridge_disabled"] = json!(true);
    let node = lying("l1-l2/l1", path, lie).await;
    assert_eq!(found_behind(&chains, "e2e-l1-1", &node).await, ["bridge 1: it is disabled on the L1"]);
}

#[tokio::test]
async fn a_chain_that_does_not_answer_is_a_finding_of_its_own_kind() {
    let chains = Chains::start().await;
    chains.l2.down();
    let found = found(&chains.registry()).await;
    assert!(found.len() > 5 && found.iter().all(|finding| finding.starts_with('?')), "{found:?}");
}

#[tokio::test]
async fn a_voucher_without_holders_is_no_finding() {
    let chains = Chains::start().await;
    let mut answers = crate::client::recorded::answers("l1-l2/l2");
    answers.retain(|path, _| !path.contains("/denom_traces/"));
    let answer = move |asked: &str| {
        // The recorded chains answer the newer query like this.
        let unknown = asked.starts_with("/ibc/apps/transfer/v1/denoms/");
        let status = if unknown { StatusCode::NOT_IMPLEMENTED } else { StatusCode::NOT_FOUND };
        answers.get(asked).cloned().ok_or(status)
    };
    let node = Fixture::start(answer, |_| Value::Null).await;
    assert_eq!(found_behind(&chains, "e2e-l2-1", &node).await, [""; 0]);
}

#[tokio::test]
async fn a_chain_of_the_list_that_does_not_forward_is_found() {
    let yes = Ok(json!({ "module_versions": [{ "name": "packetfowardmiddleware", "version": "3" }] }));
    let contradicted =
        "forwarding of noble-1: the list has it as a chain that forwards packets, and it has no such module";
    let no_module = "?forwarding of noble-1: it has no upgrade module";
    for (answer, wanted) in [
        (yes, Vec::new()),
        (Err(StatusCode::INTERNAL_SERVER_ERROR), vec![contradicted]),
        (Err(StatusCode::NOT_FOUND), vec![no_module]),
    ] {
        let answer = move |asked: &str| {
            let is_about_modules = asked.starts_with("/cosmos/upgrade/");
            if is_about_modules { answer.clone() } else { Err(StatusCode::NOT_FOUND) }
        };
        let node = Fixture::start(answer, |_| Value::Null).await;
        let text = format!(
            "[[chain]]\nid = 'noble-1'\nbech32_prefix = 'noble'\nendpoints = {{ rest = ['{}'] }}\n",
            node.url
        );
        assert_eq!(found(&registry::load_text(&text).unwrap()).await, wanted);
        let own = format!("{text}forwards = true\n");
        assert_eq!(found(&registry::load_text(&own).unwrap()).await, [""; 0]);
    }
}
