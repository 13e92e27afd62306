//! Quote calls of OFT contracts and their replies.

use chain::U256;
use messages::{BuildError, quote};

use crate::support::{word, world};

#[test]
fn the_calls_are_those_of_the_contract_and_name_no_receiver() {
    let scenario = world::mainnet();
    let (_, oft) = scenario.registry.ofts().nth(1).unwrap();
    let (limits, fee) = quote::calls(&oft.legs[0], 30_110, U256::from(5)).unwrap();
    // 0xdead as the receiver, and the options of the leg, 22 bytes.
    let nobody = word("000000000000000000000000000000000000dead");
    let param =
        [word("759e"), nobody, word("5"), word("0"), word("e0"), word("120"), word("140"), word("16")];
    let options = format!("{:0<64}", "00030100110100000000000000000000000000030d40");
    let rest = [options, word("0"), word("0")].concat();
    let param = param.concat() + &rest;
    assert_eq!(alloy::hex::encode(limits), format!("0d35b415{}{param}", word("20")));
    assert_eq!(alloy::hex::encode(fee), format!("3b6f743b{}{}{param}", word("40"), word("0")));
    let mut wrong = oft.legs[0].clone();
    wrong.options = "0xz".to_owned();
    assert!(matches!(quote::calls(&wrong, 1, U256::ONE), Err(BuildError::Registry { .. })));
}

#[test]
fn the_answers_are_read_by_their_words() {
    let words = |words: &[u64]| -> Vec<u8> {
        words.iter().flat_map(|word| U256::from(*word).to_be_bytes::<32>()).collect()
    };
    // Minimum, maximum, offset of the fees, sent, received, no fees.
    assert_eq!(quote::received(&words(&[0, 9, 160, 8, 7, 0])), Some(U256::from(7)));
    assert_eq!(quote::native_fee(&words(&[41, 0])), Some(U256::from(41)));
    assert_eq!((quote::received(&[]), quote::native_fee(&[0; 31])), (None, None));
}
