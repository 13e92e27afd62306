//! Holders of tokens, and tokens of an account, by the rich list.

use chain::U256;
use chain::evm::coin::NATIVE;
use schema::meta::{self, RichLane};
use schema::rich::{self, Address, Balances, Erc20s, Holders};
use schema::tokens::TokenReply;
use store::{Message, Order, ranked, table};

use super::{Bounds, Rows, Standard};
use crate::evm::{Error, EvmView};

/// Tokens of an account that are read at once.
const AT_ONCE: usize = 256;

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

/// A token that an account holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldToken {
    /// Its contract.
    pub contract: Address,
    /// The amount, which is not 0.
    pub amount: U256,
    /// What is known of it.
    pub texts: TokenReply,
}

impl EvmView<'_> {
    /// The tokens that `account` holds, `take` of them behind the first `skip`, in the order of their contracts. Without the fee token,
    /// which is the native currency, and without tokens whose contracts tell no balances: logs alone prove none.
    ///
    /// # Errors
    /// [`Error::Off`] and [`Error::Behind`] of the rich list, [`Error::NoCalls`] without calls that tell the fee token, and
    /// [`Error::TooLarge`] if too many tokens must be read.
    pub fn tokens_of(&self, account: Address, skip: u64, take: u64) -> Result<Vec<HeldToken>, Error> {
        self.require_rich_list()?;
        self.view.require_account_tokens()?;
        let (snapshot, bounds, mut wanted) = (self.view.snapshot(), Bounds::new(), Rows { skip, take });
        let fee_token = self.fee_token()?;
        let (mut found, mut last) = (Vec::new(), None);
        while !wanted.is_full() {
            let contracts = rich::tokens_of(snapshot, &account, last.as_ref(), Order::Asc, AT_ONCE)?;
            let Some(end) = contracts.last() else { break };
            last = Some(*end);
            bounds.spend(contracts.len() as u64)?;
            let keys: Vec<_> = contracts.iter().map(|contract| (*contract, account)).collect();
            let amounts = table::read_many::<Balances>(snapshot, &keys)?;
            let states = table::read_many::<Erc20s>(snapshot, &contracts)?;
            for ((contract, amount), state) in contracts.into_iter().zip(amounts).zip(states) {
                let amount = U256::try_from_be_slice(&amount.unwrap_or_default()).unwrap_or_default();
                let is_silent = state.is_some_and(|Message(token)| token.silent);
                let is_native = fee_token == Some(contract) || contract == NATIVE;
                let is_listed = !amount.is_zero() && !is_silent && !is_native;
                if is_listed && !wanted.is_full() && wanted.wants() {
                    let texts = self.token_texts(Standard::Erc20, contract)?;
                    found.push(HeldToken { contract, amount, texts });
                }
            }
        }
        Ok(found)
    }

    fn require_rich_list(&self) -> Result<(), Error> {
        let lane: RichLane = meta::read(self.view.snapshot())?.unwrap_or_default();
        if lane.height == 0 || self.view.no_rich_list()?.is_some() {
            return Err(Error::Off(RICH_LIST));
        }
        if lane.height.saturating_add(LAG) < self.head {
            let (from, height) = (self.first(), lane.height);
            return Err(Error::Behind { index: RICH_LIST, from, height, is_written: true });
        }
        Ok(())
    }

    /// The holders of a token, and `take` of them behind the first `skip`. None of a contract that is no known token.
    ///
    /// # Errors
    /// [`Error::Off`] and [`Error::Behind`] of the rich list.
    pub fn holders_of(&self, contract: Address, skip: u64, take: u64) -> Result<TokenHolders, Error> {
        self.require_rich_list()?;
        let snapshot = self.view.snapshot();
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
