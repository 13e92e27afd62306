//! The table of metrics in `docs/src/metrics.md`, from the descriptions.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

const START: &str = "<!-- The table is made by `UPDATE_GOLDEN=1 cargo test --bin cairn metrics`. -->\n\n";

/// A recorder that collects the descriptions, as lines of a table by name.
#[derive(Default)]
struct Descriptions(Mutex<BTreeMap<String, String>>);

impl Descriptions {
    fn add(&self, key: &KeyName, kind: &str, unit: Option<Unit>, help: &str) {
        let unit = match unit {
            Some(Unit::Seconds) => "s",
            Some(Unit::Microseconds) => "µs",
            Some(Unit::Bytes) => "bytes",
            _ => "",
        };
        let line = format!("| `{}` | {kind} | {unit} | {help} |", key.as_str());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.as_str().to_owned(), line);
    }
}

impl Recorder for Descriptions {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.add(&key, "counter", unit, &description);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.add(&key, "gauge", unit, &description);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.add(&key, "histogram", unit, &description);
    }

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn the_documentation_lists_every_metric() {
    let descriptions = Descriptions::default();
    metrics::with_local_recorder(&descriptions, super::describe);
    let mut table = "| metric | type | unit | value |\n|---|---|---|---|\n".to_owned();
    for line in descriptions.0.lock().unwrap().values() {
        writeln!(table, "{line}").unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/metrics.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (before, documented) = document.split_once(START).unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, format!("{before}{START}{table}")).unwrap();
    } else {
        assert_eq!(documented, table, "UPDATE_GOLDEN=1 rewrites docs/src/metrics.md");
    }
}
