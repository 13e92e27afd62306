//! Arguments of Move functions as BCS, each as the base64 text of a `MsgExecute`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// `u32`: little endian.
pub(crate) fn u32(value: u32) -> String {
    STANDARD.encode(value.to_le_bytes())
}

/// `u64`: little endian.
pub(crate) fn u64(value: u64) -> String {
    STANDARD.encode(value.to_le_bytes())
}

/// `vector<u8>`: its length as ULEB128, then the bytes.
pub(crate) fn bytes(value: &[u8]) -> String {
    let (mut out, mut length) = (Vec::with_capacity(value.len() + 2), value.len());
    loop {
        let low = u8::try_from(length & 0x7f).unwrap_or_default();
        length >>= 7;
        if length == 0 {
            out.push(low);
            break;
        }
        out.push(low | 0x80);
    }
    out.extend_from_slice(value);
    STANDARD.encode(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &str) -> Vec<u8> {
        STANDARD.decode(text).unwrap()
    }

    #[test]
    fn numbers_are_little_endian() {
        assert_eq!(u32(30_101), "lXUAAA==");
        assert_eq!(u64(1_000_000), "QEIPAAAAAAA=");
        assert_eq!(u64(250_000), "kNADAAAAAAA=");
        assert_eq!(u64(0), "AAAAAAAAAAA=");
    }

    #[test]
    fn bytes_have_their_length_in_front_seven_bits_at_a_time() {
        assert_eq!(bytes(&[]), "AA==");
        assert_eq!(decoded(&bytes(&[9; 127]))[..2], [127, 9]);
        assert_eq!(decoded(&bytes(&[9; 128]))[..3], [0x80, 1, 9]);
        assert_eq!(decoded(&bytes(&[9; 300]))[..3], [0xac, 2, 9]);
        assert_eq!(decoded(&bytes(&vec![9; 1 << 14]))[..4], [0x80, 0x80, 1, 9]);
        assert_eq!(decoded(&bytes(&[9; 300])).len(), 302);
    }
}
