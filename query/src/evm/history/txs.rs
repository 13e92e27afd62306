//! The transactions that an account sent or received.

use chain::Account;
use schema::evm_tx::{AccountEvmTxs, EvmTxs};
use schema::keys::{AccountKey, Role};
use schema::parties::{PARTIES, RecipientEvmTxs};
use web::http_error::HttpError;

use super::{Bounds, TxRow, Window, first_of};
use crate::array::{Array, Stored};
use crate::evm::{Error, EvmView};

/// Receipts that are in memory at once.
const AT_ONCE: usize = 128;

/// The reason in the record of a failed transaction.
#[derive(serde::Deserialize)]
struct Failed {
    #[serde(default)]
    raw_log: String,
}

/// Which transactions of an account are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parties {
    /// Those of both kinds.
    #[default]
    All,
    /// Those that it sent.
    Sent,
    /// Those that another account sent to it, and the one that created it.
    Received,
}

impl EvmView<'_> {
    /// Calls `see` with the transactions that `account` sent, that another one sent to it, and the one that created it, or with a
    /// part of these.
    ///
    /// # Errors
    /// [`Error::Off`] and [`Error::Behind`] of the index `parties`, [`Error::Pruned`], [`Error::TooLarge`].
    pub fn txs_of(
        &self,
        account: [u8; 20],
        parties: Parties,
        window: &Window,
        see: &mut dyn FnMut(&TxRow<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let heights = self.clamped(&window.heights)?;
        self.require(&PARTIES, *heights.start(), *heights.end())?;
        let (run, owner) = (self.seqs_of(&heights)?, AccountKey(Account::from(account)));
        let lists = self.party_lists(owner, parties)?;
        let seqs = first_of(&lists, &run, window.skip.saturating_add(window.take), window.newest_first)?;
        let skip = usize::try_from(window.skip).unwrap_or(usize::MAX).min(seqs.len());
        self.each_row(&seqs[skip..], see)
    }

    fn party_lists(
        &self,
        owner: AccountKey,
        parties: Parties,
    ) -> Result<Vec<Box<dyn Array<Row = u64> + '_>>, Error> {
        let (snapshot, mut lists) = (self.view.snapshot(), Vec::<Box<dyn Array<Row = u64> + '_>>::new());
        if parties != Parties::Received {
            lists.push(Box::new(Stored::<AccountEvmTxs>::all(snapshot, (owner, Role::Signer))?));
        }
        if parties != Parties::Sent {
            lists.push(Box::new(Stored::<RecipientEvmTxs>::all(snapshot, owner)?));
        }
        Ok(lists)
    }

    /// Calls `see` with each of the transactions `seqs`.
    fn each_row(
        &self,
        seqs: &[u64],
        see: &mut dyn FnMut(&TxRow<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (mut block, bounds) = (None, Bounds::new());
        for seqs in seqs.chunks(AT_ONCE) {
            let mut receipts = Vec::with_capacity(seqs.len());
            self.each_of::<EvmTxs>(seqs, |_, record| {
                receipts.push(record.to_vec());
                Ok(())
            })?;
            for (seq, record) in seqs.iter().zip(&receipts) {
                bounds.spend(1)?;
                self.with_row(&mut block, (*seq, record), see)?;
            }
        }
        Ok(())
    }

    /// Calls `see` with the transaction `hash`; not at all if there is none.
    pub fn tx_of(
        &self,
        hash: &[u8; 32],
        see: &mut dyn FnMut(&TxRow<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let found = crate::api::evm_tx::find(self.indexer, &self.view, hash)?;
        let Some((seq, record)) = found else { return Ok(()) };
        if super::parse(seq, &record)?.block_number().is_some_and(|height| height > self.head) {
            return Ok(());
        }
        self.with_row(&mut None, (seq, &record), see)
    }

    /// The status of a transaction and, if it failed, the reason that the chain gave. `None` if there is none.
    pub fn outcome(&self, hash: &[u8; 32]) -> Result<Option<(bool, String)>, Error> {
        let Some(receipt) = self.receipt(hash)? else { return Ok(None) };
        let succeeded = super::parse(0, &receipt)?.status == "0x1";
        if succeeded {
            return Ok(Some((true, String::new())));
        }
        let cosmos = self.cosmos_hash(hash)?.unwrap_or_default();
        let record = crate::api::tx::find(self.indexer, &self.view, &cosmos, b"")?;
        let failed = record.map(|(_, record)| serde_json::from_slice::<Failed>(&record));
        let failed = failed.transpose().map_err(|error| Error::Failed(HttpError::internal(error)))?;
        Ok(Some((false, failed.map(|failed| failed.raw_log).unwrap_or_default())))
    }
}
