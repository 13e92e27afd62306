//! The rich list: holders of an ERC-20 by amount.

use chain::Account;
use schema::rich::{Address, Denoms, DenomsFolded, Erc20s, Holders};
use serde_json::{Map, Value};
use store::key::Text;
use store::{Order, Snapshot, Table as _};
use web::call::Call;
use web::endpoint::{Endpoint, Freshness, Handler, Method, PAGINATION, Param};
use web::refusal::Refusal;
use web::reply::Reply;
use web::schema::{Field, Kind, PAGINATION_RESPONSE, Schema};

use super::list;
use crate::array::set::Set;
use crate::cursor::{Row, Space, Start};
use crate::indexer::Indexer;
use crate::nft_record;
use crate::params::{self, Paging};

/// Prefix of the denoms of ERC-20s without another denom; the contract's address in hex follows.
const EVM: &str = "evm/";

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[Endpoint {
    method: Method::Get,
    path: "/indexer/richlist/v1/{denom}",
    tag: "Rich List",
    summary: "Holders of a token, by amount.",
    params: &[
        Param::path(
            "denom",
            "A contract's address (0x...) or a denom in any case, with its slashes percent-encoded (evm%2F...).",
        ),
        PAGINATION,
    ],
    response: &HOLDERS,
    handler: Handler::Now(holders),
    cache: Freshness::LIST,
}];

static HOLDER: Schema = Schema {
    name: "richlist.TokenHolder",
    doc: "A holder.",
    fields: &[
        Field::new("account", Kind::String, "Lower-case hex with 0x."),
        Field::new("amount", Kind::String, "Decimal, in base units, up to 256 bits."),
    ],
};

static HOLDERS: Schema = Schema {
    name: "richlist.TokenHoldersResponse",
    doc: "A page of holders.",
    fields: &[
        Field::new("holders", Kind::Array(&Kind::Object(&HOLDER)), ""),
        Field::new("pagination", Kind::Object(&PAGINATION_RESPONSE), ""),
    ],
};

/// A holder by amount, then by address.
type Item = ([u8; 32], Address);

impl Row for Item {
    /// The deployed server pages by offset only.
    fn deployed(_: Space, _: &Map<String, Value>) -> Option<Start<Self>> {
        None
    }
}

fn holders(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, Refusal> {
    if !indexer.is_evm() {
        let vm = &indexer.identity.vm;
        return Err(Refusal::not_found(format!(
            "rich lists are not available on this chain: its vm is {vm}, they are kept for evm only"
        )));
    }
    let denom = call.text("denom");
    let paging = Paging::of(call, Space::Holders)?;
    let view = indexer.view()?;
    let Some(contract) = resolve(view.snapshot(), denom)? else {
        let off =
            view.no_rich_list()?.map(|why| format!("; the rich list is off: {why}")).unwrap_or_default();
        return Err(Refusal::not_found(format!(
            "[NOT_FOUND] denom not found: {}{off}",
            params::shown(denom)
        )));
    };
    let holders = Set::<Holders>::all(view.snapshot(), contract).map_err(Refusal::internal)?;
    list(indexer, "holders", &holders, &paging, None, nft_record::holders)
}

/// The contract of `denom`: any address, or a known denom.
fn resolve(snapshot: &dyn Snapshot, denom: &str) -> Result<Option<Address>, Refusal> {
    if let Some(contract) = Account::from_hex_literal(denom).and_then(|account| address(account.as_bytes())) {
        return Ok(Some(contract));
    }
    if let Some(contract) = evm_denom(denom) {
        let known = store::table::read::<Erc20s>(snapshot, &contract).map_err(Refusal::internal)?.is_some()
            || store::ranked::len::<Holders>(snapshot, &contract).map_err(Refusal::internal)? > 0;
        return Ok(known.then_some(contract));
    }
    if let Some(contract) = listed(snapshot, &denom.into())? {
        return Ok(Some(contract));
    }
    let folded = Text(denom.to_lowercase());
    let spelled = store::table::rows::<DenomsFolded>(snapshot, &folded, Order::Asc, 1);
    match spelled.map_err(Refusal::internal)?.first() {
        Some(((_, denom), ())) => listed(snapshot, denom),
        None => Ok(None),
    }
}

/// The contract of `evm/<40 hex digits>`.
fn evm_denom(denom: &str) -> Option<Address> {
    let (lead, digits) = denom.split_at_checked(EVM.len())?;
    if !lead.eq_ignore_ascii_case(EVM) || digits.len() != 40 {
        return None;
    }
    address(Account::from_hex_literal(&format!("0x{digits}"))?.as_bytes())
}

/// The contract of a denom exactly as the chain writes it.
fn listed(snapshot: &dyn Snapshot, denom: &Text) -> Result<Option<Address>, Refusal> {
    let row = store::table::read::<Denoms>(snapshot, denom).map_err(Refusal::internal)?;
    let malformed = || {
        Refusal::internal(format!(
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
