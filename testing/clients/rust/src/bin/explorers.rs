//! foundry's `block-explorers` over Etherscan's API of a recorded chain.
//!
//! explorers EVM_URL KNOWN UNKNOWN, of `cairn demo --recording ../recordings/evm-fees --evm-listen ADDR --abi DIR`, where DIR has the
//! contract at KNOWN and not the one at UNKNOWN.

use std::error::Error;

use foundry_block_explorers::account::{InternalTxQueryOption, Sort, TokenQueryOption, TxListParams};
use foundry_block_explorers::errors::EtherscanError;
use foundry_block_explorers::Client;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let [url, known, unknown] = std::env::args().skip(1).collect::<Vec<_>>().try_into().map_err(|_| "usage")?;
    let api = format!("{}/api", url.trim_end_matches('/'));
    let client = Client::builder().with_url(&url)?.with_api_url(&api)?.with_api_key("any").no_proxy().build()?;
    let (known, unknown) = (known.parse()?, unknown.parse()?);

    assert!(client.contract_abi(known).await?.function("transfer").is_some());
    let not_verified = client.contract_abi(unknown).await;
    assert!(matches!(not_verified, Err(EtherscanError::ContractCodeNotVerified(_))), "{not_verified:?}");
    let not_verified = client.contract_source_code(unknown).await;
    assert!(matches!(not_verified, Err(EtherscanError::ContractCodeNotVerified(_))), "{not_verified:?}");
    let source = client.contract_source_code(known).await?;
    assert_eq!(source.items[0].contract_name, "Known");
    let creation = client.contract_creation_data(known).await?;
    let creator = creation.contract_creator;

    let sent = client.get_transactions(&creator, None).await?;
    assert!(sent.len() > 100, "{}", sent.len());
    assert!(sent.iter().any(|tx| tx.contract_address == Some(known)), "the creation is among them");
    let page = TxListParams::new(0, 99_999_999, 2, 10, Sort::Desc);
    let newest = client.get_transactions(&creator, Some(page)).await?;
    assert_eq!(newest.len(), 10);
    assert_eq!(newest[0].nonce, sent[sent.len() - 11].nonce);
    for tx in sent.iter().rev().take(20) {
        let hash = tx.hash.value().unwrap().to_string();
        let receipt = client.check_transaction_receipt_status(&hash).await;
        let execution = client.check_contract_execution_status(&hash).await;
        assert_eq!((receipt.is_ok(), execution.is_ok()), (tx.is_error == "0", tx.is_error == "0"), "{hash}");
    }
    let internal = client.get_internal_transactions(InternalTxQueryOption::ByBlockRange, None).await?;
    let all = internal.len();
    let of_tx = InternalTxQueryOption::ByTransactionHash(internal[0].hash);
    assert!(client.get_internal_transactions(of_tx, None).await?.len() <= all);
    let by = || TokenQueryOption::ByAddress(creator);
    let erc20 = client.get_erc20_token_transfer_events(by(), None).await?;
    let erc721 = client.get_erc721_token_transfer_events(by(), None).await?;
    let erc1155 = client.get_erc1155_token_transfer_events(by(), None).await?;
    assert!(!erc20.is_empty() && !erc721.is_empty() && !erc1155.is_empty());
    let of_contract = TokenQueryOption::ByContract(erc20[0].contract_address);
    assert!(!client.get_erc20_token_transfer_events(of_contract, None).await?.is_empty());

    let time: u64 = sent[50].time_stamp.parse()?;
    let block = client.get_block_by_timestamp(time, "before").await?;
    assert_eq!(block.block_number.as_number(), sent[50].block_number.as_number());
    println!("explorers: {} transactions, {all} internal calls, {} transfers", sent.len(), erc20.len());
    Ok(())
}
