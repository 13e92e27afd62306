//! Pseudonyms for the accounts and keys of records, so that a dictionary has the form of records and no account.
//!
//! An account has another pseudonym in each record, and the same one everywhere in a record: in hex, with the case of a
//! checksum or without, in bech32, and within longer hex and base64.

use std::collections::HashSet;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::Account;
use sha2::{Digest as _, Sha256};

/// Modules of the SDK and of Initia, whose accounts follow from their names and so are the same on every chain.
const MODULES: [&str; 8] =
    ["fee_collector", "distribution", "gov", "transfer", "nft-transfer", "opchild", "ophost", "move"];

/// The starts of bech32 addresses.
const PREFIXES: [&str; 2] = ["init", "initvaloper"];

/// Bytes of an address, of an address on Move or of a Wasm contract, and of a compressed public key.
const LENGTHS: [usize; 3] = [20, 32, 33];

/// The accounts and keys to replace.
#[derive(Default)]
pub(crate) struct Pseudonyms {
    known: HashSet<Vec<u8>>,
}

impl Pseudonyms {
    /// Adds the accounts and keys of a record: bech32 addresses, 20 bytes in hex, also as the end of 32 bytes, and keys
    /// in base64.
    pub(crate) fn add(&mut self, record: &[u8]) {
        for word in runs(record, |byte| byte.is_ascii_alphanumeric()) {
            let word = &record[word];
            if let Some((_, account)) = bech32(word) {
                self.insert(account.as_bytes());
            }
            let Some(digits) = word.strip_prefix(b"0x") else { continue };
            let padded = digits.strip_prefix(&[b'0'; 24]).filter(|rest| rest.len() == 40);
            let digits = padded.unwrap_or(digits);
            if digits.len() == 40
                && let Ok(address) = hex::decode(digits)
            {
                self.insert(&address);
            }
        }
        for word in runs(record, is_base64) {
            if let Ok(key) = STANDARD.decode(&record[word])
                && key.len() == 33
                && matches!(key[0], 2 | 3)
            {
                self.insert(&key);
            }
        }
    }

    /// Precompiles, numbers and the accounts of modules stay.
    fn insert(&mut self, bytes: &[u8]) {
        let is_module = MODULES.iter().any(|name| Sha256::digest(name).starts_with(bytes));
        if !is_module && bytes.iter().take(3).any(|byte| *byte != 0) {
            self.known.insert(bytes.to_vec());
        }
    }

    /// Replaces the accounts and keys of a record by those that follow from `salt`.
    pub(crate) fn apply(&self, record: &mut [u8], salt: u64) {
        for word in runs(record, |byte| byte.is_ascii_alphanumeric()) {
            let word = &mut record[word];
            if let Some((prefix, account)) = bech32(word)
                && let Some(new) = self.of(account.as_bytes(), salt)
                && let Some(new) = Account::from_bytes(&new)
            {
                word.copy_from_slice(new.to_bech32(prefix).as_bytes());
            }
            let start = if word.starts_with(b"0x") { 2 } else { 0 };
            self.apply_to_hex(&mut word[start..], salt);
        }
        for word in runs(record, is_base64) {
            let word = &mut record[word];
            if word.len() >= 28
                && let Ok(mut bytes) = STANDARD.decode(&*word)
            {
                self.apply_to_bytes(&mut bytes, salt);
                word.copy_from_slice(STANDARD.encode(bytes).as_bytes());
            }
        }
    }

    fn apply_to_bytes(&self, bytes: &mut [u8], salt: u64) {
        for start in 0..bytes.len() {
            for length in LENGTHS {
                let Some(window) = bytes.get_mut(start..start + length) else { continue };
                if let Some(new) = self.of(window, salt) {
                    window.copy_from_slice(&new);
                }
            }
        }
        self.apply(bytes, salt);
    }

    fn apply_to_hex(&self, digits: &mut [u8], salt: u64) {
        let Ok(mut bytes) = hex::decode(&*digits) else { return };
        if bytes.len() < LENGTHS[0] {
            return;
        }
        let before = bytes.clone();
        self.apply_to_bytes(&mut bytes, salt);
        if bytes == before {
            return;
        }
        let (lower, upper) =
            (digits.iter().any(u8::is_ascii_lowercase), digits.iter().any(u8::is_ascii_uppercase));
        // The case of a checksum is that of a hash: arbitrary.
        let cases = Sha256::digest(&bytes);
        for (at, (digit, new)) in digits.iter_mut().zip(hex::encode(bytes).into_bytes()).enumerate() {
            let is_upper = upper && (!lower || cases[at % 32] & 1 == 1);
            *digit = if is_upper { new.to_ascii_uppercase() } else { new };
        }
    }

    /// The pseudonym of an account or key; none if it stays.
    fn of(&self, bytes: &[u8], salt: u64) -> Option<Vec<u8>> {
        self.known.contains(bytes).then(|| {
            let hash = Sha256::new().chain_update(salt.to_be_bytes()).chain_update(bytes).finalize();
            // A key begins with the parity of its second half.
            let parity = &bytes[..usize::from(bytes.len() == 33)];
            [parity, &hash[..bytes.len() - parity.len()]].concat()
        })
    }
}

/// A bech32 address and its prefix.
fn bech32(word: &[u8]) -> Option<(&'static str, Account)> {
    let text = std::str::from_utf8(word).ok()?;
    PREFIXES.into_iter().find_map(|prefix| Some((prefix, Account::from_bech32(text, prefix)?)))
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// The longest runs of such bytes.
fn runs(text: &[u8], is_inside: impl Fn(u8) -> bool) -> Vec<Range<usize>> {
    let (mut runs, mut start) = (Vec::new(), None);
    for (at, &byte) in text.iter().enumerate() {
        match (start, is_inside(byte)) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                runs.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    runs.extend(start.map(|from| from..text.len()));
    runs
}
