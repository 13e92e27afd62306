//! Ethereum ABI: encoding of contract calls and decoding of their results, for NFTs and balances.
//!
//! # Invariants
//!
//! Contracts choose their answers, so a malformed answer decodes to `None`, and decoding never takes more memory than
//! the answer.

use alloy::primitives::U256;

use crate::sanitize;

const WORD: usize = 32;
const SELECTOR: usize = 4;
/// A selector and one argument.
const CALL: usize = SELECTOR + WORD;

/// `name()` of ERC-20 and ERC-721. Answer: [`read_string`].
pub fn name() -> [u8; SELECTOR] {
    [0x06, 0xfd, 0xde, 0x03]
}

/// `decimals()` of ERC-20. Answer: [`read_uint`].
pub fn decimals() -> [u8; SELECTOR] {
    [0x31, 0x3c, 0xe5, 0x67]
}

/// `tokenURI(uint256)` of ERC-721. Answer: [`read_string`].
pub fn token_uri(token: U256) -> [u8; CALL] {
    call([0xc8, 0x7b, 0x56, 0xdd], token.to_be_bytes())
}

/// `ownerOf(uint256)` of ERC-721. Answer: [`read_address`].
pub fn owner_of(token: U256) -> [u8; CALL] {
    call([0x63, 0x52, 0x21, 0x1e], token.to_be_bytes())
}

/// `balanceOf(address)` of ERC-20. Answer: [`read_uint`].
pub fn balance_of(holder: [u8; 20]) -> [u8; CALL] {
    let mut word = [0; WORD];
    word[WORD - holder.len()..].copy_from_slice(&holder);
    call([0x70, 0xa0, 0x82, 0x31], word)
}

/// `supportsInterface(0x80ac58cd)` of ERC-165: is it an ERC-721? Answer: [`read_bool`].
pub fn supports_erc721() -> [u8; CALL] {
    let mut word = [0; WORD];
    word[..SELECTOR].copy_from_slice(&[0x80, 0xac, 0x58, 0xcd]);
    call([0x01, 0xff, 0xc9, 0xa7], word)
}

/// A returned `string` without its NULs. `None` also if it is no UTF-8 or longer than 256 KiB.
pub fn read_string(answer: &[u8]) -> Option<String> {
    // The offset itself cannot be part of the string: 32 zeros, which a fallback may return, are none.
    let at = number(answer, 0).filter(|at| *at >= WORD)?;
    let length = number(answer, at)?;
    let from = at.checked_add(WORD)?;
    let text = std::str::from_utf8(answer.get(from..from.checked_add(length)?)?).ok()?;
    sanitize::bounded(text)
}

/// A returned `bool`.
pub fn read_bool(answer: &[u8]) -> Option<bool> {
    match number(answer, 0)? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// A returned `address`.
pub fn read_address(answer: &[u8]) -> Option<[u8; 20]> {
    let (zeros, address) = word(answer, 0)?.split_first_chunk::<12>()?;
    (*zeros == [0; 12]).then(|| address.try_into().ok()).flatten()
}

/// A returned `uint256`, or one of fewer bits.
pub fn read_uint(answer: &[u8]) -> Option<U256> {
    word(answer, 0).map(|word| U256::from_be_bytes(*word))
}

fn call(selector: [u8; SELECTOR], argument: [u8; WORD]) -> [u8; CALL] {
    let mut call = [0; CALL];
    call[..SELECTOR].copy_from_slice(&selector);
    call[SELECTOR..].copy_from_slice(&argument);
    call
}

fn word(answer: &[u8], at: usize) -> Option<&[u8; WORD]> {
    answer.get(at..)?.first_chunk()
}

/// A word that is an offset, a length or a flag: a larger number can be none of these.
fn number(answer: &[u8], at: usize) -> Option<usize> {
    usize::try_from(U256::from_be_bytes(*word(answer, at)?)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn string(text: &[u8]) -> Vec<u8> {
        let word = |number: usize| U256::from(number).to_be_bytes::<WORD>();
        [&word(WORD)[..], &word(text.len()), text, &vec![0; (WORD - text.len() % WORD) % WORD]].concat()
    }

    #[test]
    fn strings_lose_their_nuls_and_have_a_longest_length() {
        assert_eq!(read_string(&string(b"")).unwrap(), "");
        assert_eq!(read_string(&string("a\0bä".as_bytes())).unwrap(), "abä");
        // Some contracts leave out the padding.
        assert_eq!(read_string(&string(b"cats")[..2 * WORD + 4]).unwrap(), "cats");
        let longest = vec![b'x'; sanitize::MAX_TEXT];
        assert_eq!(read_string(&string(&longest)).unwrap().len(), sanitize::MAX_TEXT);
        assert_eq!(read_string(&string(&vec![b'x'; sanitize::MAX_TEXT + 1])), None);
    }

    #[test]
    fn answers_that_are_no_string_are_none() {
        let mut bytes32 = [0; WORD];
        bytes32[..5].copy_from_slice(b"Maker");
        let cut = &string(b"cats")[..2 * WORD + 3];
        let mut circular = string(b"cats");
        circular[WORD - 1] = 0;
        let mut far = string(b"cats");
        far[..WORD].fill(0xff);
        far[WORD - 1] = 0;
        let mut endless = string(b"cats");
        endless[WORD..2 * WORD].fill(0xff);
        let cases: [&[u8]; 6] = [&[], &bytes32, cut, &circular, &far, &endless];
        for answer in cases {
            assert_eq!(read_string(answer), None, "{answer:?}");
        }
        assert_eq!(read_string(&string(&[0xff, 0xfe])), None);
    }

    #[test]
    fn words_are_read_only_where_they_hold_such_a_value() {
        let mut word = [0; WORD];
        assert_eq!((read_bool(&word), read_address(&word)), (Some(false), Some([0; 20])));
        word[WORD - 1] = 1;
        assert_eq!((read_bool(&word), read_uint(&word)), (Some(true), Some(U256::from(1))));
        word[11] = 1;
        assert_eq!((read_bool(&word), read_address(&word)), (None, None));
        assert_eq!((read_bool(&[]), read_address(&[0; 31]), read_uint(&[0; 31])), (None, None, None));
    }

    proptest! {
        #[test]
        fn a_string_reads_back_and_noise_never_panics(text in "[^\0]{0,99}", noise in any::<Vec<u8>>(), offset: u8) {
            prop_assert_eq!(read_string(&string(text.as_bytes())), Some(text));
            let mut near = vec![0; WORD];
            near[WORD - 1] = offset;
            near.extend(noise);
            // Whatever comes out of noise cannot be longer than the noise.
            prop_assert!(read_string(&near).is_none_or(|text| text.len() <= near.len()));
        }
    }
}
