//! Simulated service time: a node as a single-server queue with a rate of transactions and calls.
//!
//! Requests are served one after the other, in order: on a real node blocks, traces and calls share the processors, and
//! the measured time for blocks and traces together is the sum of both. A client that requests many traces therefore
//! waits longer for its blocks. The clock is virtual: a reply is due when its own work and that of all earlier
//! requests is done, so a late timer delays one reply and never the rate.

use std::num::NonZeroU32;
use std::time::Duration;

use tokio::time::Instant;

use crate::answers::Work;

/// A block, its results and its receipts are three replies.
const ANSWERS_OF_A_BLOCK: f64 = 3.0;

/// Speed of a node; the default takes no time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pace {
    /// Transactions per second, of blocks with their results and receipts.
    pub txs: Option<NonZeroU32>,
    /// Transactions traced per second.
    pub traces: Option<NonZeroU32>,
    /// Duration of an `eth_call`.
    pub call: Duration,
}

impl Pace {
    /// Duration of the work.
    pub(crate) fn time(&self, work: Work) -> Duration {
        let calls = u32::try_from(work.calls).unwrap_or(u32::MAX);
        part(work.txs, self.txs).div_f64(ANSWERS_OF_A_BLOCK)
            + part(work.traced, self.traces)
            + self.call.saturating_mul(calls)
    }
}

fn part(txs: u64, per_second: Option<NonZeroU32>) -> Duration {
    let txs = u32::try_from(txs).unwrap_or(u32::MAX);
    per_second.map_or(Duration::ZERO, |rate| Duration::from_secs(1) * txs / rate.get())
}

/// Time at which the node is idle again.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Clock(Option<Instant>);

impl Clock {
    /// Adds work that arrives at `now`; returns the time at which it is done.
    pub(crate) fn book(&mut self, now: Instant, time: Duration) -> Instant {
        let done = self.0.map_or(now, |free| free.max(now)) + time;
        self.0 = Some(done);
        done
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use bytes::Bytes;
    use http::Request;

    use super::*;
    use crate::answers::Service;
    use crate::recording::Recording;

    fn pace() -> Pace {
        Pace { txs: NonZeroU32::new(4860), traces: NonZeroU32::new(867), call: Duration::from_millis(1) }
    }

    fn get(path: &str) -> Request<Bytes> {
        Request::get(path).body(Bytes::new()).unwrap()
    }

    fn rpc(body: &str) -> Request<Bytes> {
        Request::post("/").body(Bytes::from(body.to_owned())).unwrap()
    }

    fn call(method: &str, height: u64) -> String {
        format!(r#"{{"id":1,"method":"{method}","params":["{height:#x}",{{}}]}}"#)
    }

    #[test]
    fn a_whole_chain_takes_the_time_of_its_transactions() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings/evm-scenario");
        let recording = Recording::open(&dir).unwrap();
        let txs = f64::from(u32::try_from(recording.summary().txs).unwrap());
        let (mut clock, begun) = (Clock::default(), Instant::now());
        let mut ask = |service, request: &Request<Bytes>| {
            clock.book(begun, pace().time(Work::new(&recording, service, request)))
        };
        let mut done = begun;
        for height in 1..=recording.last() {
            ask(Service::Comet, &get(&format!("/block?height={height}")));
            ask(Service::Comet, &get(&format!("/block_results?height={height}")));
            done = ask(Service::JsonRpc, &rpc(&call("eth_getBlockReceipts", height)));
        }
        let blocks = (done - begun).as_secs_f64();
        assert!((blocks - txs / 4860.0).abs() < 0.001, "{blocks}");
        for height in 1..=recording.last() {
            done = ask(Service::JsonRpc, &rpc(&call("debug_traceBlockByNumber", height)));
        }
        let traces = (done - begun).as_secs_f64() - blocks;
        assert!((traces - txs / 867.0).abs() < 0.001, "{traces}");
        let batch =
            format!("[{}]", [call("eth_call", 1), call("eth_chainId", 1), call("eth_call", 2)].join(","));
        assert_eq!(ask(Service::JsonRpc, &rpc(&batch)) - done, Duration::from_millis(2));
        for (service, request) in [
            (Service::Comet, get("/status")),
            (Service::Comet, get("/block?height=999")),
            (Service::Rest, get("/cosmos/base/tendermint/v1beta1/blocks/189")),
            (Service::JsonRpc, rpc("[]")),
        ] {
            assert_eq!(Work::new(&recording, service, &request), Work::default());
        }
    }

    #[test]
    fn requests_are_served_in_order_and_idle_time_is_not_saved() {
        let (mut clock, begun) = (Clock::default(), Instant::now());
        let second = Duration::from_secs(1);
        let trace = pace().time(Work { traced: 867, ..Work::default() });
        assert_eq!(clock.book(begun, trace), begun + second);
        assert_eq!(clock.book(begun + second / 2, Duration::ZERO), begun + second);
        assert_eq!(clock.book(begun + 10 * second, second), begun + 11 * second);
        assert_eq!(Pace::default().time(Work { txs: 9, traced: 9, calls: 9 }), Duration::ZERO);
    }
}
