//! Sanitization of texts that contracts choose: removes NULs and limits the length.
//!
//! A NUL is invisible and breaks some clients; the deployed server removes it as well.

/// The longest accepted name or URI, in bytes, so that no contract can fill the index with one query.
pub(crate) const MAX_TEXT: usize = 256 * 1024;

/// A name or a URI that the node returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// The text, without NULs; empty if there is none.
    Plain(String),
    /// There is one, longer than 256 KiB.
    TooLong,
}

impl Text {
    /// The text if it is not too long.
    pub fn plain(self) -> Option<String> {
        match self {
            Self::Plain(text) => Some(text),
            Self::TooLong => None,
        }
    }
}

/// The text without NULs.
pub(crate) fn without_nuls(text: &str) -> String {
    text.replace('\0', "")
}

/// The text without NULs, if it is no longer than [`MAX_TEXT`].
pub(crate) fn bounded(text: &str) -> Text {
    if text.len() <= MAX_TEXT { Text::Plain(without_nuls(text)) } else { Text::TooLong }
}
