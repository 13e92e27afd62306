//! Entity tags: a client that already has a body gets 304 instead of the body.
//!
//! A tag is the XXH3 hash of the body before compression, and weak, because the same tag identifies every
//! compressed form. It depends on the body alone, so replicas and restarts produce the same tag. Hashing is far cheaper
//! than anything else done to a body: 500 KB take some 30 µs.

use bytes::Bytes;
use http::HeaderValue;
use twox_hash::XxHash3_64;

/// The tag of a body: `W/"` + 16 hex digits + `"`.
#[expect(clippy::expect_used, reason = "the text says why it cannot fail")]
pub(crate) fn tag(body: &[u8]) -> HeaderValue {
    let tag = Bytes::from(format!("W/\"{:016x}\"", XxHash3_64::oneshot(body)));
    HeaderValue::from_maybe_shared(tag).expect("quotes and hex digits are a header value")
}

/// True if one of the `If-None-Match` lines contains `tag`, by the weak comparison (RFC 9110 §8.8.3.2, §13.1.2).
pub(crate) fn matches<'h>(lines: impl IntoIterator<Item = &'h HeaderValue>, tag: &HeaderValue) -> bool {
    let opaque = |tag: &'h [u8]| tag.strip_prefix(b"W/").unwrap_or(tag);
    let ours = tag.as_bytes();
    let ours = ours.strip_prefix(b"W/").unwrap_or(ours);
    lines.into_iter().any(|line| {
        // Our tags contain no comma, so the pieces of a foreign tag with a comma never equal one of ours.
        let mut tags = line.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        tags.any(|theirs| theirs == b"*" || opaque(theirs) == ours)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_is_the_published_hash() {
        // XXH3-64 of the empty input, from the reference implementation's test vectors.
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
