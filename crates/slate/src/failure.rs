//! SlateDB's errors as [`store::Error`].

use std::error::Error as _;
use std::path::Path;

use slatedb::{CloseReason, ErrorKind, object_store};
use store::Error;

/// The operation in errors of opening a database.
pub(crate) const OPENING: &str = "opening";

/// Maps an error of the operation `doing` on the database `name`.
pub(crate) fn map(name: &Path, doing: &'static str, error: &slatedb::Error) -> Error {
    let path = name.to_owned();
    match error.kind() {
        ErrorKind::Invalid if doing == OPENING => Error::NotADatabase {
            path,
            found: describe(error),
            remedy: "if another version of this program wrote it, index it again or copy it from a directory (`cairn db copy`)",
        },
        ErrorKind::Closed(CloseReason::Fenced) => Error::Fenced { path },
        // The collector removed a file of an old view: the next view does not have it.
        ErrorKind::Data if is_missing(error) => remote(name, doing, &describe(error)),
        ErrorKind::Data => Error::Damaged { path, table: None, file: None, message: describe(error) },
        _ => remote(name, doing, &describe(error)),
    }
}

/// A failure of the object store, or of the way to it.
pub(crate) fn remote(name: &Path, doing: &'static str, message: &str) -> Error {
    Error::Remote { path: name.to_owned(), doing, message: message.to_owned() }
}

/// The error with its causes, each once.
pub(crate) fn describe(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

fn is_missing(error: &slatedb::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(object_store::Error::NotFound { .. }) = cause.downcast_ref() {
            return true;
        }
        source = cause.source();
    }
    false
}
