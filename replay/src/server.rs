//! The replay node: the servers of a recording, the height that they show, and the faults that they play.
//!
//! Must hold: the shown height never leaves the recording and, left to itself, only grows; stopping answers what was
//! asked before.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use web::limits::Limits;
use web::raw::{RawReply, serve_raw};

use crate::Error;
use crate::answers::{Answer, Service, View, answer};
use crate::fault::{Effects, Fault, effects};
use crate::recording::Recording;
use crate::tally::{Call, Missing, Tally};

/// The largest request body: a batch of 1,000 calls fits ten times over (go-ethereum's own limit).
const MAX_REQUEST: usize = 5 << 20;

/// The shortest time between two blocks.
pub const MIN_BLOCK_TIME: Duration = Duration::from_millis(1);

/// Where the services listen; port 0 takes a free one. Only those that a recording has are started: the JSON-RPC alone
/// for an EVM chain that is no rollup, the executor where answers of one were recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// `CometBFT` RPC.
    pub comet: SocketAddr,
    /// The REST gateway.
    pub rest: SocketAddr,
    /// The EVM's JSON-RPC.
    pub json_rpc: SocketAddr,
    /// The REST of the bridge's executor.
    pub executor: SocketAddr,
}

impl Addresses {
    fn of(&mut self, service: Service) -> &mut SocketAddr {
        match service {
            Service::Comet => &mut self.comet,
            Service::Rest => &mut self.rest,
            Service::JsonRpc => &mut self.json_rpc,
            Service::Executor => &mut self.executor,
        }
    }
}

impl Default for Addresses {
    /// Free ports of this machine's loopback address.
    fn default() -> Self {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self { comet: any, rest: any, json_rpc: any, executor: any }
    }
}

/// How a recording is played. The default shows everything and plays no faults.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// The height that is shown at first; heights above it are held back.
    pub up_to: Option<u64>,
    /// Shows one height more each time, from `up_to` or the first height, until the last; at least
    /// [`MIN_BLOCK_TIME`].
    pub block_every: Option<Duration>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// Which requests the faults hit; print it, so that a run can be repeated.
    pub seed: u64,
}

/// A running replay node. Dropping it closes its sockets at once; [`ReplayNode::stop`] is the graceful way.
#[derive(Debug)]
pub struct ReplayNode {
    stage: Arc<Stage>,
    addresses: Addresses,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

/// What the servers share.
#[derive(Debug)]
struct Stage {
    recording: Arc<Recording>,
    shown: watch::Sender<u64>,
    down: AtomicBool,
    faults: Vec<Fault>,
    seed: u64,
    requests: [AtomicU64; Service::ALL.len()],
    faulted: AtomicU64,
    tally: Tally,
}

impl ReplayNode {
    /// Listens on the addresses of the services that the recording has and answers until stopped. Call it within a tokio runtime.
    ///
    /// Fails when an address is taken or `up_to` is not a recorded height.
    pub async fn start(recording: Arc<Recording>, at: Addresses, options: Options) -> Result<Self, Error> {
        let Options { up_to, block_every, faults, seed } = options;
        let shown = match (up_to, block_every) {
            (Some(height), _) => height,
            (None, Some(_)) => recording.first(),
            (None, None) => recording.last(),
        };
        recorded(&recording, shown)?;
        let (stop, stopped) = watch::channel(false);
        let (shown, tally) = (watch::Sender::new(shown), Tally::default());
        let (requests, faulted) = (Default::default(), AtomicU64::default());
        let down = AtomicBool::default();
        let stage = Arc::new(Stage { recording, shown, down, faults, seed, requests, faulted, tally });
        let (mut addresses, mut tasks) = (at, JoinSet::new());
        for service in services(&stage.recording) {
            let (listener, bound) = listen(service, *addresses.of(service)).await?;
            *addresses.of(service) = bound;
            tasks.spawn(serve(Arc::clone(&stage), service, listener, told(stopped.clone())));
        }
        if let Some(every) = block_every {
            let (stage, stopped) = (Arc::clone(&stage), told(stopped));
            tasks.spawn(async move {
                tokio::select! {
                    () = stage.grow(every.max(MIN_BLOCK_TIME)) => {}
                    () = stopped => {}
                }
            });
        }
        Ok(Self { stage, addresses, stop, tasks })
    }

    /// `http://host:port` of the `CometBFT` RPC. Nobody listens there if the recording is of an EVM chain that is no
    /// rollup.
    pub fn comet_url(&self) -> String {
        format!("http://{}", self.addresses.comet)
    }

    /// `http://host:port` of the REST gateway, as for [`ReplayNode::comet_url`].
    pub fn rest_url(&self) -> String {
        format!("http://{}", self.addresses.rest)
    }

    /// `http://host:port` of the EVM's JSON-RPC.
    pub fn json_rpc_url(&self) -> String {
        format!("http://{}", self.addresses.json_rpc)
    }

    /// `http://host:port` of the bridge's executor, if answers of one were recorded.
    pub fn executor_url(&self) -> Option<String> {
        self.recording().has_executor().then(|| format!("http://{}", self.addresses.executor))
    }

    /// The recording that is played.
    pub fn recording(&self) -> &Arc<Recording> {
        &self.stage.recording
    }

