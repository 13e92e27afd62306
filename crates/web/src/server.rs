//! A server with threads of its own, so that handlers that wait for a disk hold up nobody else.
//!
//! Dropping it, like stopping it, lets requests in flight finish within [`Limits::stop`].

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{JoinHandle, available_parallelism};

use tokio::net::TcpSocket;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::app::App;
use crate::limits::Limits;
use crate::serve::serve;

/// Connections that the kernel keeps until they are accepted, if it is allowed as many. The standard library's 128 are
/// fewer than come at once after a restart, and who finds no room tries again after a second.
const BACKLOG: u32 = 1024;

/// Eight, or four for each core if that is more: a thread that waits for a disk should not leave a core idle.
pub fn default_workers() -> usize {
    const LEAST: usize = 8;
    let cores = available_parallelism().map_or(1, NonZeroUsize::get);
    LEAST.max(4 * cores)
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves `app` on `listener` (port 0 is fine) with `workers` threads, one at least.
    ///
    /// # Errors
    /// If the threads cannot be started or the socket cannot be used.
    pub fn start<A: Send + Sync + 'static>(
        listener: TcpListener,
        app: Arc<App<A>>,
        limits: Limits,
        workers: usize,
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
            // A socket that listens already is told its new backlog so (POSIX `listen`).
            TcpSocket::from_std_stream(OwnedFd::from(listener).into()).listen(BACKLOG)?
        };
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("web-accept".to_owned()).spawn(move || {
            // A dropped sender is a stop as well.
            runtime.block_on(serve(listener, app, limits, async { drop(stopped.await) }));
        })?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting, and waits until the requests in flight are answered or out of time. Blocks the thread.
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
