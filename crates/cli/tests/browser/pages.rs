//! Walks over the recorded chains, as `cairn demo` shows them.

use crate::chromium::Chromium;
use crate::support::Cairn;
use crate::walk::{VIEWS, Walk};

/// Indexes and serves a recording; returns its address too.
fn demo(recording: &str) -> (Cairn, String) {
    let dir = format!("testing/recordings/{recording}");
    let any = "127.0.0.1:0";
    let mut demo = Cairn::start(&["demo", "--recording", &dir, "--listen", any, "--route-listen", any]);
    demo.printed_about("is indexed");
    let status = demo.line("http://");
    let (address, _) = status.split_once('/').unwrap();
    (demo, format!("http://{address}"))
}

/// Walks the pages of a recording; no view but those of `absent` may be missing.
fn walk(recording: &str, absent: &[&str]) {
    let (_demo, origin) = demo(recording);
    let mut chromium = Chromium::start();
    let opened = Walk::new(chromium.tab(&origin), &origin, recording, &[]).run();
    let missing = VIEWS.into_iter().filter(|view| !opened.contains_key(view) && !absent.contains(view));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0], "no link leads to these views");
}

#[test]
fn pages_of_an_evm_chain() {
    walk("evm-scenario", &[]);
}

/// The views of chains with EVM transactions.
const EVM: [&str; 3] = ["/evm-txs", "/evm-tx/*", "/holders"];

#[test]
fn pages_of_a_move_chain() {
    walk("move-scenario", &EVM);
}

#[test]
fn pages_of_a_wasm_chain() {
    walk("wasm-scenario", &EVM);
}
