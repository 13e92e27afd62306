//! Pages of an account's transactions.

use chain::Account;
use schema::block::Block;
use schema::evm_block::seconds;
use schema::evm_tx::EvmTxs;
use schema::keys::AccountKey;

use super::super::tx::{damaged, evm_seqs, parse};
use super::super::{Error, EvmView, LogLimits};
use super::involved::{Involved, Side};

/// The transactions of one block that are on a page, oldest first.
struct OfBlock {
    block: Block,
    seqs: Vec<u64>,
}

impl EvmView<'_> {
    /// `ots_searchTransactionsBefore` and `…After`: at least `size` transactions that involve `account` in the blocks before or after
    /// `height`, unless there are fewer; newest first. The block of the last one is never cut, so that a page may have more. 0 is
    /// the end of the chain on that side.
    ///
    /// Involved are accounts that its receipt names (sender, receiver, created contract, in logs too) and, once the calls of its block
    /// are indexed, all that call or are called.
    ///
    /// # Errors
    /// [`Error::TooLarge`] past the bytes of a response, which a page of a few transactions is only if one block has very many.
    pub fn search(&self, account: [u8; 20], side: Side, height: u64, size: usize) -> Result<Vec<u8>, Error> {
        let (pages, has_more) = match self.blocks_of(side, height)? {
            Some((height, seq)) => {
                let account = AccountKey(Account::from(account));
                self.page_of(Involved::new(self, account, side, height, seq)?, size)?
            }
            None => (Vec::new(), false),
        };
        let (mut txs, mut receipts) = (Vec::new(), Vec::new());
        for OfBlock { block, seqs } in &pages {
            let time = seconds(block);
            for (seq, found) in seqs.iter().zip(self.found(block, seqs)?).rev() {
                push(&mut txs, &self.json(&found)?);
                let mut receipt = Vec::new();
                self.write_receipt(&mut receipt, *seq, &found.receipt)?;
                push(&mut receipts, &receipt);
                // Within its closing brace.
                receipts.pop();
                receipts.extend_from_slice(format!(",\"timestamp\":{time}}}").as_bytes());
            }
            if txs.len() + receipts.len() > LogLimits::default().bytes {
                return Err(Error::TooLarge);
            }
        }
        let (is_first, is_last) = match side {
            Side::Before => (height == 0, !has_more),
            Side::After => (!has_more, height == 0),
        };
        let mut out = Vec::with_capacity(txs.len() + receipts.len() + 64);
        out.extend_from_slice(b"{\"txs\":[");
        out.extend_from_slice(&txs);
        out.extend_from_slice(b"],\"receipts\":[");
        out.extend_from_slice(&receipts);
        out.extend_from_slice(format!("],\"firstPage\":{is_first},\"lastPage\":{is_last}}}").as_bytes());
        Ok(out)
    }

    /// The block from which on, or below which, are the blocks of a page, with its first transaction; `None` if there are none.
    fn blocks_of(&self, side: Side, height: u64) -> Result<Option<(u64, u64)>, Error> {
        let (first, head) = (self.first(), self.head());
        if head < first {
            return Ok(None);
        }
        let start = match side {
            Side::Before if height == 0 || height > head => head + 1,
            Side::Before => height,
            Side::After if height == 0 => first,
            Side::After if height >= head => return Ok(None),
            Side::After => height + 1,
        };
        if start > head {
            let last = self.stored(head)?;
            return Ok(last.map(|block| (start, evm_seqs(&block).end)));
        }
        if start < first {
            return Err(Error::Pruned { first });
        }
        Ok(self.stored(start)?.map(|block| (start, block.first_evm_tx)))
    }

    /// The transactions of a page by block, newest block first, and whether more follow.
    fn page_of(&self, mut all: Involved<'_, '_>, size: usize) -> Result<(Vec<OfBlock>, bool), Error> {
        let (mut pages, mut count, mut has_more): (Vec<OfBlock>, _, _) = (Vec::new(), 0, false);
        while let Some(seq) = all.peek()? {
            match pages.last_mut().filter(|page| evm_seqs(&page.block).contains(&seq)) {
                Some(page) => page.seqs.push(seq),
                None if count >= size && count > 0 => {
                    has_more = true;
                    break;
                }
                None => match self.block_of_seq(seq)? {
                    Some(block) => pages.push(OfBlock { block, seqs: vec![seq] }),
                    // It is above the head.
                    None => break,
                },
            }
            count += 1;
            all.skip(seq)?;
        }
        pages.sort_by_key(|page| std::cmp::Reverse(page.block.first_evm_tx));
        for page in &mut pages {
            page.seqs.sort_unstable();
        }
        Ok((pages, has_more))
    }

    /// The block of the transaction `seq`; `None` above the head.
    fn block_of_seq(&self, seq: u64) -> Result<Option<Block>, Error> {
        let record = self.record::<EvmTxs>(seq)?;
        let height = parse(seq, &record)?.block_number();
        self.stored(height.ok_or_else(|| damaged::<EvmTxs>(seq, &"its block number"))?)
    }
}

/// Appends an element of an array.
fn push(out: &mut Vec<u8>, json: &[u8]) {
    if !out.is_empty() {
        out.push(b',');
    }
    out.extend_from_slice(json);
}
