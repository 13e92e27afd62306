//! Module `contract`.

use serde_json::json;

use crate::contracts::Contract;
use crate::outcome::{Failure, Outcome, Success};
use crate::reads::Reads;
use crate::row::push;

/// Contracts of a request.
const MAX_CONTRACTS: usize = 5;

/// Contracts of a page of their list: each is a file.
const MAX_LISTED: u64 = 1000;

/// The text of a contract whose source is unknown: foundry, hardhat and rotki compare it.
const NOT_VERIFIED: &str = "Contract source code not verified";

pub(crate) fn getabi(contract: Option<&Contract>) -> Outcome {
    match contract {
        Some(contract) => Ok(Success::text(&contract.abi().to_string())),
        None => Err(Failure::Text(NOT_VERIFIED.to_owned())),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the table has functions that fail")]
pub(crate) fn getsourcecode(contract: Option<&Contract>) -> Outcome {
    let unknown = || {
        json!({
            "SourceCode": "",
            "ABI": NOT_VERIFIED,
            "ContractName": "",
            "CompilerVersion": "",
            "OptimizationUsed": "",
            "Runs": "",
            "ConstructorArguments": "",
            "EVMVersion": "Default",
            "Library": "",
            "LicenseType": "Unknown",
            "Proxy": "0",
            "Implementation": "",
            "SwarmSource": "",
            "SimilarMatch": "",
        })
    };
    let row = contract.map_or_else(unknown, Contract::row);
    Ok(Success::Result(json!([row]).to_string().into_bytes()))
}

pub(crate) fn getcontractcreation(reads: &Reads<'_>) -> Outcome {
    let mut rows = Vec::new();
    for contract in reads.form.addresses("contractaddresses", MAX_CONTRACTS)? {
        let Some(creation) = reads.view.creation_of(contract)? else { continue };
        rows.push(json!({
            "contractAddress": format!("0x{}", hex::encode(contract)),
            "contractCreator": creation.creator,
            "txHash": creation.hash,
            "blockNumber": creation.height.to_string(),
            "timestamp": creation.timestamp.to_string(),
            "contractFactory": creation.factory,
            "creationBytecode": creation.code,
        }));
    }
    if rows.is_empty() {
        return Err(Failure::Message("No data found"));
    }
    Ok(Success::Result(serde_json::Value::from(rows).to_string().into_bytes()))
}

/// Blockscout's list of contracts.
pub(crate) fn listcontracts(reads: &Reads<'_>) -> Outcome {
    let window = reads.form.page(MAX_LISTED, 0..=u64::MAX)?;
    let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let page = match reads.form.get("filter") {
        None => reads.view.contracts(window.skip, window.take)?,
        Some("verified" | "1") => {
            let all = reads.verified()?.into_iter();
            all.skip(place(window.skip)).take(place(window.take)).collect()
        }
        Some(filter) => {
            return Err(Failure::Text(format!(
                "Error! Invalid filter: only verified is known, not {filter}"
            )));
        }
    };
    let mut rows = Vec::new();
    for address in page {
        let contract = reads.contract(&address)?;
        push(&mut rows, &listed(&format!("0x{}", hex::encode(address)), contract.as_ref()))?;
    }
    Ok(Success::list(rows, "No contracts found"))
}

/// A contract in the list. Those that only a server knows count as unknown: it is asked for single contracts.
fn listed(address: &str, contract: Option<&Contract>) -> serde_json::Value {
    let row = contract.map(Contract::row).unwrap_or_default();
    let member = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
    json!({
        "ABI": contract.map_or_else(|| NOT_VERIFIED.to_owned(), |contract| contract.abi().to_string()),
        "Address": address,
        "CompilerVersion": member("CompilerVersion"),
        "ContractName": member("ContractName"),
        "DecompilerVersion": "",
        "OptimizationUsed": member("OptimizationUsed"),
    })
}
