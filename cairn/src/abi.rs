//! `cairn abi`: the folder of known contracts, from which Etherscan's API has their ABIs and sources.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use chain::evm::transaction::EthChain;
use etherscan::Contracts;
use node::{Limits, Sourcify, Url};

use crate::output;
use crate::runtime;

/// Maximum bytes of a contract with its sources.
const MAX_CONTRACT: usize = 16 << 20;

/// The commands of `cairn abi`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Abi {
    /// Adds a contract: its ABI, the artifact of a compiler, or a contract of Sourcify's API
    Add {
        /// The folder (setting `abi`), created if it does not exist
        #[arg(long, value_name = "DIR")]
        abi: PathBuf,
        /// The contract's address, 0x and 40 hex digits
        #[arg(value_parser = address)]
        address: [u8; 20],
        /// The file
        file: PathBuf,
    },
    /// Lists the contracts
    List {
        /// The folder (setting `abi`)
        #[arg(long, value_name = "DIR")]
        abi: PathBuf,
    },
    /// Adds contracts that are verified on a server of Sourcify
    Pull {
        /// The folder (setting `abi`), created if it does not exist
        #[arg(long, value_name = "DIR")]
        abi: PathBuf,
        /// The chain's id
        #[arg(long, value_name = "ID")]
        chain_id: String,
        /// The server
        #[arg(long, value_name = "URL", default_value = "https://sourcify.dev/server")]
        from: Url,
        /// Addresses of contracts, 0x and 40 hex digits
        #[arg(required = true, value_parser = address)]
        addresses: Vec<[u8; 20]>,
    },
}

fn address(text: &str) -> Result<[u8; 20], String> {
    let mut bytes = [0; 20];
    let digits = text.strip_prefix("0x").filter(|digits| hex::decode_to_slice(digits, &mut bytes).is_ok());
    digits.map(|_| bytes).ok_or_else(|| "expected 0x and 40 hex digits".to_owned())
}

pub(crate) fn run(command: Abi) -> anyhow::Result<()> {
    match command {
        Abi::Add { abi, address, file } => Ok(Contracts::new(abi).add(&address, &file)?),
        Abi::List { abi } => list(&Contracts::new(abi)),
        Abi::Pull { abi, chain_id, from, addresses } => {
            let id = EthChain::new(&chain_id, "").id;
            runtime::block_on(pull(&Contracts::new(abi), id, from, &addresses))
        }
    }
}

fn list(contracts: &Contracts) -> anyhow::Result<()> {
    let mut text = String::new();
    for (address, contract) in contracts.list()? {
        match contract {
            Ok(contract) => writeln!(text, "{address} {}", contract.name())?,
            Err(error) => writeln!(text, "{address} unusable: {error}")?,
        }
    }
    Ok(output::print(&text)?)
}

async fn pull(contracts: &Contracts, id: u64, from: Url, addresses: &[[u8; 20]]) -> anyhow::Result<()> {
    let server = Sourcify::new(from, Limits { body: MAX_CONTRACT, ..Limits::default() })?;
    let (mut text, mut missing) = (String::new(), 0);
    for address in addresses {
        let shown = hex::encode(address);
        if let Some(contract) = server.contract(id, address).await? {
            contracts.add_bytes(address, &contract).with_context(|| format!("the contract 0x{shown}"))?;
            writeln!(text, "0x{shown} added")?;
        } else {
            missing += 1;
            writeln!(text, "0x{shown} not verified there")?;
        }
    }
    output::print(&text)?;
    anyhow::ensure!(
        missing == 0,
        "{missing} of {} contracts are not verified on chain {id}",
        addresses.len()
    );
    Ok(())
}
