//! Where events are from: the block itself, or a transaction with its messages.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Group;
use crate::serde_lenient::JsonText;

/// Where events are from.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// The block itself: before its transactions, or after them.
    Block,
    /// A transaction, with its messages as the node prints them.
    Tx(&'a [&'a RawValue]),
}

impl<'a> Source<'a> {
    /// The message that a group of events is of: of one that executes others for their signers, the inner one.
    pub(crate) fn message(self, group: Group) -> Option<&'a RawValue> {
        #[derive(Deserialize)]
        struct Exec<'a> {
            #[serde(rename = "@type", borrow)]
            kind: JsonText<'a>,
            #[serde(borrow)]
            msgs: Vec<&'a RawValue>,
        }
        let Self::Tx(messages) = self else { return None };
        let at = |number: u32| usize::try_from(number).ok();
        let message: &'a RawValue = messages.get(at(group.message?)?)?;
        let Some(inner) = group.inner else { return Some(message) };
        let exec: Exec<'a> = serde_json::from_str(message.get()).ok()?;
        let is_exec = &*exec.kind == "/cosmos.authz.v1beta1.MsgExec";
        exec.msgs.get(at(inner)?).copied().filter(|_| is_exec)
    }
}
