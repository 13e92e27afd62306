//! Texts that contracts choose, on their way into the index: without NULs, and bounded.
//!
//! A NUL shows nothing and stops some clients; the deployed server takes it out as well (indexing §8.2).

/// The longest name or URI that an answer may hold, in bytes. A longer one is taken for no answer, so that no contract
/// fills the index by one look-up.
pub(crate) const MAX_TEXT: usize = 256 * 1024;

/// The text without NULs.
pub(crate) fn without_nuls(text: &str) -> String {
    text.replace('\0', "")
}

/// The text without NULs, if it is no longer than [`MAX_TEXT`].
pub(crate) fn bounded(text: &str) -> Option<String> {
    (text.len() <= MAX_TEXT).then(|| without_nuls(text))
}
