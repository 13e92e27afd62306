//! Killed at random moments and started again, the program ends with the database of an undisturbed run.

mod support;

use support::{Cairn, Played, digest, get, until};

const KILLS: u64 = 5;

/// The last height of `evm-scenario`.
const LAST: u64 = 226;

#[test]
fn a_database_after_kills_is_the_one_of_an_undisturbed_run() {
    let dir = tempfile::tempdir().unwrap();
    let (calm, rough) = (dir.path().join("calm"), dir.path().join("rough"));
    Played::start("evm-scenario", &[]).index(&calm);

    let played = Played::start("evm-scenario", &["--block-every", "20ms"]);
    // Any heights will do; these are spread, and the moment within a commit is up to the scheduler.
    for kill in 0..KILLS {
        let height = 10 + kill * (LAST - 60) / KILLS;
        let mut cairn = Cairn::start(&played.flags("run", &rough));
        let url = cairn.url();
        until("the height to be killed at", || {
            let (_, status) = get(&format!("{url}/status"));
            (status["height"].as_u64()? >= height).then_some(())
        });
        cairn.kill();
    }
    let mut cairn = Cairn::start(&played.flags("run", &rough));
    let url = cairn.url();
    until("the whole chain", || {
        let (_, status) = get(&format!("{url}/status"));
        (status["height"] == LAST && status["internal_tx_height"] == LAST).then_some(())
    });
    cairn.kill();
    assert_eq!(digest(&rough), digest(&calm));
}
