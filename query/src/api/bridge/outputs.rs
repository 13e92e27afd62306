//! Outputs of the rollup on its layer one, and what they cover.

use schema::bridge_output::{self, Outputs};
use web::call::Call;
use web::http_error::HttpError;
use web::reply::Reply;

use super::{BRIDGE_ID, BY_BRIDGE, layer_one, not_found, respond_one, run, write_each};
use crate::api::{block, tx};
use crate::bridge_record::{self, Records};
use crate::indexer::{Indexer, View};
use crate::params;
use crate::v1::{GetBridgeCoverageResponse, GetBridgeInfoResponse};

pub(super) fn info(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let view = super::view(indexer, call, &[])?;
    let records = Records::new(view.snapshot())?;
    let l1 = records.l1.unwrap_or_default();
    let response = GetBridgeInfoResponse {
        bridge_id: records.bridge(),
        l1_chain_id: records.state.l1_chain_id.clone(),
        l1_known: records.l1.is_some(),
        finalization_seconds: l1.finalization_seconds,
        disabled: l1.disabled,
        last_output: l1.last_output,
        last_final_output: records.last_final()?,
        last_withdrawal: records.state.last_withdrawal,
        last_deposit: records.state.last_deposit,
        mismatch: l1.mismatch,
    };
    Ok(Reply::json(serde_json::to_vec(&response).map_err(HttpError::internal)?))
}

pub(super) fn list(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let request = super::list(indexer, call, BY_BRIDGE)?;
    if let Some(number) = layer_one::bridge_id(call) {
        return layer_one::outputs(&request, number);
    }
    let records = Records::new(request.snapshot())?;
    let first = bridge_output::first(request.snapshot()).map_err(HttpError::internal)?;
    let all = run(first.unwrap_or(1), records.l1.as_ref().map_or(0, |l1| l1.last_output));
    request.respond("outputs", &all, None, |out, numbers| {
        write_each(out, numbers, |number| {
            let row = bridge_record::stored::<Outputs, _>(request.snapshot(), &number, number)?;
            Ok(records.output(number, &row))
        })
    })
}

pub(super) fn one(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let view = super::view(indexer, call, &[BRIDGE_ID])?;
    let number = super::number(call, "output_index")?;
    let record = if let Some(bridge) = layer_one::bridge_id(call) {
        layer_one::output(view.snapshot(), bridge, number)?
    } else {
        let records = Records::new(view.snapshot())?;
        let row = bridge_output::output(view.snapshot(), number).map_err(HttpError::internal)?;
        row.map(|row| records.output(number, &row))
    };
    respond_one("output", record, || not_found(indexer, "output", number))
}

pub(super) fn coverage(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let view = super::view(indexer, call, &[])?;
    let height = covered_height(indexer, &view, call.text("block"))?;
    let records = Records::new(view.snapshot())?;
    let output = records.covering(height)?.map(|(number, output)| records.output(number, &output));
    let response = GetBridgeCoverageResponse { height, output };
    Ok(Reply::json(serde_json::to_vec(&response).map_err(HttpError::internal)?))
}

/// The height that a text is, or that of the transaction with this hash.
fn covered_height(indexer: &Indexer, view: &View<'_>, text: &str) -> Result<u64, HttpError> {
    let invalid = || {
        HttpError::bad_request(format!(
            "[INVALID_VALUE] invalid value for block: {} (must be a height, or the hash of a transaction)",
            params::shown(text)
        ))
    };
    let not_found =
        |what: &str| HttpError::not_found(format!("[NOT_FOUND] {what} not found: {}", params::shown(text)));
    if let Ok(height) = text.parse::<u64>() {
        return match block::at(view, height)? {
            Some(_) => Ok(height),
            None => Err(not_found("block")),
        };
    }
    let hash = chain::hash::parse_hash(text).map_err(|_| invalid())?.ok_or_else(invalid)?;
    let (_, record) = tx::find(indexer, view, &hash, b"")?.ok_or_else(|| not_found("transaction"))?;
    let at: At<'_> = serde_json::from_slice(&record).map_err(HttpError::internal)?;
    at.height.parse().map_err(HttpError::internal)
}

/// The member of a transaction's record that says where it is.
#[derive(serde::Deserialize)]
struct At<'a> {
    height: &'a str,
}
