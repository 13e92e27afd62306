//! Module `contract`.

use serde_json::json;

use crate::contracts::Contract;
use crate::outcome::{Failure, Outcome, Success};
use crate::reads::Reads;

/// Contracts of a request.
const MAX_CONTRACTS: usize = 5;

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
