//! The example registry agrees with the replies of the recorded nodes.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use registry::{ChainRef, Origin, Registry, denom};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn example() -> Registry {
    let loaded = registry::load(&root().join("example")).unwrap();
    assert_eq!(loaded.problems, []);
    loaded.registry
}

/// Replies of a recorded node by path.
fn answers(chain: &str) -> BTreeMap<String, Value> {
    let path = root().join("../../testing/recordings/l1-l2").join(chain).join("extra.ndjson.zst");
    let lines = zstd::Decoder::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut answers = BTreeMap::new();
    for line in BufReader::new(lines).lines() {
        let mut line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if line["kind"] == "rest" && line["status"] == 200 {
            answers.insert(line["path"].as_str().unwrap().to_owned(), line["answer"].take());
        }
    }
    answers
}

fn encoded(denom: &str) -> String {
    denom.replace('/', "%2F")
}

fn chain(registry: &Registry, id: &str) -> ChainRef {
    registry.chain(id).unwrap()
}

#[test]
fn every_denomination_of_the_recorded_nodes_is_in_the_example_with_its_path() {
    let registry = example();
    let mut checked = 0;
    for (id, name) in [("e2e-l1-1", "l1"), ("e2e-l2-1", "l2")] {
        let answers = answers(name);
        let traces = &answers["/ibc/apps/transfer/v1/denom_traces"]["denom_traces"];
        for trace in traces.as_array().unwrap() {
            let path =
                format!("{}/{}", trace["path"].as_str().unwrap(), trace["base_denom"].as_str().unwrap());
            let hash =
                answers[&format!("/ibc/apps/transfer/v1/denom_hashes/{path}")]["hash"].as_str().unwrap();
            let asset = registry.asset(chain(&registry, id), &format!("ibc/{hash}")).unwrap();
            assert_eq!(registry.path(asset), path);
            assert_eq!(registry[asset].denom, denom::of_path(&path));
            checked += 1;
        }
    }
    assert_eq!(checked, 3);
}

#[test]
fn bridged_tokens_have_the_origin_that_the_rollup_reports() {
    let (registry, l1, l2) = (example(), answers("l1"), answers("l2"));
    let pairs = l1["/opinit/ophost/v1/bridges/1/token_pairs"]["token_pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 2);
    for pair in pairs {
        let (from, here) = (pair["l1_denom"].as_str().unwrap(), pair["l2_denom"].as_str().unwrap());
        let asset = registry.asset(chain(&registry, "e2e-l2-1"), here).unwrap();
        let Origin::Bridged { bridge, parent } = &registry[asset].origin else {
            panic!("{here} is not bridged")
        };
        assert_eq!((registry[*bridge].id, registry[*parent].denom.as_str()), (1, from));
        let answer = &l2[&format!("/opinit/opchild/v1/base_denom?denom={}", encoded(here))]["base_denom"];
        assert_eq!(answer, from);
    }
}

#[test]
fn the_bridge_has_the_periods_of_the_recorded_one() {
    let (registry, l1) = (example(), answers("l1"));
    let config = &l1["/opinit/ophost/v1/bridges/1"]["bridge_config"];
    let (_, bridge) = registry.bridges().next().unwrap();
    assert_eq!(config["submission_interval"], format!("{}s", bridge.submission_seconds));
    assert_eq!(config["finalization_period"], format!("{}s", bridge.finalization_seconds));
}

#[test]
fn every_token_of_the_rollup_has_the_contract_that_the_node_names() {
    let (registry, l2) = (example(), answers("l2"));
    let rollup = chain(&registry, "e2e-l2-1");
    let mut checked = 0;
    for (_, asset) in registry.assets().filter(|(_, asset)| asset.chain == rollup) {
        let answer =
            &l2[&format!("/minievm/evm/v1/contracts/by_denom?denom={}", encoded(&asset.denom))]["address"];
        assert_eq!(answer.as_str(), asset.contract.as_deref(), "{}", asset.denom);
        checked += 1;
    }
    assert_eq!(checked, 6);
}

#[test]
fn the_wrapped_token_is_the_one_that_the_wrapper_made() {
    let (registry, l2) = (example(), answers("l2"));
    let denom = "evm/1EBEB4AA9d6b7ad48E093A336FEb6C17358250e2";
    let asset = registry.asset(chain(&registry, "e2e-l2-1"), denom).unwrap();
    let Origin::Wrapped { contract, parent } = &registry[asset].origin else {
        panic!("{denom} is not wrapped")
    };
    assert_eq!(l2["/minievm/evm/v1/contracts/erc20_wrapper"]["address"], **contract);
    let query = format!("/cosmos/bank/v1beta1/denoms_metadata_by_query_string?denom={}", encoded(denom));
    let units = l2[&query]["metadata"]["denom_units"].as_array().unwrap();
    let wrapped = format!("W{}", registry[*parent].denom);
    assert!(
        units.iter().any(|unit| unit["denom"] == *wrapped && unit["exponent"] == registry[asset].decimals)
    );
}

#[test]
fn the_layer_zero_legs_are_the_recorded_contracts() {
    let registry = example();
    let text =
        std::fs::read_to_string(root().join("../../testing/recordings/evm-oft/contracts.json")).unwrap();
    let recorded: Value = serde_json::from_str(&text).unwrap();
    let mut checked = 0;
    for deployed in recorded.as_array().unwrap() {
        let evm = chain(&registry, deployed["chain_id"].as_str().unwrap());
        assert_eq!(deployed["eid"], registry[evm].layer_zero_eid.unwrap());
        let endpoint = registry[evm].layer_zero_endpoint.as_deref().unwrap();
        assert_eq!(deployed["layerzero"]["endpoint"], endpoint.to_lowercase());
        for (symbol, contracts) in deployed["ofts"].as_object().unwrap() {
            let (_, oft) = registry.ofts().find(|(_, oft)| oft.symbol == *symbol).unwrap();
            let leg = oft.legs.iter().find(|leg| registry[leg.asset].chain == evm).unwrap();
            assert_eq!(contracts["oft"], leg.contract.to_lowercase());
            let token = contracts["token"].as_str();
            let denom = registry[leg.asset].denom.to_lowercase();
            assert_eq!(token.unwrap_or("test-evm-a-native"), denom);
            checked += 1;
        }
    }
    assert_eq!(checked, 6);
}

#[test]
fn the_registry_of_the_worked_examples_loads() {
    let loaded = registry::load(&root().join("../api/tests/mainnet")).unwrap();
    assert_eq!(loaded.problems, []);
    let registry = loaded.registry;
    let asset =
        registry.asset(chain(&registry, "cabal-1"), "evm/A1Bc0977Bab93D507A89C108fa21820809e6869D").unwrap();
    assert_eq!(registry[registry.root(asset)].denom, "uusdc");
    assert_eq!(registry.trace(asset), "transfer/channel-0/transfer/channel-3");
}
