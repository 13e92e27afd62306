//! Logging to standard error, above the progress bar if there is one; and the subscriber of spans.

use std::io::{self, IsTerminal as _, Write};

use anyhow::Context as _;
use indicatif::MultiProgress;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

use crate::otlp;
use crate::settings::{LogFormat, Settings, rollytics, sources};

/// Standard error, shared by the log and the progress bar so that neither tears the other.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    bars: MultiProgress,
    drawn: bool,
}

/// Replaces the log filter at run time.
pub(crate) type FilterHandle = reload::Handle<EnvFilter, Registry>;

impl Screen {
    /// True if standard error is a terminal, so that a progress bar is shown.
    pub(crate) fn is_drawn(&self) -> bool {
        self.drawn
    }

    pub(crate) fn bars(&self) -> &MultiProgress {
        &self.bars
    }
}

/// Starts the log, and warns of variables that are unknown or of rollytics. To be called once.
pub(crate) fn start(settings: &Settings) -> anyhow::Result<(Screen, FilterHandle)> {
    install(settings, None)
}

/// Starts the log of a server, and the export of spans if there is a collector. To be called once, within a tokio
/// runtime.
pub(crate) fn start_server(settings: &Settings) -> anyhow::Result<(Screen, FilterHandle)> {
    install(settings, settings.collector()?)
}

fn install(settings: &Settings, collector: Option<&str>) -> anyhow::Result<(Screen, FilterHandle)> {
    let terminal = io::stderr().is_terminal();
    let is_text = settings.log_format == LogFormat::Text;
    let screen = Screen { bars: MultiProgress::new(), drawn: terminal && is_text };
    let (filter, handle) = reload::Layer::new(EnvFilter::try_new(&settings.log).context("log filter")?);
    let writer = screen.clone();
    let lines = fmt::layer().with_writer(move || writer.clone());
    let lines = if is_text {
        lines.with_ansi(terminal).with_target(false).boxed()
    } else {
        lines.json().flatten_event(true).boxed()
    };
    tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .with(collector.map(otlp::layer).transpose()?)
        .try_init()
        .context("the log cannot be started")?;
    for variable in sources::unknown_variables() {
        tracing::warn!(variable, "environment variable without effect: cairn has no such setting");
    }
    rollytics::log(&settings.from_rollytics);
    Ok((screen, handle))
}

/// Writes above the bar.
impl Write for Screen {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let write = || io::stderr().write(line);
        let written = if self.drawn { self.bars.suspend(write) } else { write() };
        // A closed terminal loses only the log: an error here would panic in the code that logs.
        Ok(written.unwrap_or(line.len()))
    }

    fn flush(&mut self) -> io::Result<()> {
        drop(io::stderr().flush());
        Ok(())
    }
}
