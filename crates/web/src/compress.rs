//! Compression of response bodies at the lowest level: responses are generated once and not cached.
//!
//! The output is never larger than the input; a body that does not shrink is sent uncompressed. Each thread keeps
//! one compressor of each kind, because setting one up costs more than compressing a small body: `tower-http`, which
//! makes one per response, takes 11 times as long for 2 KB with gzip and 3 times with zstd, and as long for 400 KB.

use std::cell::RefCell;

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

use crate::encoding::Coding;

/// Level 1 of either: pages of event JSON shrink about ten times already, at the lowest CPU cost.
const LEVEL: u8 = 1;

/// RFC 1952 §2.3: magic, deflate, no flags, no time, fastest, unknown system.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];

/// CRC and length after the compressed data.
const GZIP_TRAILER: usize = 8;

thread_local! {
    static GZIP: RefCell<Compress> = RefCell::new(Compress::new(Compression::new(u32::from(LEVEL)), false));
    static ZSTD: RefCell<Option<zstd::bulk::Compressor<'static>>> =
        RefCell::new(zstd::bulk::Compressor::new(i32::from(LEVEL)).ok());
}

/// `body` in the given coding; `None` if it would not be smaller.
pub(crate) fn compress(coding: Coding, body: &[u8]) -> Option<Vec<u8>> {
    match coding {
        Coding::Identity => None,
        Coding::Gzip => GZIP.with_borrow_mut(|compressor| gzip(compressor, body)),
        Coding::Zstd => ZSTD.with_borrow_mut(|compressor| zstd(compressor.as_mut()?, body)),
    }
}

fn gzip(compressor: &mut Compress, body: &[u8]) -> Option<Vec<u8>> {
    let mut packed = Vec::with_capacity(body.len());
    packed.extend_from_slice(&GZIP_HEADER);
    compressor.reset();
    let status = compressor.compress_vec(body, &mut packed, FlushCompress::Finish);
    // Any other status means that the output buffer, as long as the body, was too small.
    if !matches!(status, Ok(Status::StreamEnd)) || packed.len() + GZIP_TRAILER >= body.len() {
        return None;
    }
    let mut crc = Crc::new();
    crc.update(body);
    packed.extend_from_slice(&crc.sum().to_le_bytes());
    packed.extend_from_slice(&crc.amount().to_le_bytes());
    packed.shrink_to_fit();
    Some(packed)
}

fn zstd(compressor: &mut zstd::bulk::Compressor<'static>, body: &[u8]) -> Option<Vec<u8>> {
    let mut packed = Vec::with_capacity(body.len());
    match compressor.compress_to_buffer(body, &mut packed) {
        Ok(len) if len < body.len() => {
            packed.shrink_to_fit();
            Some(packed)
        }
        // Not smaller than the body, or the output buffer is full, which means the same.
        Ok(_) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use proptest::prelude::*;

    use super::*;

    fn unpack(coding: Coding, packed: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        match coding {
            Coding::Identity => body.extend_from_slice(packed),
            Coding::Gzip => {
                flate2::read::GzDecoder::new(packed).read_to_end(&mut body).unwrap();
            }
            Coding::Zstd => body = zstd::stream::decode_all(packed).unwrap(),
        }
        body
    }

    #[test]
    fn random_bytes_are_not_compressed() {
        let noise: Vec<u8> =
            (0..4096_u64).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40).to_le_bytes()[0]).collect();
        for coding in [Coding::Identity, Coding::Gzip, Coding::Zstd] {
            assert_eq!(compress(coding, b""), None);
            assert_eq!(compress(coding, b"{}"), None);
            if let Some(packed) = compress(coding, &noise) {
                assert!(packed.len() < noise.len());
            }
        }
    }

    proptest! {
        #[test]
        fn a_compressed_body_decompresses_to_itself(unit in ".{1,40}", times in 100_usize..2000) {
            let body = unit.repeat(times).into_bytes();
            for coding in [Coding::Gzip, Coding::Zstd] {
                let packed = compress(coding, &body).expect("repetition shrinks");
                prop_assert!(packed.len() < body.len());
                prop_assert!(unpack(coding, &packed) == body);
            }
        }
    }
}
