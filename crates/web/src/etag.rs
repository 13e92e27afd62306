//! Entity tags: a client that already has a body gets 304 instead of the body.
//!
//! A tag is the XXH3 hash of the body before compression, and weak, because the same tag stands for every
//! compressed form. It depends on the body alone, so replicas and restarts produce the same tag. Hashing is far cheaper
//! than anything else done to a body: 500 KB take some 30 µs.

use bytes::{BufMut, BytesMut};
use http::HeaderValue;
use twox_hash::XxHash3_64;

/// `W/"` + 16 hex digits + `"`.
const TAG_LEN: usize = 20;

/// The tag of a body.
#[expect(clippy::expect_used, reason = "the text says why it cannot fail")]
pub(crate) fn tag(body: &[u8]) -> HeaderValue {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let mut tag = BytesMut::with_capacity(TAG_LEN);
    tag.put_slice(b"W/\"");
    for byte in XxHash3_64::oneshot(body).to_be_bytes() {
        tag.put_u8(DIGITS[usize::from(byte >> 4)]);
        tag.put_u8(DIGITS[usize::from(byte & 15)]);
    }
    tag.put_u8(b'"');
    HeaderValue::from_maybe_shared(tag.freeze()).expect("quotes and hex digits are a header value")
}

/// Whether one of the `If-None-Match` lines names `tag`, by the weak comparison (RFC 9110 §8.8.3.2, §13.1.2).
pub(crate) fn matches<'h>(lines: impl IntoIterator<Item = &'h HeaderValue>, tag: &HeaderValue) -> bool {
    let opaque = |tag: &'h [u8]| tag.strip_prefix(b"W/").unwrap_or(tag);
    let ours = tag.as_bytes();
    let ours = ours.strip_prefix(b"W/").unwrap_or(ours);
    lines.into_iter().any(|line| {
        // Our tags hold no comma, so a foreign one that does is cut into pieces that equal none of ours.
        let mut tags = line.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        tags.any(|theirs| theirs == b"*" || opaque(theirs) == ours)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_is_the_published_hash() {
        // XXH3-64 of nothing, from the reference implementation's test vectors.
        assert_eq!(tag(b""), "W/\"2d06800538d394c2\"");
        assert_ne!(tag(b"{}"), tag(b"[]"));
    }

    #[test]
    fn lists_stars_and_strong_forms_match() {
        let ours = tag(b"");
        let matching = |line: &'static str| matches([&HeaderValue::from_static(line)], &ours);
        assert!(matching("W/\"2d06800538d394c2\""));
        assert!(matching("\"2d06800538d394c2\""));
        assert!(matching("\"a\", W/\"b,c\" ,W/\"2d06800538d394c2\""));
        assert!(matching(" *"));
        assert!(!matching("2d06800538d394c2"));
        assert!(!matching("\"2d06800538d394c3\""));
        assert!(!matching(""));
        assert!(!matches([], &ours));
    }
}
