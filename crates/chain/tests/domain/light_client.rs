//! Every recorded block was decided by the recorded validators; any change is rejected.

use crate::recorded::{CHAINS, heights, states};
use base64::Engine as _;
use chain::comet::header::Commit;
use chain::comet::light::{Power, Validator, Validators, check_commit, check_validators, parse_validators};
use chain::comet::{BlockResponse, parse_block};
use ed25519_consensus::SigningKey;
use proptest::prelude::*;
use serde_json::{Value, json};

fn validators(chain: &str) -> Validators {
    let mut pages = states(chain).filter(|state| state.path.starts_with("/validators?height="));
    let answer = pages.next().unwrap().answer.unwrap();
    let page = parse_validators(answer.get().as_bytes()).unwrap();
    assert_eq!(page.validators.len(), page.total);
    Validators::new(page.validators).unwrap()
}

#[test]
fn every_recorded_block_is_signed_by_the_recorded_validators() {
    for chain in CHAINS {
        let set = validators(chain);
        let mut before: Option<(u64, [u8; 32])> = None;
        let mut signed = 0;
        for line in heights(chain) {
            let block = parse_block(line.block.get().as_bytes()).unwrap();
            check_validators(&block, &set).unwrap();
            assert!(set.are_named(&block.full_header.next_validators_hash));
            if let Some((height, hash)) = before {
                let commit = block.last_commit().unwrap();
                let power = check_commit(&block.header.chain_id, height, &hash, &commit, &set).unwrap();
                assert_eq!(power.signed, power.total, "one validator");
                signed += 1;
            }
            before = Some((block.header.height, block.hash));
        }
        assert!(signed > 40, "{chain}");
    }
}

/// A recorded block with its commit, from the next block.
fn signed_block() -> (u64, [u8; 32], Value) {
    let mut lines = heights("move-scenario").skip(20);
    let (first, second) = (lines.next().unwrap(), lines.next().unwrap());
    let hash = parse_block(first.block.get().as_bytes()).unwrap().hash;
    let next: Value = serde_json::from_str(second.block.get()).unwrap();
    (first.height, hash, next["block"]["last_commit"].clone())
}

/// Checks a commit given as JSON.
fn check(
    chain_id: &str,
    height: u64,
    hash: &[u8; 32],
    commit: &Value,
    set: &Validators,
) -> Result<Power, String> {
    let text = commit.to_string();
    let commit: Commit = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    check_commit(chain_id, height, hash, &commit, set).map_err(|error| error.to_string())
}

#[test]
fn every_bit_of_a_signature_and_of_a_block_id_counts() {
    let base64 = base64::engine::general_purpose::STANDARD;
    let (height, hash, commit) = signed_block();
    let set = validators("move-scenario");
    check("e2e-move-1", height, &hash, &commit, &set).unwrap();
    let signature = base64.decode(commit["signatures"][0]["signature"].as_str().unwrap()).unwrap();
    assert_eq!(signature.len(), 64);
    for bit in 0..512 {
        let mut flipped = signature.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let mut commit = commit.clone();
        commit["signatures"][0]["signature"] = base64.encode(flipped).into();
        let error = check("e2e-move-1", height, &hash, &commit, &set).unwrap_err();
        assert_eq!(
            error,
            format!(
                "the signature of validator 0 under block {height} does not verify: ask another endpoint"
            )
        );
    }
    for bit in 0..256 {
        let (mut other, mut commit) = (hash, commit.clone());
        other[bit / 8] ^= 1 << (bit % 8);
        assert!(check("e2e-move-1", height, &other, &commit, &set).unwrap_err().contains("signs block"));
        commit["block_id"]["hash"] = hex::encode_upper(other).into();
        assert!(check("e2e-move-1", height, &other, &commit, &set).unwrap_err().contains("does not verify"));
        let mut parts = hex::decode(commit["block_id"]["parts"]["hash"].as_str().unwrap()).unwrap();
        parts[bit / 8] ^= 1 << (bit % 8);
        commit["block_id"]["hash"] = hex::encode(hash).into();
        commit["block_id"]["parts"]["hash"] = hex::encode(parts).into();
        assert!(check("e2e-move-1", height, &hash, &commit, &set).unwrap_err().contains("does not verify"));
    }
}

#[test]
fn the_signed_values_beside_the_block_count_too() {
    let (height, hash, commit) = signed_block();
    let set = validators("move-scenario");
    for (pointer, value, says) in [
        ("/height", json!((height + 1).to_string()), "signs block"),
        ("/round", json!(1), "does not verify"),
        ("/block_id/parts/total", json!(2), "does not verify"),
        ("/signatures/0/timestamp", json!("0001-01-01T00:00:00Z"), "does not verify"),
        ("/signatures/0/signature", json!("AAAA"), "does not verify"),
        ("/signatures/0/block_id_flag", json!(1), "power 0 of 1 signed"),
        ("/signatures/0/block_id_flag", json!(3), "power 0 of 1 signed"),
        ("/signatures", json!([]), "0 entries for 1 validators"),
    ] {
        let mut commit = commit.clone();
        let place = commit.pointer_mut(pointer).unwrap();
        assert_ne!(*place, value, "{pointer}");
        *place = value;
        let error = check("e2e-move-1", height, &hash, &commit, &set).unwrap_err();
        let named = error.contains(&format!("block {height}")) && error.ends_with("ask another endpoint");
        assert!(error.contains(says) && named, "{pointer}: {error}");
    }
    for (pointer, value) in [("/signatures/0/timestamp", "noon"), ("/signatures/0/signature", "!")] {
        let mut commit = commit.clone();
        *commit.pointer_mut(pointer).unwrap() = value.into();
        check("e2e-move-1", height, &hash, &commit, &set).unwrap_err();
    }
    assert!(check("e2e-move-2", height, &hash, &commit, &set).unwrap_err().contains("does not verify"));
    assert!(check("e2e-move-1", height, &hash, &commit, &validators("wasm-scenario")).is_err());
}

