//! Transactions of each kind, and NFTs, of an account.

use maud::{Markup, html};
use query::v1::{Collection, EvmTx, InternalTx, Nft};
use web::call::Call;
use web::http_error::HttpError;

use super::tab::{List, Tab};
use crate::explorer::Explorer;
use crate::listing::Listing;
use crate::target::{Target, encoded};
use crate::views::rows;
use crate::views::tx_list::TxList;
use crate::views::txs::msgs_input;

/// The list of a tab, and its request.
pub(super) fn list(explorer: &Explorer, call: &Call<'_>, tab: Tab, page: Target) -> Result<List, HttpError> {
    let address = encoded(call.text("account"));
    let of = |kind: &str| Target::new(format!("/indexer/{kind}/by_account/{address}"));
    let collection = call.first("collection_addr");
    let signer = call.boolean("is_signer", false).then_some("true");
    Ok(match tab {
        Tab::Txs => {
            let list = of("tx/v1/txs").with_some("is_signer", signer);
            let list = TxList::read(explorer, call, list, page.with_some("is_signer", signer))?;
            let body = html! {
                form.filter method="get" {
                    input type="hidden" name="tab" value="txs";
                    (msgs_input(TxList::filter(call), &list.txs.rows))
                    (signer_input(signer.is_some(), "signed by the account"))
                    button type="submit" { "Filter" }
                }
                section.card #list data-live data-stream="/indexer/stream/v1/blocks" { (list.shown(explorer)) }
            };
            (body, vec![list.txs.request])
        }
        Tab::Evm => {
            let txs =
                Listing::<EvmTx>::read(explorer, call, of("tx/v1/evm-txs").with_some("is_signer", signer))?;
            let page = page.with_some("is_signer", signer);
            let body = html! {
                form.filter method="get" {
                    input type="hidden" name="tab" value="evm";
                    (signer_input(signer.is_some(), "sent by the account"))
                    button type="submit" { "Filter" }
                }
                section.card { (rows::evm_txs(explorer, &txs.rows)?) (txs.pager(&page)) }
            };
            (body, vec![txs.request])
        }
        Tab::Internal => {
            let calls = Listing::<InternalTx>::read(explorer, call, of("tx/v1/evm-internal-txs"))?;
            (html! { section.card { (rows::frames(&calls.rows)) (calls.pager(&page)) } }, vec![calls.request])
        }
        Tab::Nfts => {
            let list = of("nft/v1/tokens").with_some("collection_addr", collection);
            let tokens = Listing::<Nft>::read(explorer, call, list)?;
            let page = page.with_some("collection_addr", collection);
            let owned = of("nft/v1/collections").with("pagination.limit", "50");
            let owned = Listing::<Collection>::first(explorer, owned)?;
            let body = html! {
                (collection_filter(collection, &owned.rows))
                section.card { (rows::tokens(&tokens.rows, true)) (tokens.pager(&page)) }
            };
            (body, vec![tokens.request])
        }
        Tab::Balances | Tab::Transfers | Tab::Packets | Tab::Bridge | Tab::Contract => {
            return Ok((html! {}, Vec::new()));
        }
    })
}

fn signer_input(checked: bool, label: &str) -> Markup {
    html! {
        label.check { input type="checkbox" name="is_signer" value="true" checked[checked]; " only " (label) }
    }
}

/// The collections of which the account owns tokens.
fn collection_filter(chosen: Option<&str>, owned: &[Collection]) -> Markup {
    html! {
        @if !owned.is_empty() {
            form.filter method="get" {
                input type="hidden" name="tab" value="nfts";
                label { "Collection "
                    select name="collection_addr" {
                        option value="" { "All" }
                        @for of in owned {
                            option value=(of.object_addr) selected[chosen == Some(of.object_addr.as_str())] {
                                (chain::truncated(of.collection.as_ref().map_or("", |detail| &detail.name), 60))
                            }
                        }
                    }
                }
                button type="submit" { "Filter" }
            }
        }
    }
}
