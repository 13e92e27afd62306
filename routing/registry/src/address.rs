//! Contract addresses in EIP-55 checksum form.

use sha3::{Digest as _, Keccak256};

/// The address with the case of EIP-55; `None` if it is not `0x` and 40 hex digits.
pub(crate) fn checksummed(address: &str) -> Option<String> {
    let digits = address.strip_prefix("0x")?.to_ascii_lowercase();
    let mut bytes = [0; 20];
    hex::decode_to_slice(&digits, &mut bytes).ok()?;
    let hash = hex::encode(Keccak256::digest(&digits));
    let cased = digits
        .chars()
        .zip(hash.chars())
        .map(|(digit, nibble)| if nibble > '7' { digit.to_ascii_uppercase() } else { digit });
    Some(format!("0x{}", cased.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_case_is_that_of_eip_55() {
        for address in
            ["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"]
        {
            assert_eq!(checksummed(&address.to_lowercase()).as_deref(), Some(address));
        }
        for bad in [
            "",
            "0x",
            "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAg0",
        ] {
            assert_eq!(checksummed(bad), None);
        }
    }
}
