//! The node's replies about the tokens of contracts, for lists of their transfers.

use chain::movement::Token;
use schema::movement::TokenKey;
use schema::tokens::{self, TOKENS, TokenReply, Tokens};
use store::Message;

use super::history::Standard;
use super::{Error, EvmView};

impl EvmView<'_> {
    /// Name, symbol and decimals of a contract's token; all empty if the index `tokens` is not stored.
    pub fn token_texts(&self, standard: Standard, contract: [u8; 20]) -> Result<TokenReply, Error> {
        Ok(tokens::reply(self.view.snapshot(), &token(standard, contract))?.unwrap_or_default())
    }

    /// The token that a contract was first seen with; `None` if it has none.
    ///
    /// # Errors
    /// [`Error::Off`] and [`Error::Behind`] of the index `tokens`.
    pub fn token_of(&self, contract: [u8; 20]) -> Result<Option<(Standard, TokenReply)>, Error> {
        self.require(&TOKENS, self.first(), self.head())?;
        let snapshot = self.view.snapshot();
        let mut first = None;
        for standard in [Standard::Erc20, Standard::Erc721, Standard::Erc1155] {
            let seen = store::table::read::<Tokens>(snapshot, &TokenKey(token(standard, contract)))?;
            if let Some(Message(seen)) = seen
                && first.is_none_or(|(number, _)| seen.number < number)
            {
                first = Some((seen.number, standard));
            }
        }
        first.map(|(_, standard)| Ok((standard, self.token_texts(standard, contract)?))).transpose()
    }
}

pub(super) fn token(standard: Standard, contract: [u8; 20]) -> Token {
    match standard {
        Standard::Erc20 => Token::Erc20(contract),
        Standard::Erc721 => Token::Erc721(contract),
        Standard::Erc1155 => Token::Erc1155(contract),
    }
}
