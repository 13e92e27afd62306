//! Export of spans to an OpenTelemetry collector: a sample of the traces, sent in batches by OTLP over gRPC. Without the
//! cargo feature `otlp` there is no exporter.
//!
//! Requests, commits and requests to nodes are spans with the target `otlp`, of the level that no log shows by default.
//!
//! # Invariants
//! * No other span and no log line is exported.
//! * A collector that does not answer costs the queue of the batches (2,048 spans, later ones are dropped), and at most
//!   half a second at a stop.

#[cfg(feature = "otlp")]
pub(crate) use enabled::{layer, stop};

#[cfg(not(feature = "otlp"))]
pub(crate) use disabled::{layer, stop};

#[cfg(not(feature = "otlp"))]
mod disabled {
    use tracing_subscriber::layer::Identity;

    /// [`crate::settings::Settings::collector`] refuses a collector.
    #[expect(clippy::unnecessary_wraps, reason = "the signature of the exporter's")]
    pub(crate) fn layer(_collector: &str) -> anyhow::Result<Identity> {
        Ok(Identity::new())
    }

    pub(crate) fn stop() {}
}

#[cfg(feature = "otlp")]
mod enabled {
    use std::sync::OnceLock;
    use std::time::Duration;

    use anyhow::Context as _;
    use opentelemetry::KeyValue;
    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
    use opentelemetry_sdk::Resource;
    use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
    use tracing::Subscriber;
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::layer::Layer;
    use tracing_subscriber::registry::LookupSpan;

    use crate::serve::VERSION;

    /// Share of the traces that are exported: one in twenty, because an index that catches up makes thousands a second.
    const RATIO: f64 = 0.05;

    /// Replaces the sampler, with its argument in `OTEL_TRACES_SAMPLER_ARG` (OpenTelemetry's specification).
    const SAMPLER: &str = "OTEL_TRACES_SAMPLER";

    /// Longest export of the last batch.
    const STOP: Duration = Duration::from_millis(500);

    static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

    /// The layer that exports spans to `collector`. Call it once, within a tokio runtime.
    pub(crate) fn layer<S>(collector: &str) -> anyhow::Result<impl Layer<S> + use<S>>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let exporter = SpanExporter::builder().with_tonic().with_endpoint(collector).build();
        let exporter = exporter.with_context(|| format!("exporting spans to {collector}"))?;
        let about = Resource::builder()
            .with_service_name("cairn")
            .with_attribute(KeyValue::new("service.version", VERSION))
            .build();
        let mut provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(about);
        if std::env::var_os(SAMPLER).is_none() {
            provider =
                provider.with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(RATIO))));
        }
        let provider = PROVIDER.get_or_init(|| provider.build());
        let spans = tracing_opentelemetry::layer().with_tracer(provider.tracer("cairn"));
        Ok(spans
            .with_location(false)
            .with_threads(false)
            .with_filter(Targets::new().with_target("otlp", LevelFilter::TRACE)))
    }

    /// Exports the spans of the last moments.
    pub(crate) fn stop() {
        if let Some(provider) = PROVIDER.get()
            && let Err(error) = provider.shutdown_with_timeout(STOP)
        {
            tracing::warn!(%error, "the last spans were not exported");
        }
    }
}
