//! Ethereum's RLP, the writing half: as much as the hash of a transaction needs.
//!
//! Lists are written into a buffer of their own and wrapped, so that no length is computed twice.

use alloy::primitives::U256;

/// Appends a byte string.
pub(crate) fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    match bytes {
        [byte] if *byte < 0x80 => out.push(*byte),
        _ => {
            push_head(out, 0x80, bytes.len());
            out.extend_from_slice(bytes);
        }
    }
}

/// Appends an unsigned number in big-endian bytes; leading zeros are dropped and 0 is the empty string.
pub(crate) fn push_number(out: &mut Vec<u8>, big_endian: &[u8]) {
    let zeros = big_endian.iter().take_while(|byte| **byte == 0).count();
    push_bytes(out, &big_endian[zeros..]);
}

/// Appends a number.
pub(crate) fn push_u64(out: &mut Vec<u8>, number: u64) {
    push_number(out, &number.to_be_bytes());
}

/// Appends a number.
pub(crate) fn push_u256(out: &mut Vec<u8>, number: &U256) {
    push_number(out, &number.to_be_bytes::<32>());
}

/// Appends a list whose items are written already.
pub(crate) fn push_list(out: &mut Vec<u8>, items: &[u8]) {
    push_head(out, 0xc0, items.len());
    out.extend_from_slice(items);
}

fn push_head(out: &mut Vec<u8>, base: u8, len: usize) {
    match u8::try_from(len) {
        Ok(short) if short < 56 => out.push(base + short),
        _ => {
            let len = (len as u64).to_be_bytes();
            let zeros = len.iter().take_while(|byte| **byte == 0).count();
            let digits = &len[zeros..];
            // At most eight bytes of length: the sum stays below the next kind of head.
            out.push(base + 55 + digits.len().to_le_bytes()[0]);
            out.extend_from_slice(digits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_numbers_and_lists_are_written_as_the_yellow_paper_says() {
        let of = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&mut out);
            hex::encode(out)
        };
        assert_eq!(of(&|out| push_bytes(out, b"dog")), "83646f67");
        assert_eq!(of(&|out| push_bytes(out, b"")), "80");
        assert_eq!(of(&|out| push_bytes(out, &[0x7f])), "7f");
        assert_eq!(of(&|out| push_bytes(out, &[0x80])), "8180");
        assert_eq!(of(&|out| push_u64(out, 0)), "80");
        assert_eq!(of(&|out| push_u64(out, 1024)), "820400");
        assert_eq!(of(&|out| push_u256(out, &U256::from(15))), "0f");
        assert_eq!(of(&|out| push_list(out, b"")), "c0");
        assert_eq!(of(&|out| push_list(out, b"\x83cat\x83dog")), "c88363617483646f67");
        assert!(of(&|out| push_bytes(out, &[7; 55])).starts_with("b707"));
        assert!(of(&|out| push_bytes(out, &[7; 56])).starts_with("b83807"));
        assert!(of(&|out| push_list(out, &[7; 1024])).starts_with("f9040007"));
    }
}