    /// The height of the tip.
    pub fn shown(&self) -> u64 {
        *self.stage.shown.borrow()
    }

    /// Sets the height of the tip, up or down; it must be a recorded height.
    pub fn show(&self, height: u64) -> Result<(), Error> {
        recorded(&self.stage.recording, height)?;
        self.stage.shown.send_replace(height);
        Ok(())
    }

    /// From now on every connection is closed without an answer, to the executor too, until [`ReplayNode::up`]. What
    /// comes in meanwhile is neither counted nor hit by faults.
    pub fn down(&self) {
        self.stage.down.store(true, Relaxed);
    }

    /// Answers again.
    pub fn up(&self) {
        self.stage.down.store(false, Relaxed);
    }

    /// Tells of every change of the shown height.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.stage.shown.subscribe()
    }

    /// The questions that the recording had no answer to.
    pub fn missing(&self) -> Missing {
        self.stage.tally.missing()
    }

    /// How often a kind of call was answered; calls that a fault swallowed do not count.
    pub fn asked(&self, call: Call) -> u64 {
        self.stage.tally.asked(call)
    }

    /// How many requests were hit by a fault.
    pub fn faulted(&self) -> u64 {
        self.stage.faulted.load(Relaxed)
    }

    /// Closes the listeners and waits for the requests in flight, 2 seconds at most.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(e) = ended {
                tracing::error!("a task of the replay node failed: {e}");
            }
        }
    }
}

impl Stage {
    /// Shows one height more each time until the last.
    async fn grow(&self, every: Duration) {
        let mut ticks = interval_at(Instant::now() + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let last = self.recording.last();
        while *self.shown.borrow() < last {
            ticks.tick().await;
            self.shown.send_modify(|shown| *shown = (*shown + 1).min(last));
        }
    }

    async fn reply(self: Arc<Self>, service: Service, request: Request<Bytes>) -> RawReply {
        if self.down.load(Relaxed) {
            return RawReply::HangUp;
        }
        let ordinal = self.requests[service as usize].fetch_add(1, Relaxed);
        let effects = effects(&self.faults, self.seed, service, ordinal);
        if effects != Effects::default() {
            self.faulted.fetch_add(1, Relaxed);
        }
        if !effects.delay.is_zero() {
            sleep(effects.delay).await;
        }
        if effects.hang_up {
            return RawReply::HangUp;
        }
        if let Some((status, after)) = effects.status {
            return refusal(status, after).into();
        }
        let shown = self.shown.borrow().saturating_sub(effects.stale_by).max(self.recording.first());
        let view = View {
            recording: &self.recording,
            shown,
            null_receipts: effects.null_receipts,
            no_results: effects.no_results,
            tally: &self.tally,
        };
        let answer = answer(service, view, &request);
        let half = answer.body.len() / 2;
        let response = response(service, answer);
        if effects.cut { RawReply::Cut(response, half) } else { response.into() }
    }
}

fn recorded(recording: &Recording, height: u64) -> Result<(), Error> {
    let (first, last) = (recording.first(), recording.last());
    if (first..=last).contains(&height) { Ok(()) } else { Err(Error::NoSuchHeight { height, first, last }) }
}

/// The services that a recording has; every rollup has a JSON-RPC, be it to say that there is no EVM.
fn services(recording: &Recording) -> Vec<Service> {
    let has = |service: &Service| match service {
        Service::Comet | Service::Rest => !recording.is_ethereum(),
        Service::JsonRpc => true,
        Service::Executor => recording.has_executor(),
    };
    Service::ALL.into_iter().filter(has).collect()
}

async fn listen(service: Service, address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let error = |source| Error::Listen { service: service.name(), address, source };
    let listener = TcpListener::bind(address).await.map_err(error)?;
    let bound = listener.local_addr().map_err(error)?;
    Ok((listener, bound))
}

async fn serve(
    stage: Arc<Stage>,
    service: Service,
    listener: TcpListener,
    stopped: impl Future<Output = ()>,
) {
    let limits = Limits { body: MAX_REQUEST, ..Limits::default() };
    serve_raw(listener, limits, move |request| Arc::clone(&stage).reply(service, request), stopped).await;
}

/// Resolves when the node is stopped or dropped.
async fn told(mut stopped: watch::Receiver<bool>) {
    if let Err(dropped) = stopped.wait_for(|stopped| *stopped).await {
        tracing::debug!("the replay node was dropped: {dropped}");
    }
}

fn response(service: Service, answer: Answer) -> Response<Bytes> {
    let Answer { status, body } = answer;
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let is_text = service == Service::Executor && !status.is_success();
    let kind = if is_text { "text/plain; charset=utf-8" } else { "application/json" };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        let allowed = match service {
            Service::JsonRpc => "POST",
            Service::Executor => "GET",
            Service::Comet | Service::Rest => "GET, POST",
        };
        headers.insert(ALLOW, HeaderValue::from_static(allowed));
    }
    response
}

/// What a proxy in front of a node says: text, not the node's JSON.
fn refusal(status: StatusCode, after: Option<u64>) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(b"a fault played by the replay node\n"));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    if let Some(seconds) = after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
