//! Findings of the check, and none in the example.

use std::path::Path;

use crate::flaws::{flawed, sound};
use registry::{Part, Registry, Severity, check, load_text};

fn found(registry: &Registry) -> Vec<String> {
    check(registry).iter().map(ToString::to_string).collect()
}

/// The registry itself has every error of an asset, a bridge or an OFT.
fn every_error_is_kept(registry: &Registry) {
    let part = |about: &str| {
        let assets = registry.assets().map(|(reference, asset)| {
            (format!("{} of {}", asset.denom, registry[asset.chain].id), Part::Asset(reference))
        });
        let bridges = registry.bridges().map(|(reference, bridge)| {
            (format!("bridge {} to {}", bridge.id, registry[bridge.l2].id), Part::Bridge(reference))
        });
        let ofts =
            registry.ofts().map(|(reference, oft)| (format!("oft {}", oft.symbol), Part::Oft(reference)));
        assets.chain(bridges).chain(ofts).find(|(name, _)| name == about).map(|(_, part)| part)
    };
    for problem in check(registry) {
        match part(&problem.place.key) {
            Some(part) if problem.severity == Severity::Error => {
                assert!(registry.error(part).is_some(), "{problem}");
                assert!(problem.what.ends_with("; no route uses it"), "{problem}");
            }
            Some(_) => {}
            None => assert!(!problem.what.ends_with("; no route uses it"), "{problem}"),
        }
    }
}

#[test]
fn a_registry_without_a_flaw_has_no_finding() {
    assert_eq!(found(&load_text(&sound()).unwrap()), [""; 0]);
    let example = registry::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("example")).unwrap();
    assert_eq!(found(&example.registry), [""; 0]);
}

#[test]
fn each_flaw_is_found_and_named() {
    for (text, wanted) in flawed() {
        let found = match load_text(&text) {
            Ok(registry) => {
                every_error_is_kept(&registry);
                found(&registry)
            }
            Err(refused) => vec![refused.to_string()],
        };
        assert!(found.iter().any(|problem| problem.contains(wanted)), "{wanted}: {found:#?}");
        assert!(!found.iter().any(|problem| problem.contains("secret")), "{found:#?}");
    }
}

#[test]
fn a_token_with_six_decimals_that_is_wrapped_from_one_with_more_is_the_remote_one() {
    let registry = load_text(&sound()).unwrap();
    let chain = registry.chain("l2-1").unwrap();
    let asset = |denom: &str| registry.asset(chain, denom).unwrap();
    let made = asset("evm/44CFAaB1cF49996540A6B6A87d1f0a604267E6b0");
    let local = asset("evm/4BaDFb501Ab304fF11217C44702bb9E9732E7CF4");
    let pair = registry.wrapper_pair(made).unwrap();
    assert_eq!((pair.remote, pair.local), (made, local));
    assert_eq!(registry.wrapper_pair_of(local, made), Some(pair));
    assert_eq!(registry.wrapper_pair(local), None);
    // The usual direction, in which the bridged coin is the remote one.
    let init = asset("evm/5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed");
    let pair = registry.wrapper_pair(init).unwrap();
    assert_eq!((Some(pair.remote), pair.local), (registry[init].origin.parent(), init));
}

#[test]
fn two_pairs_that_one_wrapper_cannot_have_are_both_errors() {
    let more = |wrapper: &str| {
        format!(
            "[[asset]]\nchain = 'l2-1'\ndenom = 'evm/856aB2c9F35B9187aB3eB0Fcd11DCc6160427e96'\nsymbol = 'ONYX.2'\n\
             decimals = 6\nwrapped = {{ contract = '{wrapper}', from = 'evm/4BaDFb501Ab304fF11217C44702bb9E9732E7CF4' }}\n"
        )
    };
    let found_in = |wrapper: &str| found(&load_text(&(sound() + &more(wrapper))).unwrap());
    let both = found_in("0xfb6916095ca1df60bb79ce92ce3ea74c37c5d359");
    assert_eq!(both.len(), 2, "{both:#?}");
    assert!(both.iter().all(|problem| problem.contains("the wrapper cannot have made both it and `evm/")));
    assert_eq!(found_in("0x4eb08D5c1B0A821303A86C7b3AC805c2793dE783"), [""; 0]);
}

#[test]
fn an_unconnected_chain_is_found() {
    let lonely = "[[chain]]\nid = 'x-1'\nbech32_prefix = 'x'\n";
    let found = found(&load_text(&format!("{}{lonely}", sound())).unwrap());
    assert!(
        found.iter().any(|problem| problem.starts_with("warning: `chain x-1`: no channel, bridge or OFT"))
    );
}
