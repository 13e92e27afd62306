//! Ethereum ABI: calls for NFTs and balances, and their results, by alloy's `sol!`.
//!
//! # Invariants
//!
//! Contracts choose their answers, so a malformed answer decodes to `None`, and decoding never takes more memory than
//! the answer.

use alloy::primitives::U256;
use alloy::sol_types::SolCall as _;

use self::calls::{
    balanceOfCall, decimalsCall, nameCall, ownerOfCall, supportsInterfaceCall, symbolCall, tokenURICall,
    totalSupplyCall,
};
use crate::sanitize::{self, Text};

/// Bytes of a word.
const WORD: usize = 32;

/// The interface id of ERC-721 (ERC-165).
const ERC721: [u8; 4] = [0x80, 0xac, 0x58, 0xcd];

mod calls {
    alloy::sol! {
        // Returns a string, which is read as bytes because alloy would replace invalid UTF-8.
        function name() returns (bytes);
        function symbol() returns (bytes);
        function decimals() returns (uint256);
        function tokenURI(uint256 token) returns (bytes);
        function ownerOf(uint256 token) returns (address);
        function balanceOf(address holder) returns (uint256);
        function totalSupply() returns (uint256);
        function supportsInterface(bytes4 id) returns (bool);
    }
}

/// `name()` of ERC-20 and ERC-721. Answer: [`read_string`].
pub fn name() -> Vec<u8> {
    nameCall {}.abi_encode()
}

/// `symbol()` of ERC-20 and ERC-721. Answer: [`read_string`].
pub fn symbol() -> Vec<u8> {
    symbolCall {}.abi_encode()
}

/// `decimals()` of ERC-20. Answer: [`read_uint`].
pub fn decimals() -> Vec<u8> {
    decimalsCall {}.abi_encode()
}

/// `tokenURI(uint256)` of ERC-721. Answer: [`read_string`].
pub fn token_uri(token: U256) -> Vec<u8> {
    tokenURICall { token }.abi_encode()
}

/// `ownerOf(uint256)` of ERC-721. Answer: [`read_address`].
pub fn owner_of(token: U256) -> Vec<u8> {
    ownerOfCall { token }.abi_encode()
}

/// `balanceOf(address)` of ERC-20. Answer: [`read_uint`].
pub fn balance_of(holder: [u8; 20]) -> Vec<u8> {
    balanceOfCall { holder: holder.into() }.abi_encode()
}

/// `totalSupply()` of ERC-20. Answer: [`read_uint`].
pub fn total_supply() -> Vec<u8> {
    totalSupplyCall {}.abi_encode()
}

/// `supportsInterface(bytes4)` of ERC-165, for ERC-721. Answer: [`read_bool`].
pub fn supports_erc721() -> Vec<u8> {
    supportsInterfaceCall { id: ERC721.into() }.abi_encode()
}

/// A returned `string` without its NULs; or, of a contract that returns `bytes32` or bare text in its place, that text.
/// `None` if the answer is neither, or not UTF-8.
pub fn read_string(answer: &[u8]) -> Option<Text> {
    // An offset below 32 points at itself: a fallback function may return 32 zeros.
    let is_string = read_uint(answer).is_some_and(|offset| offset >= U256::from(WORD));
    match nameCall::abi_decode_returns(answer) {
        Ok(bytes) if is_string => Some(sanitize::bounded(std::str::from_utf8(&bytes).ok()?)),
        _ => bare_text(answer).map(sanitize::bounded),
    }
}

/// An answer that is text itself, padded with NULs or not. The words of other types begin with NULs or hold control
/// characters.
fn bare_text(answer: &[u8]) -> Option<&str> {
    let padding = answer.iter().rev().take_while(|byte| **byte == 0).count();
    let text = std::str::from_utf8(&answer[..answer.len() - padding]).ok()?;
    (!text.is_empty() && !text.contains(char::is_control)).then_some(text)
}

/// A returned `bool`.
pub fn read_bool(answer: &[u8]) -> Option<bool> {
    supportsInterfaceCall::abi_decode_returns_validate(answer).ok()
}

