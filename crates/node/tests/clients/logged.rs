//! Capture of log lines.

use std::io::{Result, Write};
use std::sync::{Arc, Mutex};

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// The lines of the log.
#[derive(Clone, Default)]
pub(crate) struct Captured(Arc<Mutex<Vec<u8>>>);

/// Captures this thread's log until the guard is dropped.
pub(crate) fn logged() -> (Captured, DefaultGuard) {
    let reported = Captured::default();
    let subscriber = tracing_subscriber::fmt().with_writer(reported.clone()).with_ansi(false).finish();
    (reported, tracing::subscriber::set_default(subscriber))
}

impl Captured {
    pub(crate) fn lines(&self) -> Vec<String> {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap().lines().map(str::to_owned).collect()
    }
}

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Captured {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
