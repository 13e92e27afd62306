//! Places of the requests of one client that run at the same time.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::limits::Limits;

/// The turns of one client.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Places of its cheap requests.
    pub(crate) light: Arc<Semaphore>,
    /// Places of its expensive requests.
    pub(crate) heavy: Arc<Semaphore>,
}

impl Turns {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        let half = |places: usize| Arc::new(Semaphore::new((places / 2).max(1)));
        Arc::new(Self { light: half(limits.light), heavy: half(limits.heavy) })
    }
}
