//! The replay node: HTTP servers of a recording, with control of tip, recording and faults while they run.
//!
//! # Invariants
//!
//! - Without calls of [`ReplayNode::show`] or [`ReplayNode::switch`] the tip only grows.
//! - [`ReplayNode::stop`] lets requests in flight finish.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use web::limits::Limits;
use web::raw::serve_raw;

use crate::Error;
use crate::answers::Service;
use crate::counters::{Call, Missing};
use crate::fault::Fault;
use crate::pace::Pace;
use crate::recording::Recording;
use crate::respond::reply;
use crate::state::{NodeState, Snapshot};

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
    /// How fast it answers.
    pub pace: Pace,
}

/// A running replay node. Dropping it closes its sockets at once; [`ReplayNode::stop`] is the graceful way.
#[derive(Debug)]
pub struct ReplayNode {
    state: Arc<NodeState>,
    recording: Arc<Recording>,
    addresses: Addresses,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl ReplayNode {
    /// Listens on the addresses of the services that the recording has and answers until stopped. Call it within a tokio runtime.
    ///
    /// Fails when an address is taken or `up_to` is not a recorded height.
    pub async fn start(recording: Arc<Recording>, at: Addresses, options: Options) -> Result<Self, Error> {
        let Options { up_to, block_every, faults, seed, pace } = options;
        let shown = match (up_to, block_every) {
            (Some(height), _) => height,
            (None, Some(_)) => recording.first(),
            (None, None) => recording.last(),
        };
        let state = Arc::new(NodeState::new(Arc::clone(&recording), shown, faults, seed, pace)?);
        let (stop, stopped) = watch::channel(false);
        let (mut addresses, mut tasks) = (at, JoinSet::new());
        for service in services(&recording) {
            let (listener, bound) = listen(service, *addresses.of(service)).await?;
            *addresses.of(service) = bound;
            tasks.spawn(serve(Arc::clone(&state), service, listener, until_stopped(stopped.clone())));
        }
        if let Some(every) = block_every {
            let (state, stopped) = (Arc::clone(&state), until_stopped(stopped));
            tasks.spawn(async move {
                tokio::select! {
                    () = state.grow(every.max(MIN_BLOCK_TIME)) => {}
                    () = stopped => {}
                }
            });
        }
        Ok(Self { state, recording, addresses, stop, tasks })
    }

    /// `http://host:port` of the `CometBFT` RPC. Nothing listens there if the recording is of an EVM chain that is no
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

    /// The recording that the node was started with; [`ReplayNode::switch`] may have put another in its place.
    pub fn recording(&self) -> &Arc<Recording> {
        &self.recording
    }

    /// The recording that is played now.
    pub fn playing(&self) -> Arc<Recording> {
        self.state.snapshot().recording
    }

    /// The height of the tip.
    pub fn shown(&self) -> u64 {
        self.state.snapshot().shown
    }

    /// Sets the height of the tip, up or down; it must be a recorded height.
    pub fn show(&self, height: u64) -> Result<(), Error> {
        self.state.change(|snapshot| {
            snapshot.shown = height;
            Ok(())
        })
    }

    /// From now on plays another recording with its tip at `shown`, as a node does that was reset or restored. Requests
    /// see the one or the other, never both; websockets are closed, as when a node is started again.
    ///
    /// Fails, and changes nothing, when `shown` is not one of its heights or it has a service without a listener.
    pub fn switch(&self, recording: Arc<Recording>, shown: u64) -> Result<(), Error> {
        let started = services(&self.recording);
        if let Some(service) = services(&recording).into_iter().find(|service| !started.contains(service)) {
            let name = recording.summary().name.clone();
            return Err(Error::NoListener { name, service: service.name() });
        }
        self.state.change(|snapshot| {
            snapshot.history += 1;
            (snapshot.recording, snapshot.shown) = (recording, shown);
            Ok(())
        })
    }

    /// From now on plays these faults and no others. Which requests they hit goes on to follow from the seed and the
    /// number of the request since the start.
    pub fn set_faults(&self, faults: Vec<Fault>) {
        self.change(|snapshot| snapshot.faults = faults.into());
    }

    /// From now on every connection is closed without an answer, to the executor too, until [`ReplayNode::up`];
    /// websockets are closed. What comes in meanwhile is neither counted nor hit by faults.
    pub fn down(&self) {
        self.change(|snapshot| snapshot.down = true);
    }

    /// Answers again.
    pub fn up(&self) {
        self.change(|snapshot| snapshot.down = false);
    }

    /// A receiver of every new tip.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.state.heights()
    }

    /// Requests without a recorded answer.
    pub fn missing(&self) -> Missing {
        self.state.counters.missing()
    }

    /// Number of answered calls of a kind, without those that a fault swallowed.
    pub fn asked(&self, call: Call) -> u64 {
        self.state.counters.asked(call)
    }

    /// Number of requests hit by a fault.
    pub fn faulted(&self) -> u64 {
        self.state.faulted()
    }

    /// How many answers about state were those of the height before, by a `state-lag`.
    pub fn lagged(&self) -> u64 {
        self.state.counters.lagged()
    }

    /// A change that leaves the shown height as it is, and so cannot fail.
    fn change(&self, change: impl FnOnce(&mut Snapshot)) {
        let changed = self.state.change(|snapshot| {
            change(snapshot);
            Ok(())
        });
        if let Err(e) = changed {
            tracing::error!("the replay node cannot be changed: {e}");
        }
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
    state: Arc<NodeState>,
    service: Service,
    listener: TcpListener,
    stopped: impl Future<Output = ()>,
) {
    let limits = Limits { body: MAX_REQUEST, ..Limits::default() };
    serve_raw(listener, limits, move |request| reply(Arc::clone(&state), service, request), stopped).await;
}

/// Resolves when the node is stopped or dropped.
async fn until_stopped(mut stopped: watch::Receiver<bool>) {
    if let Err(dropped) = stopped.wait_for(|stopped| *stopped).await {
        tracing::debug!("the replay node was dropped: {dropped}");
    }
}
