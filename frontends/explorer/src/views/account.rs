//! An account: its transactions of each kind, and its NFTs.

use chain::Account;
use maud::{Markup, html};
use web::call::Call;
use web::endpoint::{Param, Type};
use web::http_error::HttpError;

use super::rows;
use super::tx::msgs_input;
use super::tx_list::{self, TxList};
use crate::explorer::Explorer;
use crate::format::short;
use crate::layout::Page;
use crate::layout::facts;
use crate::listing::{KEY, Listing};
use crate::target::{self, Target, encoded};
use crate::view::{Response, View};
use query::v1::{Collection, EvmTx, InternalTx, Nft};

pub(crate) struct AccountPage;

/// A tab of the page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tab {
    Txs,
    Evm,
    Internal,
    Nfts,
}

impl Tab {
    const ALL: [Self; 4] = [Self::Txs, Self::Evm, Self::Internal, Self::Nfts];

    /// Its value in the query, and its label.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Txs => ("txs", "Transactions"),
            Self::Evm => ("evm", "EVM"),
            Self::Internal => ("internal", "Internal"),
            Self::Nfts => ("nfts", "NFTs"),
        }
    }

    fn is_of(self, explorer: &Explorer) -> bool {
        matches!(self, Self::Txs | Self::Nfts) || explorer.is_evm()
    }
}

impl View for AccountPage {
    const PATH: &'static str = "/account/{account}";
    const SUMMARY: &'static str = "One account.";
    const PARAMS: &'static [Param] = &[
        Param::path("account", "Bech32 or hex."),
        Param::query_or("tab", Type::OneOf(&["txs", "evm", "internal", "nfts"]), "txs", "The list."),
        tx_list::PARAMS[0],
        tx_list::PARAMS[1],
        Param::query_or("is_signer", Type::Boolean, "false", "Only transactions that the account signed."),
        Param::query("collection_addr", Type::String, "Only tokens of this collection."),
        KEY,
    ];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let address = call.text("account");
        // The API reports an address that does not parse.
        let parsed = Account::parse(address, explorer.prefix());
        let tabs = || Tab::ALL.into_iter().filter(|tab| tab.is_of(explorer));
        let wanted = call.first("tab").unwrap_or("txs");
        let tab = tabs().find(|tab| tab.names().0 == wanted).unwrap_or(Tab::Txs);
        let page = |tab: Tab| {
            let page = Target::new(target::account(address));
            if tab == Tab::Txs { page } else { page.with("tab", tab.names().0) }
        };
        let (list, request) = list(explorer, call, tab, page(tab))?;
        let body = html! {
            section.card {
                @if let Some(account) = parsed {
                    (facts(vec![
                        ("Bech32", html! { span.mono { (account.to_bech32(explorer.prefix())) } }),
                        ("Hex", html! { span.mono { (account.to_hex()) } }),
                    ]))
                }
            }
            nav.tabs aria-label="Lists of the account" {
                @for other in tabs() {
                    a href=(page(other).into_string()) aria-current=[(other == tab).then_some("page")] { (other.names().1) }
                }
            }
            (list)
        };
        let mut about = short(address);
        if tab != Tab::Txs {
            about = format!("{about} – {}", tab.names().1);
        }
        Ok(Page { title: "Account".to_owned(), about, body, requests: vec![request] }.into())
    }
}

/// The list of a tab, and its request.
fn list(explorer: &Explorer, call: &Call<'_>, tab: Tab, page: Target) -> Result<(Markup, String), HttpError> {
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
                section.card { (list.shown(explorer)) }
            };
            (body, list.txs.request)
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
                section.card { (rows::evm_txs(&txs.rows)) (txs.pager(&page)) }
            };
            (body, txs.request)
        }
        Tab::Internal => {
            let calls = Listing::<InternalTx>::read(explorer, call, of("tx/v1/evm-internal-txs"))?;
            (html! { section.card { (rows::frames(&calls.rows)) (calls.pager(&page)) } }, calls.request)
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
            (body, tokens.request)
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
