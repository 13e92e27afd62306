//! Pages that change while they are open.

use crate::chromium::Chromium;
use crate::support::{Cairn, Played, until};

/// The newest height that the overview shows.
const NEWEST: &str = r##"Number(document.querySelector("#latest-blocks tbody a")?.textContent ?? 0)"##;

#[test]
fn the_overview_shows_new_blocks_without_a_reload() {
    let dir = tempfile::tempdir().unwrap();
    let played = Played::start("evm-scenario", &["--up-to", "5", "--block-every", "500ms"]);
    let mut cairn = Cairn::start(&played.flags("run", dir.path()));
    let url = cairn.url();
    let mut chromium = Chromium::start();
    let mut tab = chromium.tab(&url);
    until("an overview with a block", || {
        tab.open("/");
        (tab.evaluate(NEWEST).as_u64()? > 0).then_some(())
    });
    let first = tab.evaluate(NEWEST).as_u64().unwrap();
    // A reload would forget it.
    tab.evaluate("void (window.isSamePage = true)");
    for more in [1, 2, 5] {
        until("a new block on the page", || (tab.evaluate(NEWEST).as_u64()? >= first + more).then_some(()));
    }
    assert_eq!(tab.evaluate("window.isSamePage"), true);
    assert_eq!(tab.problems(), [""; 0]);
}
