//! Transfers of tokens: those of an account, of a contract, or of both.

use chain::evm::transfer::{self, Transfer};
use chain::evm::{Log, transaction::Summary};
use schema::logs::Content;

use super::logs::in_order;
use super::{Rows, TxRow, Window};
use crate::evm::tx::parse;
use crate::evm::{Error, EvmView};

pub use chain::evm::transfer::Standard;

/// Which transfers are listed: those of an account, of a contract, or of both.
#[derive(Clone, Copy, Debug)]
pub struct TransfersOf {
    /// The form of the transfers.
    pub standard: Standard,
    /// The account that sends or receives.
    pub account: Option<[u8; 20]>,
    /// The contract of the token.
    pub contract: Option<[u8; 20]>,
}

/// A transfer in a list.
pub struct TransferRow<'a> {
    /// The transaction that made it.
    pub tx: &'a TxRow<'a>,
    /// The fields of the transaction.
    pub summary: Summary<'a>,
    /// The log that reports it.
    pub log: &'a Log<'a>,
    /// The transfer.
    pub transfer: &'a Transfer,
}

impl EvmView<'_> {
    /// Calls `see` with the transfers of `of`. Without a contract, those of the fee token are left out: each of them repeats the
    /// value of a transaction or of a call, or is a fee.
    ///
    /// # Errors
    /// [`Error::Off`] and [`Error::Behind`] of the index `logs`, [`Error::Pruned`], [`Error::TooLarge`]. Without a contract
    /// [`Error::Off`] and [`Error::NoCalls`] of the lane of internal transactions, which tells the fee token.
    pub fn transfers_of(
        &self,
        of: &TransfersOf,
        window: &Window,
        see: &mut dyn FnMut(&TransferRow<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let account = of.account.map(transfer::topic);
        let (events, places) = (of.standard.events(), of.standard.places());
        let mut covers = Vec::new();
        if let Some(contract) = &of.contract {
            covers.push(events.iter().map(|event| Content::Event(contract, event)).collect());
        }
        if let Some(account) = &account {
            covers.push(places.map(|place| Content::Topic(place, account)).to_vec());
        }
        if covers.is_empty() {
            return Ok(());
        }
        let leaves_fees_out = of.contract.is_none() && of.standard == Standard::Erc20;
        if leaves_fees_out && self.view.calls()?.height == 0 {
            // Fees would be listed as the account's own transfers.
            return Err(Error::Off("internal_txs"));
        }
        let left_out = if leaves_fees_out { self.fee_token()? } else { None };
        let is_wanted = |log: &Log<'_>| {
            let contract = log.address_bytes();
            contract.is_some() && contract != left_out && (of.contract.is_none() || contract == of.contract)
        };
        let is_of_account = |transfer: &Transfer| {
            of.account.is_none_or(|account| [transfer.from, transfer.to].contains(&account))
        };
        let (mut rows, mut block) = (Rows::new(window), None);
        self.scan(&covers, window, &mut |seq, record| {
            let receipt = parse(seq, record)?;
            let mut wanted = Vec::new();
            for log in in_order(&receipt.logs, window.newest_first).filter(|log| is_wanted(log)) {
                let transfers = of.standard.read(log);
                for transfer in in_order(&transfers, window.newest_first).filter(|it| is_of_account(it)) {
                    if !rows.is_full() && rows.wants() {
                        wanted.push((log, *transfer));
                    }
                }
            }
            if !wanted.is_empty() {
                self.with_row(&mut block, (seq, record), &mut |tx| {
                    let summary = tx.tx.summary();
                    wanted
                        .iter()
                        .try_for_each(|(log, transfer)| see(&TransferRow { tx, summary, log, transfer }))
                })?;
            }
            Ok(rows.is_full())
        })
    }
}
