//! Modules `block` and `transaction`.

use query::evm::history::Closest;
use serde_json::json;

use crate::outcome::{Failure, Outcome, Success};
use crate::reads::Reads;

fn text(text: &str) -> Failure {
    Failure::Text(text.to_owned())
}

pub(crate) fn getblocknobytime(reads: &Reads<'_>) -> Outcome {
    let time = reads.form.number("timestamp")?.ok_or_else(|| text("Error! Missing parameter timestamp"))?;
    let side = match reads.form.get("closest") {
        None | Some("before") => Closest::Before,
        Some("after") => Closest::After,
        Some(_) => return Err(text("Error! Invalid closest: before or after is expected")),
    };
    let height = reads.view.height_at(time, side)?.ok_or_else(|| text("Error! No closest block found"))?;
    Ok(Success::text(&height.to_string()))
}

pub(crate) fn getstatus(reads: &Reads<'_>) -> Outcome {
    let hash = reads.form.hash("txhash")?.ok_or_else(|| text("Error! Invalid transaction hash"))?;
    let (succeeded, reason) =
        reads.view.outcome(&hash)?.ok_or_else(|| text("Error! Transaction not found"))?;
    let flag = if succeeded { "0" } else { "1" };
    Ok(Success::Result(json!({ "isError": flag, "errDescription": reason }).to_string().into_bytes()))
}

/// Of an unknown transaction the status is empty, as on Etherscan.
pub(crate) fn gettxreceiptstatus(reads: &Reads<'_>) -> Outcome {
    let hash = reads.form.hash("txhash")?.ok_or_else(|| text("Error! Invalid transaction hash"))?;
    let status = match reads.view.outcome(&hash)? {
        None => "",
        Some((true, _)) => "1",
        Some((false, _)) => "0",
    };
    Ok(Success::Result(json!({ "status": status }).to_string().into_bytes()))
}

/// There are no keys, and so no credits of one.
pub(crate) fn getapilimit(_: &Reads<'_>) -> Outcome {
    Err(text(
        "Error! There are no API keys and no credits here: a client that is too fast gets HTTP status 429",
    ))
}
