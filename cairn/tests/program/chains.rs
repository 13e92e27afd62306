//! `cairn query` over several chains.

use crate::support::{Cairn, Played, get, get_text, refused, until};

#[test]
fn one_process_serves_several_chains_and_none_waits_for_another() {
    let dir = tempfile::tempdir().unwrap();
    let (evm, wasm) = (dir.path().join("evm"), dir.path().join("wasm"));
    let (evm_node, wasm_node) = (Played::start("evm-scenario", &[]), Played::start("wasm-scenario", &[]));
    let (evm_chain, wasm_chain) = (evm_node.chain(), wasm_node.chain());
    evm_node.index(&evm);
    let chains = format!("{evm_chain}={},{wasm_chain}={}", evm.display(), wasm.display());
    let mut query = Cairn::start(&["query", "--chains", &chains, "--listen", "127.0.0.1:0"]);
    let url = query.url();
    let of_evm = format!("{url}/c/{evm_chain}");
    let of_wasm = format!("{url}/c/{wasm_chain}");

    until("the first chain", || (get_text(&format!("{of_evm}/status")).0 == 200).then_some(()));
    let (code, error) = get(&format!("{of_wasm}/status"));
    assert_eq!(
        (code, &error["message"]),
        (503, &format!("the database of {wasm_chain} is not open yet").into())
    );
    assert_eq!(get_text(&format!("{url}/healthz")), (200, "ok".to_owned()));
    let (code, reason) = get_text(&format!("{url}/readyz"));
    assert!(code == 503 && reason.contains(wasm_chain) && !reason.contains(evm_chain), "{reason}");
    let (_, list) = get(&format!("{url}/c"));
    assert_eq!(
        (&list["chains"][0]["open"], &list["chains"][1]["open"]),
        (&true.into(), &false.into()),
        "{list}"
    );

    wasm_node.index(&wasm);
    until("the second chain", || (get_text(&format!("{url}/readyz")).0 == 200).then_some(()));
    for (data, below) in [(&evm, &of_evm), (&wasm, &of_wasm)] {
        let mut alone = Cairn::start(&["query", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
        let alone_at = alone.url();
        for target in
            ["/status", "/indexer/tx/v1/txs?pagination.limit=3", "/indexer/block/v1/blocks", "/openapi.json"]
        {
            assert_eq!(get(&format!("{below}{target}")), get(&format!("{alone_at}{target}")), "{target}");
        }
        alone.signal("TERM");
        alone.ended();
    }
    // Without a chain: the first one.
    assert_eq!(get(&format!("{url}/status")).1["chain_id"], evm_chain);
    // Links of pages stay below the chain.
    let (code, page) = get_text(&format!("{of_wasm}/"));
    let link = format!("href=\"/c/{wasm_chain}/txs\"");
    assert!(code == 200 && page.contains(&link) && !page.contains("href=\"/txs\""), "{page}");
    query.signal("TERM");
    assert_eq!(query.ended().0, Some(0));
}

#[test]
fn invalid_chains_are_refused() {
    for (flags, message) in [
        (&["--chains", "one=/a", "--data", "/b"][..], "`data` and `chains` exclude each other"),
        (&["--chains", "one=/a,one=/b"], "`chains` names `one` twice"),
        (&["--chains", "one=/a", "--hosts", "example.org=two"], "`chains` has no `two`"),
        (&["--chains", "one=/a", "--grpc-listen", "127.0.0.1:0"], "`grpc_listen` serves one chain"),
        (&["--chains", "one"], "a pair with `=` between"),
    ] {
        let (code, error) = refused(&[&["query"], flags].concat());
        assert!(code == 2 && error.contains(message), "{flags:?}: {code} {error}");
    }
}
