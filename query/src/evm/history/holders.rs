//! Holders of tokens, by the rich list.

use chain::U256;
use schema::meta::{self, RichLane};
use schema::rich::{Address, Erc20s, Holders};
use store::{Message, ranked, table};

use crate::evm::{Error, EvmView};

/// Blocks that the rich list may be behind.
const LAG: u64 = 16;

const RICH_LIST: &str = "rich_list";

/// The holders of a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenHolders {
    /// Their number.
    pub count: u64,
    /// True if there are others, or amounts are not known.
    pub is_incomplete: bool,
    /// Those that are asked for, with their amounts, the largest first.
    pub page: Vec<(Address, U256)>,
}

impl EvmView<'_> {
    /// The holders of a token, and `take` of them behind the first `skip`. None of a contract that is no known token.
    ///
    /// # Errors
    /// [`Error::Off`] and [`Error::Behind`] of the rich list.
    pub fn holders_of(&self, contract: Address, skip: u64, take: u64) -> Result<TokenHolders, Error> {
        let snapshot = self.view.snapshot();
        let lane: RichLane = meta::read(snapshot)?.unwrap_or_default();
        if lane.height == 0 || self.view.no_rich_list()?.is_some() {
            return Err(Error::Off(RICH_LIST));
        }
        if lane.height.saturating_add(LAG) < self.head {
            let (from, height) = (self.first(), lane.height);
            return Err(Error::Behind { index: RICH_LIST, from, height, is_written: true });
        }
        let Some(Message(token)) = table::read::<Erc20s>(snapshot, &contract)? else {
            return Ok(TokenHolders::default());
        };
        let count = ranked::len::<Holders>(snapshot, &contract)?;
        let end = count.saturating_sub(skip);
        let rows = ranked::slice::<Holders>(snapshot, &contract, end.saturating_sub(take)..end)?;
        let rows = rows.into_iter().rev();
        let page = rows.map(|((amount, account), ())| (account, U256::from_be_bytes(amount))).collect();
        Ok(TokenHolders { count, is_incomplete: !token.complete || token.silent, page })
    }
}
