//! A lazily reset timeout, almost free while it does not fire.
//!
//! A timer that is already set to an earlier deadline stays: it wakes once without effect and is reset then. A
//! connection that is never slow therefore touches the runtime's timer a few times a minute instead of once per
//! request.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Measures from the first poll after [`LazyTimeout::clear`].
#[derive(Default)]
pub(crate) struct LazyTimeout {
    deadline: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl LazyTimeout {
    /// The next poll starts the wait.
    pub(crate) fn clear(&mut self) {
        self.deadline = None;
    }

    /// Ready once `wait` has passed since the first poll.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, wait: Duration) -> Poll<()> {
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + wait);
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        ready!(timer.as_mut().poll(cx));
        while timer.deadline() < deadline {
            timer.as_mut().reset(deadline);
            ready!(timer.as_mut().poll(cx));
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// The time until the timeout fires.
    async fn rings_after(alarm: &mut LazyTimeout, wait: Duration) -> Duration {
        let start = Instant::now();
        poll_fn(|cx| alarm.poll(cx, wait)).await;
        start.elapsed()
    }

    #[test]
    fn it_can_be_set_to_later_and_to_earlier() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (short, long) = (Duration::from_millis(20), Duration::from_hours(1));
            let mut alarm = LazyTimeout::default();
            for before in [long, short] {
                assert!(poll_fn(|cx| Poll::Ready(alarm.poll(cx, before))).await.is_pending());
                alarm.clear();
                let took = rings_after(&mut alarm, 2 * short).await;
                assert!(took >= 2 * short && took < long, "{took:?}");
                alarm.clear();
            }
        });
    }
}
