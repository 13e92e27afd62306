//! The rich list: holders of an ERC-20 by amount.

use chain::{Account, U256};
use schema::balances::BALANCES;
use schema::rich::{Address, Denoms, DenomsFolded, Erc20s, Holders};
use serde_json::{Map, Value};
use store::key::Text;
use store::{Message, Order, Snapshot, Table as _};
use web::call::Call;
use web::endpoint::{Endpoint, Param};
use web::http_error::HttpError;
use web::reply::Reply;

use super::holders::{HolderRow, current, is_incomplete};
use super::ledger::named_tokens;
use super::{ListRequest, Tag};
use crate::array::set::Set;
use crate::cursor::{Row, Space, Start};
use crate::indexer::Indexer;
use crate::nft_record;
use crate::page_writer::PageWriter;
use crate::params;
use crate::v1::ListHoldersResponse;

/// Prefix of the denoms of ERC-20s without another denom; the contract's address in hex follows.
const EVM: &str = "evm/";

const PAGES: Param = Param::Group(&params::pages(Space::Holders));

const TAG: Tag = Tag("Rich List");

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[TAG.list::<ListHoldersResponse>(
    "/indexer/richlist/v1/{denom}",
    "Holders of a token, by amount.",
    &[
        Param::path(
            "denom",
            "A contract's address (0x..., evm/... or evm/0x...) or a denom in any case, with its slashes \
             percent-encoded (evm%2F...).",
        ),
        PAGES,
    ],
    holders,
)];

/// A holder by amount, then by address.
type Item = ([u8; 32], Address);

impl Row for Item {
    /// The deployed server pages by offset only.
    fn deployed(_: Space, _: &Map<String, Value>) -> Option<Start<Self>> {
        None
    }
}

fn holders(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let denom = call.text("denom");
    if !indexer.is_evm() {
        return holders_of_bank(indexer, call, denom);
    }
    let request = ListRequest::new(indexer, call, Space::Holders)?;
    let Some(contract) = resolve(request.snapshot(), denom)? else {
        let off = request
            .view
            .no_rich_list()?
            .map(|why| format!("; the rich list is off: {why}"))
            .unwrap_or_default();
        return Err(HttpError::not_found(format!(
            "[NOT_FOUND] denom not found: {}{off}",
            params::shown(denom)
        )));
    };
    let holders = Set::<Holders>::all(request.snapshot(), contract).map_err(HttpError::internal)?;
    let token = store::table::read::<Erc20s>(request.snapshot(), &contract).map_err(HttpError::internal)?;
    let is_incomplete = token.is_some_and(|Message(token)| !token.complete || token.silent);
    let more = if is_incomplete { &br#","incomplete":true"#[..] } else { b"" };
    request.respond_with("holders", &holders, None, nft_record::holders, more)
}

/// The holders of a token of a chain without an EVM.
fn holders_of_bank(indexer: &Indexer, call: &Call<'_>, denom: &str) -> Result<Reply, HttpError> {
    let request = ListRequest::<HolderRow>::new(indexer, call, Space::TokenHolders)?;
    let snapshot = request.snapshot();
    if BALANCES.state(snapshot).map_err(HttpError::internal)?.is_none() {
        let vm = &indexer.identity.vm;
        return Err(HttpError::not_found(format!(
            "rich lists are not available on this chain, whose vm is {vm}: add `ledger` and `balances` to `index` of \
             the process that indexes"
        )));
    }
    let unknown = || HttpError::not_found(format!("[NOT_FOUND] denom not found: {}", params::shown(denom)));
    let token = named_tokens(indexer, snapshot, denom)?.into_iter().next().ok_or_else(unknown)?;
    let is_incomplete = is_incomplete(snapshot, &token)?.ok_or_else(unknown)?;
    let array = current(snapshot, &token)?;
    let write = |out: &mut PageWriter, page: &[HolderRow]| {
        let holder = |(amount, account): &HolderRow| (account.0, U256::from_be_bytes(*amount));
        super::holders::write(indexer, out, page.iter().map(holder))
    };
    let more = if is_incomplete { &br#","incomplete":true"#[..] } else { b"" };
    request.respond_with("holders", &*array, None, write, more)
}

/// The contract of `denom`: any address, or an indexed denom.
fn resolve(snapshot: &dyn Snapshot, denom: &str) -> Result<Option<Address>, HttpError> {
    if let Some(contract) = Account::from_hex_literal(denom).and_then(|account| address(account.as_bytes())) {
        return Ok(Some(contract));
    }
    if let Some(contract) = evm_denom(denom) {
        let exists =
            store::table::read::<Erc20s>(snapshot, &contract).map_err(HttpError::internal)?.is_some()
                || store::ranked::len::<Holders>(snapshot, &contract).map_err(HttpError::internal)? > 0;
        return Ok(exists.then_some(contract));
    }
    if let Some(contract) = listed(snapshot, &denom.into())? {
        return Ok(Some(contract));
    }
    let folded = Text(denom.to_lowercase());
    let spelled = store::table::rows::<DenomsFolded>(snapshot, &folded, Order::Asc, 1);
    match spelled.map_err(HttpError::internal)?.first() {
        Some(((_, denom), ())) => listed(snapshot, denom),
        None => Ok(None),
    }
}

/// The contract of `evm/<40 hex digits>`, also with `0x` before the digits.
fn evm_denom(denom: &str) -> Option<Address> {
    let (lead, digits) = denom.split_at_checked(EVM.len())?;
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")).unwrap_or(digits);
    if !lead.eq_ignore_ascii_case(EVM) || digits.len() != 40 {
        return None;
    }
    address(Account::from_hex_literal(&format!("0x{digits}"))?.as_bytes())
}

/// The contract of a denom exactly as the chain writes it.
fn listed(snapshot: &dyn Snapshot, denom: &Text) -> Result<Option<Address>, HttpError> {
    let row = store::table::read::<Denoms>(snapshot, denom).map_err(HttpError::internal)?;
    let malformed = || {
        HttpError::internal(format!(
            "table `{}`, key {:?}: not a contract's address",
            Denoms::SPEC.name,
            denom.0
        ))
    };
    row.map(|row| address(&row).ok_or_else(malformed)).transpose()
}

/// An address of 20 bytes.
fn address(bytes: &[u8]) -> Option<Address> {
    let (address, rest) = bytes.split_first_chunk()?;
    rest.is_empty().then_some(*address)
}
