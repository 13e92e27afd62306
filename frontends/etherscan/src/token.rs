//! Module `token`.

use query::evm::TokenReply;
use query::evm::history::Standard;
use serde_json::{Value, json};

use crate::outcome::{Failure, Outcome, Success};
use crate::reads::Reads;

/// A token as Etherscan describes it.
pub(crate) fn tokeninfo(reads: &Reads<'_>) -> Outcome {
    let (contract, standard, texts) = found(reads)?;
    let row = json!({
        "contractAddress": contract,
        "tokenName": texts.name,
        "symbol": texts.symbol,
        "divisor": decimals(&texts),
        "tokenType": match standard {
            Standard::Erc20 => "ERC20",
            Standard::Erc721 => "ERC721",
            Standard::Erc1155 => "ERC1155",
        },
    });
    Ok(Success::Result(json!([row]).to_string().into_bytes()))
}

/// The same as Blockscout describes it.
pub(crate) fn gettoken(reads: &Reads<'_>) -> Outcome {
    let (contract, standard, texts) = found(reads)?;
    let row = json!({
        "cataloged": true,
        "contractAddress": contract,
        "decimals": decimals(&texts),
        "name": texts.name,
        "symbol": texts.symbol,
        "type": match standard {
            Standard::Erc20 => "ERC-20",
            Standard::Erc721 => "ERC-721",
            Standard::Erc1155 => "ERC-1155",
        },
    });
    Ok(Success::Result(row.to_string().into_bytes()))
}

fn found(reads: &Reads<'_>) -> Result<(String, Standard, TokenReply), Failure> {
    let contract = reads.form.one_address("contractaddress")?;
    let found = reads.view.token_of(contract)?;
    let (standard, texts) = found.ok_or_else(|| Failure::Text("contract address not found".to_owned()))?;
    Ok((format!("0x{}", hex::encode(contract)), standard, texts))
}

/// Decimal places of amounts; an empty text unless they are known.
pub(crate) fn decimals(texts: &TokenReply) -> Value {
    texts.known_decimals().map_or_else(String::new, |decimals| decimals.to_string()).into()
}
