//! The page of a contract, with the state that a node of a recorded chain had.

use serde_json::json;

use crate::known::Known;
use crate::site::Site;

/// A token, a minimal proxy, an upgradeable proxy, an account that runs a contract's code, and what is behind those.
const TOKEN: &str = "0x198dfa8fa64ac0ee957b07ff480212e998161db7";
const CLONE: (&str, &str) =
    ("0x405972ed961d4612e4c6bacb5c1cbc7366b31c2e", "0xeb754a16f4ee9aed91af1b5ca5506b86ac97ffbe");
const UPGRADEABLE: (&str, &str) =
    ("0x27716e1b8547eed4d9474bb2f4b31605899e6c85", "0x90c7dc4a911a835be643f9c1ee86df40bc02871c");
const DELEGATING: (&str, &str) =
    ("0x4e39faaffb3a9ab97dc337e8d7f21ebd9d892c83", "0x3700269da6e7f75bbfef75b207e08b27f1fa1124");

#[tokio::test(flavor = "multi_thread")]
async fn code_and_proxies_are_shown_and_functions_that_read_are_called() {
    let folder = tempfile::tempdir().unwrap();
    let contracts = Known::new(folder.path()).with_state();
    let abi = json!([
        { "type": "function", "name": "named", "stateMutability": "view", "inputs": [], "outputs": [] },
        { "type": "function", "name": "name", "stateMutability": "view", "inputs": [],
          "outputs": [{ "type": "string", "name": "" }] },
        { "type": "function", "name": "mint", "stateMutability": "nonpayable", "inputs": [], "outputs": [] },
    ]);
    let behind = hex::decode(&UPGRADEABLE.1[2..]).unwrap().try_into().unwrap();
    contracts.folder.add_bytes(&behind, abi.to_string().as_bytes()).unwrap();
    let site = Site::explained("evm-fees", contracts).await;
    let read = async |target: String| {
        let answer = site.get(&target).await;
        assert_eq!(answer.status, 200, "{target}: {}", answer.body);
        let document = answer.document();
        assert_eq!(document.errors, [""; 0], "{target}");
        document
    };
    for ((address, behind), kind) in [
        (CLONE, "minimal proxy (EIP-1167)"),
        (UPGRADEABLE, "upgradeable proxy (EIP-1967)"),
        (DELEGATING, "account with a delegation (EIP-7702)"),
    ] {
        let document = read(format!("/contract/{address}")).await;
        assert!(document.text.contains(kind) && document.text.contains("Code hash"), "{}", document.text);
        assert!(document.links().contains(&format!("/contract/{behind}")), "{address}");
    }
    // By the ABI of what is behind it.
    let document = read(format!("/contract/{}?function=0x06fdde03", UPGRADEABLE.0)).await;
    assert!(
        document.text.contains("Proxied v2") && document.text.contains("Functions that write (1)"),
        "{}",
        document.text
    );
    // By what usual contracts have: values, a revert, and arguments.
    let result = async |function: &str| read(format!("/contract/{TOKEN}?function={function}")).await.text;
    for (function, value) in [("0x06fdde03", "Unindexed"), ("0x313ce567", " 6 "), ("0x95d89b41", "UIX")] {
        let text = result(function).await;
        assert!(text.contains(value) && text.contains("usual contracts have"), "{function}: {text}");
    }
    let interface = "0x01ffc9a7&arg=0x80ac58cd";
    assert!(result(interface).await.contains("The call failed:  Reverted"), "{}", result(interface).await);
    let wrong = result("0x70a08231&arg=7").await;
    assert!(
        wrong.contains("the argument `account` is `7`, but must be a value of the type address"),
        "{wrong}"
    );
    let unknown = result("0x06fdde03").await;
    assert!(
        unknown.contains("Whether it is a proxy is not known"),
        "its storage was not recorded: {unknown}"
    );
    for (path, status) in [
        (format!("/contract/{TOKEN}?function=0xa9059cbb"), 400),
        ("/contract/nothing".to_owned(), 400),
        (format!("/contract/{}", TOKEN.to_uppercase().replace("0X", "0x")), 200),
    ] {
        assert_eq!(site.get(&path).await.status, status, "{path}");
    }
    // The account leads there, whatever its address is spelled as.
    let account = site.get(&format!("/account/{TOKEN}")).await.document();
    assert!(account.links().contains(&format!("/contract/{TOKEN}")), "{:?}", account.links());
    let bech32 = account
        .all("button")
        .find_map(|button| button.get("data-copy").filter(|text| !text.starts_with("0x")))
        .unwrap();
    assert_eq!(
        site.get(&format!("/contract/{bech32}")).await.header("location"),
        format!("/contract/{TOKEN}")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_node_the_page_says_which_setting_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::explained("evm-fees", Known::new(folder.path())).await;
    let text = site.get(&format!("/contract/{TOKEN}?function=0x06fdde03")).await.document().text;
    assert!(text.contains("only with `state` in the setting `evm_forward`"), "{text}");
    assert!(!text.contains("Result") && !text.contains("Code hash"), "{text}");
}
