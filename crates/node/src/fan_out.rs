//! Calls that go to every endpoint at once, or to a chosen endpoint first, to compare their answers.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;

use crate::candidates::Candidates;
use crate::comet::Comet;
use crate::comet::{block_call, block_of};
use crate::cosmos::Rest;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::evm::Evm;
use crate::origin::{Answer, Origin};

impl Comet {
    /// The `result` of `/block?height=` from every endpoint that may be asked, all at the same time. Distrusted
    /// endpoints are excluded as long as there is another, and endpoints under an ordered pause always.
    pub async fn block_from_all(&self, height: u64) -> Vec<(Origin, Result<Bytes, Error>)> {
        let call = &block_call(height);
        let attempt = &async |endpoint: Arc<Endpoint>| block_of(&endpoint, call).await;
        let Candidates { ready, backing_off, .. } = Candidates::new(self.pool().members().iter(), call, None);
        let asked = ready.into_iter().chain(backing_off).map(|member| async move {
            (member.origin.clone(), self.pool().send(member, call, attempt).await)
        });
        join_all(asked).await
    }

    /// The `result` of `/block?height=` from one endpoint before the others.
    pub async fn block_by(&self, height: u64, first: &Origin) -> Result<Answer, Error> {
        let call = block_call(height);
        let ask = self.pool().ask_first(&call, first, async |endpoint| block_of(&endpoint, &call).await);
        ask.await.map(Answer::from)
    }
}

impl Rest {
    /// How many servers there are.
    pub fn servers(&self) -> usize {
        self.pool().members().len()
    }
}

impl Evm {
    /// How many servers there are.
    pub fn servers(&self) -> usize {
        self.pool().members().len()
    }
}
