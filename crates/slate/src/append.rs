//! Appends to rows, as SlateDB's merge operator.

use slatedb::bytes::{Bytes, BytesMut};
use slatedb::{MergeOperator, MergeOperatorError};

/// The value of a row is its bytes so far and those that were appended.
pub(crate) struct Append;

impl MergeOperator for Append {
    fn merge(&self, key: &Bytes, before: Option<Bytes>, bytes: Bytes) -> Result<Bytes, MergeOperatorError> {
        self.merge_batch(key, before, &[bytes])
    }

    fn merge_batch(
        &self,
        _: &Bytes,
        before: Option<Bytes>,
        appended: &[Bytes],
    ) -> Result<Bytes, MergeOperatorError> {
        if let (None, [bytes]) = (&before, appended) {
            return Ok(bytes.clone());
        }
        let len = before.iter().chain(appended).map(Bytes::len).sum();
        let mut value = BytesMut::with_capacity(len);
        before.iter().chain(appended).for_each(|bytes| value.extend_from_slice(bytes));
        Ok(value.freeze())
    }
}
