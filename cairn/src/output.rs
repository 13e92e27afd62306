//! Standard output: the results of commands. Everything else goes to the log.

use std::io::{self, Write as _};

/// Prints `text`. A closed pipe, as in `cairn openapi | head`, is not an error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}
