//! HTTP response bodies, read into one buffer.
//!
//! # Invariants
//!
//! * At most `limit` bytes are kept, whatever length the server announces and whether or not it compresses.
//! * A body of one frame is not copied, any other is copied once.

use std::io::Read as _;

use bytes::{Bytes, BytesMut};
use flate2::read::GzDecoder;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

/// Failure to read a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// It ended early or its encoding is damaged.
    Cut { got: usize, reason: String },
    /// It is larger than the limit.
    TooLarge,
}

/// Memory reserved for an announced length; a larger body grows as it arrives.
const TRUSTED: usize = 8 << 20;

/// The whole body as it came.
pub(crate) async fn collect(mut body: Incoming, limit: usize) -> Result<Bytes, Broken> {
    let announced = body.size_hint().exact().map(usize::try_from);
    let announced = announced.transpose().map_err(|_| Broken::TooLarge)?;
    if announced.is_some_and(|length| length > limit) {
        return Err(Broken::TooLarge);
    }
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| Broken::Cut { got: whole.len(), reason: reason(&e) })?;
        let Ok(piece) = frame.into_data() else { continue };
        if announced == Some(piece.len()) {
            return Ok(piece);
        }
        if piece.len() > limit - whole.len() {
            return Err(Broken::TooLarge);
        }
        if whole.is_empty() {
            whole.reserve(announced.unwrap_or_default().min(TRUSTED));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

/// The text inside a gzip body.
pub(crate) fn gunzip(packed: &[u8], limit: usize) -> Result<Bytes, Broken> {
    let mut plain = Vec::new();
    // One byte more than allowed tells "exactly the limit" from "more".
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let outcome = GzDecoder::new(packed).take(most).read_to_end(&mut plain);
    outcome.map_err(|e| Broken::Cut { got: packed.len(), reason: format!("damaged gzip: {e}") })?;
    if plain.len() > limit { Err(Broken::TooLarge) } else { Ok(plain.into()) }
}

/// An error with its causes: the client library hides the system's words in the last one.
pub(crate) fn reason(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::read::GzEncoder;

    use super::*;

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        GzEncoder::new(plain, Compression::default()).read_to_end(&mut packed).unwrap();
        packed
    }

    #[test]
    fn gzip_is_unpacked_up_to_the_limit_and_not_a_byte_further() {
        let packed = gzip(&vec![b'a'; 1_000_000]);
        assert!(packed.len() < 10_000);
        assert_eq!(gunzip(&packed, 1_000_000).unwrap().len(), 1_000_000);
        assert_eq!(gunzip(&packed, 999_999), Err(Broken::TooLarge));
    }

    #[test]
    fn a_gzip_body_that_was_cut_is_an_error_and_not_a_short_answer() {
        let packed = gzip(b"{\"result\":[]}");
        for end in 0..packed.len() {
            let cut = gunzip(&packed[..end], 1_000);
            assert!(matches!(cut, Err(Broken::Cut { .. })), "{end}: {cut:?}");
        }
    }
}
