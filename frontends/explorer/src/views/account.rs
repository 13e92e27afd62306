//! An account: what it holds, what it did, and who created it if it is a contract.

mod elsewhere;
mod money;
mod records;
mod tab;

use chain::{Account, Timestamp};
use maud::{Markup, html};
use query::evm::history::CreationRow;
use web::call::Call;
use web::endpoint::{Param, Type};
use web::http_error::HttpError;

use self::tab::Tab;
use super::tx_list;
use crate::explorer::Explorer;
use crate::format::{block, copied, count, none, short, text, whole_account, whole_time};
use crate::layout::{Page, facts};
use crate::listing::KEY;
use crate::target::{self, Target};
use crate::view::{Response, View};

pub(crate) struct AccountPage;

impl View for AccountPage {
    const PATH: &'static str = "/account/{account}";
    const SUMMARY: &'static str = "One account.";
    const PARAMS: &'static [Param] = &[
        Param::path("account", "Bech32 or hex."),
        Param::query_or("tab", Type::OneOf(Tab::NAMES), "txs", "The list."),
        tx_list::PARAMS[0],
        tx_list::PARAMS[1],
        Param::query_or("is_signer", Type::Boolean, "false", "Only transactions that the account signed."),
        Param::query("collection_addr", Type::String, "Only tokens of this collection."),
        Param::query("day", Type::String, "Balances at the end of this day (UTC), as 2026-03-14."),
        Param::query("height", Type::String, "Balances after this block."),
        Param::query("direction", Type::String, "Only transfers in, out, or to itself."),
        Param::query("kind", Type::String, "Only transfers of this kind."),
        Param::query("token", Type::String, "Only transfers of this token."),
        Param::query("with", Type::String, "Only transfers from and to this account."),
        Param::query("from", Type::String, "Only transfers from this day on (UTC)."),
        Param::query("until", Type::String, "Only transfers until this day (UTC)."),
        KEY,
    ];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let address = call.text("account");
        // The API reports an address that does not parse.
        let parsed = Account::parse(address, explorer.prefix());
        let contract = parsed.as_ref().and_then(|account| <[u8; 20]>::try_from(account.as_bytes()).ok());
        let known = contract.and_then(|contract| explorer.contract(&contract));
        let created = contract.map(|contract| explorer.creation(contract)).transpose()?.flatten();
        let is_contract = known.is_some() || created.is_some();
        let tabs = || Tab::ALL.into_iter().filter(|tab| tab.is_of(explorer, is_contract));
        let wanted = call.first("tab").unwrap_or("txs");
        let tab = tabs().find(|tab| tab.names().0 == wanted).unwrap_or(Tab::Txs);
        let page = |tab: Tab| match tab {
            Tab::Txs => Target::new(target::account(address)),
            Tab::Contract => {
                Target::new(target::contract(&parsed.as_ref().map_or_else(String::new, Account::to_hex)))
            }
            _ => Target::new(target::account(address)).with("tab", tab.names().0),
        };
        let (list, mut requests) = match tab {
            Tab::Balances => money::balances(explorer, call, page(tab))?,
            Tab::Transfers => money::transfers(explorer, call, page(tab))?,
            Tab::Packets => elsewhere::ibc(explorer, call, page(tab))?,
            Tab::Bridge => elsewhere::over_bridge(explorer, call, page(tab))?,
            Tab::Contract => return Ok(Response::Redirect(page(tab).into_string())),
            Tab::Txs | Tab::Evm | Tab::Internal | Tab::Nfts => records::list(explorer, call, tab, page(tab))?,
        };
        let mut balances = html! {};
        if tab == Tab::Txs
            && let Some((shown, asked)) =
                money::overview(explorer, address, &page(Tab::Balances).into_string())?
        {
            balances = shown;
            requests.extend(asked);
        }
        let name = known.as_ref().and_then(|known| known.as_ref().ok()?["name"].as_str()).unwrap_or_default();
        let body = html! {
            section.card {
                @if let Some(account) = &parsed { (about(explorer, account, name, created)?) }
            }
            (balances)
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
        Ok(Page { title: "Account".to_owned(), about, body, requests }.into())
    }
}

/// Its spellings, how much it did, and of a contract who created it.
fn about(
    explorer: &Explorer,
    account: &Account,
    name: &str,
    created: Option<CreationRow>,
) -> Result<Markup, HttpError> {
    let bech32 = account.to_bech32(explorer.prefix());
    let transfers = money::number_of_transfers(explorer, &bech32)?;
    let mut all = vec![
        ("Name", text(name)),
        ("Bech32", copied(&bech32)),
        ("Hex", copied(&account.to_hex())),
        ("Token transfers", transfers.map_or_else(none, |number| html! { (count(number)) })),
    ];
    if let Some(created) = created {
        let nanos =
            i64::try_from(created.timestamp).ok().and_then(|seconds| seconds.checked_mul(1_000_000_000));
        let time = Timestamp::from_unix_nanos(nanos.unwrap_or_default()).seconds();
        let bytes = created.code.trim_start_matches("0x").len() / 2;
        all.extend([
            ("Contract created by", whole_account(&created.creator)),
            ("By the contract", whole_account(&created.factory)),
            ("In the transaction", crate::format::tx(&created.hash)),
            ("Created", html! { (whole_time(&time)) ", block " (block(created.height)) }),
            (
                "Creation code",
                if bytes == 0 {
                    none()
                } else {
                    html! { (count(bytes)) " bytes" }
                },
            ),
        ]);
    }
    Ok(facts(all))
}
