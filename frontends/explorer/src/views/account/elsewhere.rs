//! What an account sent to other chains and got from them: packets of IBC, withdrawals and deposits of the bridge.

use maud::html;
use query::v1::{BridgeDeposit, BridgeWithdrawal, IbcPacket};
use web::call::Call;
use web::http_error::HttpError;

use super::tab::List;
use crate::explorer::Explorer;
use crate::layout::{absence, section};
use crate::listing::{Listing, is_absent};
use crate::target::{Target, encoded};
use crate::views::{bridge, packets};

/// Deposits on the tab, beside the page of withdrawals.
const DEPOSITS: &str = "25";

/// Packets that name the account.
pub(super) fn ibc(explorer: &Explorer, call: &Call<'_>, page: Target) -> Result<List, HttpError> {
    let list = format!("/indexer/ibc/v1/packets/by_account/{}", encoded(call.text("account")));
    let list = match Listing::<IbcPacket>::read(explorer, call, Target::new(list)) {
        Err(error) if is_absent(&error) => return Ok((absence(&html! {}, &error), Vec::new())),
        list => list?,
    };
    let body = html! { section.card { (packets::rows(explorer, &list.rows, true)) (list.pager(&page)) } };
    Ok((body, vec![list.request]))
}

/// Withdrawals and deposits from and to the account.
pub(super) fn over_bridge(explorer: &Explorer, call: &Call<'_>, page: Target) -> Result<List, HttpError> {
    let of = |kind: &str| {
        Target::new(format!("/indexer/bridge/v1/{kind}/by_account/{}", encoded(call.text("account"))))
    };
    let withdrawals = match Listing::<BridgeWithdrawal>::read(explorer, call, of("withdrawals")) {
        Err(error) if is_absent(&error) => return Ok((absence(&html! {}, &error), Vec::new())),
        list => list?,
    };
    let deposits = of("deposits").with("pagination.limit", DEPOSITS);
    let deposits = Listing::<BridgeDeposit>::optional(explorer, deposits)?;
    let body = html! {
        (section("Withdrawals", &html! {
            (bridge::withdrawal_rows(explorer, &withdrawals.rows))
            (withdrawals.pager(&page))
        }))
        @if let Some(deposits) = &deposits {
            (section("Newest deposits", &bridge::deposit_rows(explorer, &deposits.rows)))
        }
    };
    let requests = std::iter::once(withdrawals.request).chain(deposits.map(|list| list.request)).collect();
    Ok((body, requests))
}
