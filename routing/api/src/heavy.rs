//! Requests that need much processor time: long lists, and searches for thousands of routes.
//!
//! # Invariants
//!
//! * No server thread runs them, so that a route waits for none.
//! * As many run at once as leave a processor free; the others wait without a thread, and not for ever.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;
use web::http_error::HttpError;

use crate::errors;

/// How long a request waits until others are done. Clients wait 10 s.
const WAIT: Duration = Duration::from_secs(5);

/// The limit of heavy requests.
pub(crate) struct Heavy {
    slots: Arc<Semaphore>,
    wait: Duration,
}

impl Default for Heavy {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self { slots: Arc::new(Semaphore::new((processors / 2).max(1))), wait: WAIT }
    }
}

impl Heavy {
    /// Runs a job on a thread of its own once there is a place.
    ///
    /// # Errors
    /// 503 if there is none for too long; 500 if the job panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, HttpError> {
        let slot = timeout(self.wait, Arc::clone(&self.slots).acquire_owned()).await;
        let Ok(Ok(slot)) = slot else { return Err(errors::busy("too many long lists are being made")) };
        let job = move || {
            // A client that goes away does not free the processor.
            let _slot = slot;
            job()
        };
        tokio::task::spawn_blocking(job).await.map_err(errors::internal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_job_waits_for_a_place_and_not_for_ever() {
        let heavy = Heavy { slots: Arc::new(Semaphore::new(1)), wait: Duration::from_millis(100) };
        assert_eq!(heavy.run(|| 1).await.unwrap(), 1);
        let held = Arc::clone(&heavy.slots).acquire_owned().await.unwrap();
        let refused = heavy.run(|| 2).await.unwrap_err();
        assert_eq!(refused.status(), http::StatusCode::SERVICE_UNAVAILABLE);
        drop(held);
        assert_eq!(heavy.run(|| 3).await.unwrap(), 3);
        assert_eq!(heavy.run(|| -> u32 { panic!("a bug") }).await.unwrap_err().status(), 500);
        assert_eq!(heavy.run(|| 4).await.unwrap(), 4, "a panic frees the place");
    }
}
