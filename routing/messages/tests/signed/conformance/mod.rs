//! Conformance with public registries: what their files state, compared with our registry, plans and messages.
//!
//! `lists` reads the files on its own; `checks` compares. A small registry in the same layouts runs always. Checkouts of
//! the public ones are taken from `CAIRN_INITIA_REGISTRY` and `CAIRN_CHAIN_REGISTRY`; without them that test is skipped
//! and prints so. It prints a table of the figures (`--nocapture`).

mod checks;
mod lists;

use std::path::{Path, PathBuf};

use checks::{Subject, Tally};
use lists::Lists;

const VARIABLES: [&str; 2] = ["CAIRN_INITIA_REGISTRY", "CAIRN_CHAIN_REGISTRY"];

/// The registry of a folder, and what the public layouts that it imports state.
fn read(own: &Path, initia: &Path, cosmos: &Path) -> (Subject, Lists) {
    (Subject::new(registry::load(own).unwrap()), Lists::read(&initia.join("mainnets"), cosmos))
}

/// Every figure, by name.
fn figures(subject: &Subject, lists: &Lists) -> Vec<(&'static str, Tally)> {
    vec![
        ("decimals and symbols", subject.metadata(lists)),
        ("traces of vouchers with a path", subject.traces(lists)),
        ("one-hop routes, both ways", subject.one_hop(&lists.steps)),
        ("one-hop routes by contracts, both ways", subject.one_hop(&lists.contract_steps)),
        ("gas coins over open channels", subject.gas_coins(lists)),
        ("voucher to voucher in one transaction", subject.vouchers(lists)),
    ]
}

#[test]
fn public_registries_are_routed_as_their_files_state() {
    let [Some(initia), Some(cosmos)] = VARIABLES.map(|name| std::env::var_os(name).map(PathBuf::from)) else {
        eprintln!("skipped: {} must name checkouts of both registries", VARIABLES.join(" and "));
        return;
    };
    let own = tempfile::tempdir().unwrap();
    let text = format!("[import]\ninitia = {initia:?}\nchain_registry = {cosmos:?}\n");
    std::fs::write(own.path().join("registry.toml"), text).unwrap();
    let (subject, lists) = read(own.path(), &initia, &cosmos);
    let errors: Vec<_> = subject.errors().collect();
    assert_eq!(errors, [""; 0], "`route check` fails");
    let figures = figures(&subject, &lists);
    for (name, tally) in &figures {
        println!("{name}: {tally}");
    }
    let share = |name: &str| figures.iter().find(|(other, _)| *other == name).unwrap().1.share();
    assert!(share("decimals and symbols") >= 0.999);
    assert!(share("traces of vouchers with a path") >= 1.0);
    assert!(share("one-hop routes, both ways") >= 1.0);
    assert!(share("gas coins over open channels") >= 0.99);
    assert!(share("voucher to voucher in one transaction") >= 0.9);
    assert!(figures.iter().all(|(_, tally)| tally.wrong.is_empty()));
}

#[test]
fn a_registry_with_the_shapes_of_the_public_ones_is_routed_exactly() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../registry/tests/shapes");
    let (subject, lists) = read(&root, &root.join("initia"), &root.join("chain-registry"));
    assert_eq!(subject.errors().collect::<Vec<_>>(), [""; 0]);
    let figures = figures(&subject, &lists);
    let counts: Vec<_> = figures.iter().map(|(_, tally)| (tally.asked, tally.exact)).collect();
    let reasons: Vec<_> = figures.iter().flat_map(|(_, tally)| tally.reasons.keys()).collect();
    assert_eq!(counts, [(17, 17), (9, 9), (13, 12), (2, 2), (6, 6), (6, 6)], "{reasons:#?}");
    assert!(figures.iter().all(|(_, tally)| tally.wrong.is_empty()), "{figures:#?}");
}
