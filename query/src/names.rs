//! Names of tokens and accounts: a denom, the address of a contract or of a metadata object, and how an address is written.

use std::str::FromStr as _;

use chain::movement::{Token, metadata_of_denom};
use chain::{Account, Vm};
use schema::meta::Identity;
use schema::{Error, ledger};
use store::Snapshot;

/// The tokens that `text` may name, whether they have moved or not: a contract may be an ERC-20, an ERC-721 or an ERC-1155.
pub fn tokens(identity: &Identity, snapshot: &dyn Snapshot, text: &str) -> Result<Vec<Token>, Error> {
    // `0x` alone would be the zero address.
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).filter(|digits| !digits.is_empty());
    let contract = |digits: &str| {
        let contract = Account::from_hex_literal(&format!("0x{digits}"))?;
        <[u8; 20]>::try_from(contract.as_bytes()).ok()
    };
    Ok(match Vm::from_str(&identity.vm).unwrap_or(Vm::None) {
        Vm::Evm => {
            let denom = text.strip_prefix("evm/").map(|digits| digits.strip_prefix("0x").unwrap_or(digits));
            if let Some(contract) = denom.filter(|digits| !digits.is_empty()).and_then(contract) {
                vec![Token::Erc20(contract)]
            } else if let Some(contract) = hex.and_then(contract) {
                vec![Token::Erc20(contract), Token::Erc721(contract), Token::Erc1155(contract)]
            } else {
                let mut token = ledger::token_of_denom(snapshot, text)?;
                if token.is_none() {
                    // Events name only denoms that were made since the first block.
                    token = schema::tokens::of_denom(snapshot, text)?;
                }
                token.into_iter().collect()
            }
        }
        Vm::Move => {
            let literal = hex.map(|digits| format!("move/{digits}"));
            let object = metadata_of_denom(literal.as_deref().unwrap_or(text));
            object.into_iter().flat_map(|object| [Token::Asset(object), Token::Collection(object)]).collect()
        }
        Vm::Wasm | Vm::None => {
            let contract = Account::from_bech32(text, &identity.prefix);
            let contract = contract.and_then(|account| <[u8; 32]>::try_from(account.as_bytes()).ok());
            contract.map_or_else(
                || vec![Token::Denom(text.to_owned())],
                |contract| vec![Token::Cw20(contract), Token::Cw721(contract)],
            )
        }
    })
}

/// An account as the chain's own explorers write it.
pub fn address(identity: &Identity, account: &Account) -> String {
    if identity.vm == Vm::Evm.name() { account.to_hex() } else { account.to_bech32(&identity.prefix) }
}
