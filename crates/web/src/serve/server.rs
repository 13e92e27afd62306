//! A server with its own tokio runtime, so that handlers that block on the disk do not delay other tasks.
//!
//! Dropping or stopping it drains requests in flight for at most [`Limits::stop`].

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{JoinHandle, available_parallelism};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::net::TcpSocket;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::app::App;
use crate::limits::Limits;
use crate::mounts::{Apps, Mounts};
use crate::serve::serve;

/// The listen backlog, capped by the kernel's own limit. The standard library's 128 is too small for the reconnects
/// after a restart: a client that finds the queue full retries after a second.
const BACKLOG: u32 = 1024;

/// Time for work in the pool of expensive requests that is left after the drain. Beyond it the work goes on without the
/// server until the process ends.
const LEFT_WORK: Duration = Duration::from_millis(200);

/// Eight, or four per core if that is more, so that threads waiting for the disk leave no core idle.
pub fn default_workers() -> usize {
    const MIN: usize = 8;
    let cores = available_parallelism().map_or(1, NonZeroUsize::get);
    MIN.max(4 * cores)
}

/// Resolves when a server is stopped.
pub type Stopped = BoxFuture<'static, ()>;

/// A running server.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves `app` on `listener` (port 0 is allowed) with `workers` threads, at least one.
    ///
    /// # Errors
    /// If the threads cannot be started or the socket cannot be used.
    pub fn start<A: Send + Sync + 'static>(
        listener: TcpListener,
        app: Arc<App<A>>,
        limits: Limits,
        workers: usize,
    ) -> io::Result<Self> {
        Self::run(listener, workers, |listener, stopped| serve(listener, Apps::One(app), limits, stopped))
    }

    /// As [`Server::start`], with several apps.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_mounts<A: Send + Sync + 'static>(
        listener: TcpListener,
        mounts: Mounts<A>,
        limits: Limits,
        workers: usize,
    ) -> io::Result<Self> {
        Self::run(listener, workers, |listener, stopped| {
            serve(listener, Apps::Several(Box::new(mounts)), limits, stopped)
        })
    }

    /// As [`Server::start`], with another protocol: `serve` serves until its second argument resolves, and then drains.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn run<F: Future<Output = ()>>(
        listener: TcpListener,
        workers: usize,
        serve: impl FnOnce(tokio::net::TcpListener, Stopped) -> F + Send + 'static,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers.max(1))
            .thread_name("web")
            .enable_all()
            .build()?;
        let listener = {
            let _inside = runtime.enter();
            // A second `listen` on a listening socket sets its backlog (POSIX).
            TcpSocket::from_std_stream(OwnedFd::from(listener).into()).listen(BACKLOG)?
        };
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("web-accept".to_owned()).spawn(move || {
            // A dropped sender is a stop as well.
            runtime.block_on(serve(listener, Box::pin(async { drop(stopped.await) })));
            // Expensive work is not interrupted, and the response has no client any more.
            runtime.shutdown_timeout(LEFT_WORK);
        })?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// The address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting and drains the requests in flight, up to the deadline. Blocks the thread.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of the server panicked");
        }
    }
}