/// A returned `address`.
pub fn read_address(answer: &[u8]) -> Option<[u8; 20]> {
    ownerOfCall::abi_decode_returns_validate(answer).ok().map(Into::into)
}

/// A returned `uint256`, or one of fewer bits.
pub fn read_uint(answer: &[u8]) -> Option<U256> {
    answer.first_chunk().map(|word| U256::from_be_bytes::<32>(*word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a text without a mark is read as.
    #[expect(clippy::unnecessary_wraps, reason = "it is compared with what is read")]
    fn plain(text: &str) -> Option<Text> {
        Some(Text::Plain(text.to_owned()))
    }

    fn string(text: &[u8]) -> Vec<u8> {
        let word = |number: usize| U256::from(number).to_be_bytes::<WORD>();
        [&word(WORD)[..], &word(text.len()), text, &vec![0; (WORD - text.len() % WORD) % WORD]].concat()
    }

    #[test]
    fn strings_lose_their_nuls_and_have_a_longest_length() {
        assert_eq!(read_string(&string(b"")), plain(""));
        assert_eq!(read_string(&string("a\0bä".as_bytes())), plain("abä"));
        // Some contracts leave out the padding.
        assert_eq!(read_string(&string(b"cats")[..2 * WORD + 4]), plain("cats"));
        let longest = "x".repeat(sanitize::MAX_TEXT);
        assert_eq!(read_string(&string(longest.as_bytes())), plain(&longest));
        assert_eq!(read_string(&string(format!("{longest}x").as_bytes())), Some(Text::TooLong));
    }

    #[test]
    fn text_in_place_of_a_string_is_read_if_it_is_plain() {
        let mut bytes32 = [0; WORD];
        bytes32[..5].copy_from_slice(b"Maker");
        let full = [b'x'; WORD];
        let far = [&[0; WORD - 1][..], &[64], &[0; WORD], &string(b"cats")[WORD..]].concat();
        let unaligned = [&[0; WORD - 1][..], &[33, 0], &string(b"cats")[WORD..]].concat();
        let cases: [(&[u8], &str); 6] = [
            (&bytes32, "Maker"),
            (&full, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
            (b"ipfs://bare", "ipfs://bare"),
            ("Caf\u{e9}\0\0".as_bytes(), "Café"),
            (&far, "cats"),
            (&unaligned, "cats"),
        ];
        for (answer, text) in cases {
            assert_eq!(read_string(answer), plain(text), "{answer:?}");
        }
        assert_eq!(read_string(&vec![b'x'; sanitize::MAX_TEXT + 1]), Some(Text::TooLong));
    }

    #[test]
    fn malformed_strings_are_none() {
        let mut latin1 = [0; WORD];
        latin1[..4].copy_from_slice(b"Caf\xe9");
        let cut = &string(b"cats")[..2 * WORD + 3];
        let mut circular = string(b"cats");
        circular[WORD - 1] = 0;
        let mut far = string(b"cats");
        far[..WORD].fill(0xff);
        far[WORD - 1] = 0;
        let mut endless = string(b"cats");
        endless[WORD..2 * WORD].fill(0xff);
        let zeros = [0; WORD];
        let mut number = [0; WORD];
        number[WORD - 1] = b'7';
        let cases: [&[u8]; 9] =
            [&[], &zeros, &number, &latin1, b"two\nlines", cut, &circular, &far, &endless];
        for answer in cases {
            assert_eq!(read_string(answer), None, "{answer:?}");
        }
        assert_eq!(read_string(&string(&[0xff, 0xfe])), None);
    }

    #[test]
    fn words_are_read_only_if_they_are_valid_for_the_type() {
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
            prop_assert_eq!(read_string(&string(text.as_bytes())), Some(Text::Plain(text)));
            let mut near = vec![0; WORD];
            near[WORD - 1] = offset;
            near.extend(noise);
            // The result for random bytes is never longer than they are.
            let read = read_string(&near).and_then(Text::plain);
            prop_assert!(read.is_none_or(|text| text.len() <= near.len()));
        }
    }
}
