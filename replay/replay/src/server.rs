//! The replay node: HTTP servers of a recording, with control of tip, recording and faults at runtime.
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

use crate::Error;
use crate::answers::Service;
use crate::counters::{Call, Missing};
use crate::fault::Fault;
use crate::pace::Pace;
use crate::recording::Recording;
use crate::respond::serve;
use crate::state::{NodeState, Snapshot, until_stopped};

/// Minimum time between two blocks.
pub const MIN_BLOCK_TIME: Duration = Duration::from_millis(1);

/// Listening addresses of the services; port 0 selects a free one. Only the services of a recording are started: only
/// the JSON-RPC for an EVM chain that is not a rollup, the executor only if its replies were recorded.
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
    fn address_mut(&mut self, service: Service) -> &mut SocketAddr {
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

/// Options of a replay. The default shows everything and injects no faults.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// The height shown at first; later heights are withheld.
    pub up_to: Option<u64>,
    /// Interval at which one more height is shown, from `up_to` or the first height to the last; at least
    /// [`MIN_BLOCK_TIME`].
    pub block_every: Option<Duration>,
    /// The injected faults.
    pub faults: Vec<Fault>,
    /// Determines the affected requests; print it, so that a run can be repeated.
    pub seed: u64,
    /// Speed of its replies.
    pub pace: Pace,
}

/// A running replay node. Dropping it closes its sockets at once; [`ReplayNode::stop`] is graceful.
#[derive(Debug)]
pub struct ReplayNode {
    state: Arc<NodeState>,
    recording: Arc<Recording>,
    addresses: Addresses,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl ReplayNode {
    /// Listens on the addresses of the recording's services and answers until stopped. Call it within a tokio runtime.
    ///
    /// Fails if an address is taken or `up_to` is not a recorded height.
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
            let (listener, bound) = listen(service, *addresses.address_mut(service)).await?;
            *addresses.address_mut(service) = bound;
            tasks.spawn(serve(Arc::clone(&state), service, listener, stopped.clone()));
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

    /// `http://host:port` of the `CometBFT` RPC. No server listens there if the recording is of an EVM chain that is
    /// not a rollup.
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

    /// `http://host:port` of the bridge's executor, if its replies were recorded.
    pub fn executor_url(&self) -> Option<String> {
        self.recording().has_executor().then(|| format!("http://{}", self.addresses.executor))
    }

    /// The recording that the node was started with; [`ReplayNode::switch`] may have replaced it.
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

    /// Replaces the recording, with its tip at `shown`, as when a node is reset or restored. A request uses one of the
    /// two recordings, never both; websockets are closed, as by a restart.
    ///
    /// Fails without a change if `shown` is not one of its heights or it has a service without a listener.
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

    /// Replaces the faults. The seed and the ordinal of a request since the start still determine the affected
    /// requests.
    pub fn set_faults(&self, faults: Vec<Fault>) {
        self.change(|snapshot| snapshot.faults = faults.into());
    }

    /// Closes every connection without a reply, including the executor's, until [`ReplayNode::up`]; websockets are
    /// closed. Requests in this state are not counted and not affected by faults.
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

    /// Requests without a recorded reply.
    pub fn missing(&self) -> Missing {
        self.state.counters.missing()
    }

    /// Number of answered calls of a kind, without those that a fault left unanswered.
    pub fn call_count(&self, call: Call) -> u64 {
        self.state.counters.call_count(call)
    }

    /// Number of requests hit by a fault.
    pub fn faulted(&self) -> u64 {
        self.state.faulted()
    }

    /// Number of replies from the state of the previous height, by a `state-lag`.
    pub fn lagged(&self) -> u64 {
        self.state.counters.lagged()
    }

    /// Applies a change that keeps the shown height, and so cannot fail.
    fn change(&self, change: impl FnOnce(&mut Snapshot)) {
        let changed = self.state.change(|snapshot| {
            change(snapshot);
            Ok(())
        });
        if let Err(e) = changed {
            tracing::error!(error = %e, "changing the replay node failed");
        }
    }

    /// Closes the listeners and waits for the requests in flight, 2 seconds at most.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(e) = ended {
                tracing::error!(error = %e, "a task of the replay node failed");
            }
        }
    }
}

/// The services of a recording; every rollup has a JSON-RPC, even if only to report that there is no EVM.
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