#[test]
fn every_digit_of_a_time_counts() {
    let (height, hash, commit) = signed_block();
    let set = validators("move-scenario");
    let time = commit["signatures"][0]["timestamp"].as_str().unwrap().to_owned();
    for place in time.char_indices().filter(|(_, digit)| digit.is_ascii_digit()).map(|(place, _)| place) {
        let mut commit = commit.clone();
        let digit = if &time[place..=place] == "0" { "1" } else { "0" };
        commit["signatures"][0]["timestamp"] =
            format!("{}{digit}{}", &time[..place], &time[place + 1..]).into();
        // Some are not a time any more: a month 01 turned into 00.
        check("e2e-move-1", height, &hash, &commit, &set).unwrap_err();
    }
}

#[test]
fn validators_of_another_key_or_power_are_another_set() {
    let set = validators("l1-l2/l1");
    let block = heights("l1-l2/l1").next().unwrap();
    let block: BlockResponse<'_> = parse_block(block.block.get().as_bytes()).unwrap();
    check_validators(&block, &set).unwrap();
    let error = check_validators(&block, &validators("move-scenario")).unwrap_err().to_string();
    assert!(error.starts_with("validators_hash of block 150 is "), "{error}");
    let more = Validators::new(vec![Validator { key: [1; 32], power: 500_001 }]).unwrap();
    assert!(check_validators(&block, &more).is_err());
    for list in [vec![], vec![Validator { key: [1; 32], power: u64::MAX }; 2]] {
        assert!(Validators::new(list).is_err());
    }
    let page = json!({"block_height": "1", "total": "1", "validators": [
        {"address": "AB", "voting_power": "1", "pub_key": {"type": "tendermint/PubKeySecp256k1", "value": "AA=="}}]});
    let error = parse_validators(page.to_string().as_bytes()).unwrap_err().to_string();
    assert!(error.contains("validator AB has a key of type \"tendermint/PubKeySecp256k1\""), "{error}");
}

/// A set of equal validators, and a commit that all sign.
fn committee(members: u8) -> (Validators, [u8; 32], Value) {
    let keys: Vec<SigningKey> = (1..=members).map(|seed| SigningKey::from([seed; 32])).collect();
    let list = keys.iter().map(|key| Validator { key: key.verification_key().to_bytes(), power: 10 });
    let set = Validators::new(list.collect()).unwrap();
    let hash = [0xab; 32];
    let mut vote = vec![8, 2, 0x11, 5, 0, 0, 0, 0, 0, 0, 0, 0x22, 36, 0x0a, 32];
    vote.extend_from_slice(&hash);
    vote.extend_from_slice(&[0x12, 0, 0x2a, 0, 0x32, 1, b'c']);
    vote.insert(0, vote.len().try_into().unwrap());
    let base64 = base64::engine::general_purpose::STANDARD;
    let entry = |key: &SigningKey| {
        json!({"block_id_flag": 2, "validator_address": "", "timestamp": "1970-01-01T00:00:00Z",
            "signature": base64.encode(key.sign(&vote).to_bytes())})
    };
    let signatures: Vec<Value> = keys.iter().map(entry).collect();
    let commit =
        json!({"height": "5", "round": 0, "block_id": {"hash": hex::encode(hash)}, "signatures": signatures});
    (set, hash, commit)
}

#[test]
fn more_than_two_thirds_must_sign_and_a_wrong_signature_is_found_in_a_batch() {
    let (set, hash, commit) = committee(9);
    assert_eq!(check("c", 5, &hash, &commit, &set), Ok(Power { signed: 70, total: 90 }));
    let without = |absent: &[usize]| {
        let mut commit = commit.clone();
        for place in absent {
            commit["signatures"][place] = json!({
                "block_id_flag": 1, "validator_address": "", "timestamp": "0001-01-01T00:00:00Z", "signature": "",
            });
        }
        check("c", 5, &hash, &commit, &set)
    };
    assert_eq!(without(&[0, 4]).unwrap().signed, 70);
    let error = without(&[0, 4, 8]).unwrap_err();
    assert!(
        error.starts_with("validators with power 60 of 90 signed block 5, more than two thirds must"),
        "{error}"
    );
    for place in 0..7 {
        let mut commit = commit.clone();
        commit["signatures"][place]["signature"] = commit["signatures"][8]["signature"].clone();
        let error = check("c", 5, &hash, &commit, &set).unwrap_err();
        assert!(error.starts_with(&format!("the signature of validator {place} under block 5")), "{error}");
    }
}

proptest! {
    #[test]
    fn no_answer_makes_a_check_panic(
        text in ".*", flag in 0..4_u64, height in any::<i64>(), key in any::<[u8; 32]>(), power in any::<u64>(),
        bytes in any::<Vec<u8>>(),
    ) {
        let base64 = base64::engine::general_purpose::STANDARD;
        prop_assert!(parse_validators(&bytes).is_err());
        if let Ok(set) = Validators::new(vec![Validator { key, power }]) {
            let commit = json!({"height": height.to_string(), "round": 0, "block_id": {"hash": "ab".repeat(32)},
                "signatures": [{"block_id_flag": flag, "validator_address": "",
                    "timestamp": "2026-01-01T00:00:00Z", "signature": base64.encode(&text)}]});
            prop_assert!(check(&text, height.unsigned_abs(), &[0xab; 32], &commit, &set).is_err());
        }
    }
}
