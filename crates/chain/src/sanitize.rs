//! Sanitization of texts that contracts choose: removes NULs and limits the length.
//!
//! A NUL is invisible and breaks some clients; the deployed server removes it as well.

/// The longest accepted name or URI, in bytes. A longer one counts as missing, so that no contract can fill the index
/// with one query.
pub(crate) const MAX_TEXT: usize = 256 * 1024;

/// The text without NULs.
pub(crate) fn without_nuls(text: &str) -> String {
    text.replace('\0', "")
}

/// The text without NULs, if it is no longer than [`MAX_TEXT`].
pub(crate) fn bounded(text: &str) -> Option<String> {
    (text.len() <= MAX_TEXT).then(|| without_nuls(text))
}
