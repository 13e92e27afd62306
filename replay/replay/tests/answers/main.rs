//! Replies of a replay node compared with the recordings: every form of request, and every error.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails there and then.

mod comet;
mod deviations;
mod executor;
mod json_rpc;
mod lag;
mod logs;
mod module_states;
mod rest;
mod searches;

use std::path::Path;
use std::sync::LazyLock;

use bytes::Bytes;
use http::Request;
use replay::Recording;
use replay::answers::{Deviations, HttpReply, Service, View, answer};
use replay::counters::Counters;
use serde_json::Value;

static EVM: LazyLock<Chain> = LazyLock::new(|| Chain::open("evm-scenario"));
static WASM: LazyLock<Chain> = LazyLock::new(|| Chain::open("wasm-scenario"));
static MOVE: LazyLock<Chain> = LazyLock::new(|| Chain::open("move-scenario"));
static L1: LazyLock<Chain> = LazyLock::new(|| Chain::open("l1-l2/l1"));
static L2: LazyLock<Chain> = LazyLock::new(|| Chain::open("l1-l2/l2"));
static BRIDGE_L1: LazyLock<Chain> = LazyLock::new(|| Chain::open("bridge-cases/l1"));
static BRIDGE_L2: LazyLock<Chain> = LazyLock::new(|| Chain::open("bridge-cases/l2"));

/// A recording with helpers for requests.
struct Chain {
    recording: Recording,
}

/// A reply, the number of missed requests, and the number of replies from the previous state.
struct Reply {
    status: u16,
    text: String,
    missing: u64,
    lagged: u64,
}

impl Chain {
    fn open(name: &str) -> Self {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings").join(name);
        Self { recording: Recording::open(&dir).unwrap() }
    }

    fn ask_at(&self, shown: u64, service: Service, request: Request<Bytes>) -> Reply {
        self.ask_deviationed(Deviations::default(), shown, service, &request)
    }

    fn ask_deviationed(
        &self,
        deviations: Deviations,
        shown: u64,
        service: Service,
        request: &Request<Bytes>,
    ) -> Reply {
        self.ask_seeing(deviations, &[], shown, service, request)
    }

    /// Sends a request while the state of these heights lags.
    fn ask_lagging(&self, lagging: &[u64], service: Service, request: &Request<Bytes>) -> Reply {
        self.ask_seeing(Deviations::default(), lagging, self.recording.last(), service, request)
    }

    fn ask_seeing(
        &self,
        deviations: Deviations,
        lagging: &[u64],
        shown: u64,
        service: Service,
        request: &Request<Bytes>,
    ) -> Reply {
        let counters = Counters::default();
        let view = View { recording: &self.recording, shown, deviations, lagging, counters: &counters };
        let HttpReply { status, body } = answer(service, view, request);
        let text = String::from_utf8(body.to_vec()).unwrap();
        let (missing, lagged) = (counters.missing().count, counters.lagged());
        Reply { status: status.as_u16(), text, missing, lagged }
    }

    fn ask(&self, service: Service, request: Request<Bytes>) -> Reply {
        self.ask_at(self.recording.last(), service, request)
    }

    fn get(&self, service: Service, path: &str) -> Reply {
        self.ask(service, get(path))
    }

    fn post(&self, service: Service, path: &str, body: &str) -> Reply {
        self.ask(service, post(path, body))
    }
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }

    /// The `result` of a successful reply.
    fn result(&self) -> Value {
        assert_eq!((self.status, self.missing), (200, 0), "{}", self.text);
        self.json().get("result").unwrap_or_else(|| panic!("no result: {}", self.text)).clone()
    }
}

/// The exchanges of a recorded chain after its last height, line by line.
fn extra(name: &str) -> Vec<Value> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings").join(name);
    let file = std::fs::File::open(dir.join("extra.ndjson.zst")).unwrap();
    let text = String::from_utf8(zstd::decode_all(file).unwrap()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn get(path: &str) -> Request<Bytes> {
    Request::get(path).body(Bytes::new()).unwrap()
}

fn post(path: &str, body: &str) -> Request<Bytes> {
    Request::post(path).body(Bytes::from(body.to_owned())).unwrap()
}

fn parse(raw: &[u8]) -> Value {
    serde_json::from_slice(raw).unwrap()
}
