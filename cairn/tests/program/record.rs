//! `cairn record`: a recording contains all replies that an index requests.

use crate::support::{Cairn, Played, digest, printed};

#[test]
fn a_recording_gives_the_index_that_the_recorded_node_gave() {
    for (recording, from) in [
        ("evm-scenario", 1),
        ("evm-scenario", 221),
        ("cosmos-evm", 1),
        ("move-scenario", 1),
        ("wasm-scenario", 4),
        ("wasm-scenario", 30),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (made, start) = (dir.path().join("made"), from.to_string());
        let original = Played::start(recording, &[]);
        let args = ["record", "--out", made.to_str().unwrap(), "--from", &start];
        let message = printed(&[&args, &original.services()[..]].concat());
        assert!(message.contains(&format!("heights {from} to ")), "{message}");
        let copy = Played::of("made", &made, &[]);
        let [of_original, of_copy] = [(&original, "original"), (&copy, "copy")].map(|(played, name)| {
            let data = dir.path().join(name);
            let mut cairn =
                Cairn::start(&[&played.flags("ingest", &data)[..], &["--start-height", &start]].concat());
            cairn.logged("caught up");
            cairn.signal("TERM");
            assert_eq!(cairn.ended().0, Some(0));
            digest(&data)
        });
        assert_eq!(of_copy, of_original, "{recording} from {from}");
    }
}

/// A node of the recording in `dir` whose program reports another name.
async fn renamed(dir: &str) -> testkit::overridden_node::OverriddenNode {
    let recording = replay::Recording::open(&testkit::recording(dir)).unwrap();
    testkit::overridden_node::OverriddenNode::start(std::sync::Arc::new(recording), |exchange| {
        if exchange.request.uri().path().ends_with("/node_info") {
            return exchange.with_change(|info| info["application_version"]["name"] = "minitia".into());
        }
        exchange.answer
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_whose_program_has_another_name_is_recorded_with_its_vm() {
    let dir = tempfile::tempdir().unwrap();
    let played = renamed("evm-scenario").await;
    let endpoints = played.endpoints().unwrap();
    let [comet, rest, json_rpc] =
        [&endpoints.comet, &endpoints.rest, &endpoints.json_rpc].map(|urls| urls[0].to_string());
    let out = dir.path().join("made");
    let record = |out: &std::path::Path, more: &[&str]| {
        let args = ["record", "--out", out.to_str().unwrap(), "--from", "190", "--to", "191"];
        let node = ["--comet", &comet, "--rest", &rest, "--json-rpc", &json_rpc];
        crate::support::run(&[&args[..], &node, more].concat())
    };
    let output = record(&out, &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains(" 0 EVM transactions"), "{text}");
    let about = std::fs::read_to_string(out.join("recording.json")).unwrap();
    assert!(about.contains("\"vm\": \"evm\""), "{about}");
    for (more, words) in [
        (["--vm", "move"], "--vm move: the chain has evm"),
        (
            ["--fee-denom", "uinit"],
            "the node's denomination of fees is `GAS`, not `uinit`: correct --fee-denom",
        ),
    ] {
        let output = record(&dir.path().join("none"), &more);
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && message.contains(words), "{message}");
    }
}

#[test]
fn an_address_that_a_recording_has_no_use_for_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (played, evm) = (Played::start("move-scenario", &[]), Played::start("evm-scenario", &[]));
    let json_rpc = evm.services().chunks(2).find(|pair| pair[0] == "--json-rpc").unwrap()[1].to_owned();
    let out = dir.path().join("made");
    let args = ["record", "--out", out.to_str().unwrap(), "--to", "3", "--json-rpc", &json_rpc];
    // This one is of another chain as well, which is an error after that.
    let output = crate::support::run(&[&args[..], &played.services()].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("`json_rpc` is not used: the chain is recorded with vm move"), "{text}");
}
