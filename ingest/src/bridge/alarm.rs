//! Reports of outputs that were deleted, and of such as differ from what follows from the index.

use schema::bridge_output::Applied;

use crate::meter::Event;

/// Logs and counts what replies of the layer one have changed.
pub(crate) fn report(applied: &Applied) {
    if let (Some(first), Some(last)) = (applied.deleted.first(), applied.deleted.last()) {
        tracing::warn!(first, last, "outputs of the bridge were deleted on the layer one");
    }
    for output in &applied.differing {
        Event::OutputMismatch.count();
        tracing::error!(output, "output of the bridge differs from the index");
    }
}
