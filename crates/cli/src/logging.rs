//! Logging to standard error, above the progress bar if there is one.

use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::sync::Arc;

use anyhow::Context as _;
use indicatif::MultiProgress;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::settings::log::{Log, LogFormat};

/// Standard error, shared by the log and the progress bar so that neither tears the other.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    bars: MultiProgress,
    drawn: bool,
}

/// Replaces the log filter at run time.
#[derive(Clone)]
pub(crate) struct FilterHandle(Arc<dyn Fn(EnvFilter) -> anyhow::Result<()> + Send + Sync>);

impl FilterHandle {
    /// Applies `filter`.
    pub(crate) fn set(&self, filter: &str) -> anyhow::Result<()> {
        (self.0)(EnvFilter::try_new(filter).context("log filter")?)
    }
}

impl fmt::Debug for FilterHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterHandle").finish_non_exhaustive()
    }
}

impl Screen {
    /// Whether standard error is a terminal, so that a progress bar is shown.
    pub(crate) fn is_drawn(&self) -> bool {
        self.drawn
    }

    pub(crate) fn bars(&self) -> &MultiProgress {
        &self.bars
    }
}

/// Starts the log. To be called once.
pub(crate) fn start(log: &Log) -> anyhow::Result<(Screen, FilterHandle)> {
    let terminal = io::stderr().is_terminal();
    let screen = Screen { bars: MultiProgress::new(), drawn: terminal && log.format == LogFormat::Text };
    let filter = EnvFilter::try_new(&log.filter).context("log filter")?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(screen.clone());
    let (started, filter_handle): (_, Arc<dyn Fn(EnvFilter) -> anyhow::Result<()> + Send + Sync>) =
        match log.format {
            LogFormat::Text => {
                let builder = builder.with_ansi(terminal).with_target(false).with_filter_reloading();
                let handle = builder.reload_handle();
                (builder.try_init(), Arc::new(move |filter| Ok(handle.reload(filter)?)))
            }
            LogFormat::Json => {
                let builder = builder.json().flatten_event(true).with_filter_reloading();
                let handle = builder.reload_handle();
                (builder.try_init(), Arc::new(move |filter| Ok(handle.reload(filter)?)))
            }
        };
    started.map_err(|error| anyhow::anyhow!("the log cannot be started: {error}"))?;
    Ok((screen, FilterHandle(filter_handle)))
}

impl<'a> MakeWriter<'a> for Screen {
    type Writer = LogWriter<'a>;

    fn make_writer(&'a self) -> LogWriter<'a> {
        LogWriter(self)
    }
}

/// Writes above the bar.
pub(crate) struct LogWriter<'a>(&'a Screen);

impl Write for LogWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let write = || io::stderr().write(line);
        let written = if self.0.drawn { self.0.bars.suspend(write) } else { write() };
        // A closed terminal loses the log and nothing else: an error here would panic in the code that logs.
        Ok(written.unwrap_or(line.len()))
    }

    fn flush(&mut self) -> io::Result<()> {
        drop(io::stderr().flush());
        Ok(())
    }
}
