//! Transfers over an OPinit bridge: on a rollup its withdrawals, deposits and outputs, on a layer one its bridges.

mod executor;
mod layer_one;
mod outputs;

use chain::Account;
use schema::bridge::BRIDGE;
use schema::opchild::{
    self, FinalizedDeposits, ReceiverDeposits, ReceiverWithdrawals, SenderDeposits, SenderWithdrawals,
};
use serde::Serialize;
use store::key::Text;
use store::{List, Snapshot};
use web::call::Call;
use web::endpoint::{Endpoint, Param, Type};
use web::http_error::HttpError;
use web::limits::lane;
use web::reply::Reply;

use super::{ListRequest, Tag, one};
use crate::array::set::InMemory;
use crate::array::{Array, Run, Stored};
use crate::bridge_record::{self, Records, Stage};
use crate::cursor::{Space, Start};
use crate::filtered_page::filtered_page;
use crate::indexer::{Indexer, View};
use crate::node_text::since;
use crate::page::page;
use crate::page_writer::PageWriter;
use crate::params::{self, Paging};
use crate::v1::{
    BridgeWithdrawal, GetBridgeCoverageResponse, GetBridgeDepositResponse, GetBridgeInfoResponse,
    GetBridgeOutputResponse, ListBridgeClaimsResponse, ListBridgeDepositsResponse, ListBridgeOutputsResponse,
    ListBridgeWithdrawalsResponse, ListBridgesResponse, ListExecutorWithdrawalsResponse, ListTxsResponse,
};

const TAG: Tag = Tag("Bridge");

/// Bytes of work for a withdrawal: its row, its output, and a row of each level of a tree.
const WITHDRAWAL: u64 = 16 << 10;

/// Rows of an account that are merged: withdrawals and deposits cost a fee each.
const MAX_MERGED: u64 = 10_000;

const NUMBER: Type = Type::Between(1, i64::MAX);

const PAGES: Param = Param::Group(&params::checked_pages(Space::Bridge, params::MAX_LIMIT));

const BRIDGE_ID: Param = Param::query(
    "bridge_id",
    Type::Between(0, i64::MAX),
    "The bridge; only on a layer one, and needed there.",
);

const TEXT: &str = "An address, or another text as an event spells it.";

const BY_STATE: &[Param] = &[
    Param::query(
        "state",
        Type::OneOf(&["waiting", "proposed", "final", "claimed"]),
        "Only these. They are searched for: a page tests at most 5,000 withdrawals, the total is 0, and while next_key is not \
         null others may follow, also after an empty page. Without pagination.offset.",
    ),
    PAGES,
];

const BY_ACCOUNT: &[Param] = &[Param::path("account", TEXT), PAGES];

const BY_BRIDGE: &[Param] = &[BRIDGE_ID, PAGES];

const OF_CLAIMS: &[Param] = &[
    BRIDGE_ID,
    Param::query(
        "l2_sequence",
        Type::Between(0, i64::MAX),
        "Only the claim of this withdrawal of the rollup.",
    ),
    PAGES,
];

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    TAG.list::<GetBridgeInfoResponse>(
        "/indexer/bridge/v1/info",
        "The state of the rollup's bridge. Like all of this group it needs the optional index `bridge`: 404 if it is not \
         stored, 503 while it is being built. An unknown parameter is an error in this group, but for the executor's paths.",
        &[],
        outputs::info,
    ),
    TAG.list::<ListBridgeWithdrawalsResponse>(
        "/indexer/bridge/v1/withdrawals",
        "Withdrawals, with their states and proofs.",
        BY_STATE,
        withdrawals,
    ),
    TAG.list::<ListBridgeWithdrawalsResponse>(
        "/indexer/bridge/v1/withdrawals/by_account/{account}",
        "Withdrawals from and to an account.",
        BY_ACCOUNT,
        withdrawals_by_account,
    ),
    TAG.list::<ListExecutorWithdrawalsResponse>(
        "/indexer/bridge/v1/withdrawals/{address}",
        "Withdrawals to a receiver as the executor of a bridge lists them, with its errors.",
        &[
            Param::path("address", "The receiver, as the event spells it."),
            Param::query("offset", Type::Pattern("^[0-9]*$"), "The withdrawal to begin at, and not a count; absent or 0 for the newest."),
            Param::query_or("limit", Type::Pattern("^[0-9]*$"), "10", "At most 100."),
            Param::query_or("order", Type::String, "desc", "asc, or desc for anything else."),
        ],
        executor::list,
    ),
    TAG.list::<BridgeWithdrawal>(
        "/indexer/bridge/v1/withdrawal/{sequence}",
        "One withdrawal as the executor of a bridge gives it, with its errors: an unknown one is a 500.",
        &[Param::path_of("sequence", NUMBER, "Its number.")],
        executor::one,
    ),
    TAG.list::<ListBridgeDepositsResponse>(
        "/indexer/bridge/v1/deposits",
        "Deposits: on a rollup those that it has finalized, on a layer one those of a bridge.",
        BY_BRIDGE,
        deposits,
    ),
    TAG.list::<GetBridgeDepositResponse>(
        "/indexer/bridge/v1/deposits/{l1_sequence}",
        "One deposit.",
        &[Param::path_of("l1_sequence", NUMBER, "Its number."), BRIDGE_ID],
        deposit,
    ),
    TAG.list::<ListBridgeDepositsResponse>(
        "/indexer/bridge/v1/deposits/by_account/{account}",
        "Deposits from and to an account that a rollup has finalized.",
        BY_ACCOUNT,
        deposits_by_account,
    ),
    TAG.list::<ListBridgeOutputsResponse>(
        "/indexer/bridge/v1/outputs",
        "Outputs that are not deleted; on a layer one also those that are.",
        BY_BRIDGE,
        outputs::list,
    ),
    TAG.list::<GetBridgeOutputResponse>(
        "/indexer/bridge/v1/outputs/{output_index}",
        "One output, also if it is deleted.",
        &[Param::path_of("output_index", NUMBER, "Its number."), BRIDGE_ID],
        outputs::one,
    ),
    TAG.list::<GetBridgeCoverageResponse>(
        "/indexer/bridge/v1/coverage/{block}",
        "The output that covers a block or a transaction: with it the withdrawals in them can be claimed.",
        &[Param::path("block", "A height, or the Cosmos hash of a transaction.")],
        outputs::coverage,
    ),
    TAG.list::<ListBridgesResponse>(
        "/indexer/bridge/v1/bridges",
        "Bridges of a layer one.",
        &[PAGES],
        layer_one::bridges,
    ),
    TAG.list::<ListBridgeClaimsResponse>(
        "/indexer/bridge/v1/claims",
        "Withdrawals that a layer one has paid out in the indexed blocks, in the order of the chain.",
        OF_CLAIMS,
        layer_one::claims,
    ),
    TAG.list::<ListTxsResponse>(
        "/indexer/bridge/v1/batches",
        "Transactions that publish the blocks of a rollup, by who may do so now.",
        BY_BRIDGE,
        layer_one::batches,
    ),
];

/// Checks the parameters, and takes a snapshot that has the index.
fn view<'a>(indexer: &'a Indexer, call: &Call<'_>, params: &[Param]) -> Result<View<'a>, HttpError> {
    params::check(call, params)?;
    let view = indexer.view()?;
    view.require(&BRIDGE)?;
    Ok(view)
}

/// The same, for a list.
fn list<'a>(
    indexer: &'a Indexer,
    call: &Call<'_>,
    params: &[Param],
) -> Result<ListRequest<'a, u64>, HttpError> {
    params::check(call, params)?;
    let request = ListRequest::with(indexer, Paging::read(call, Space::Bridge)?)?;
    request.view.require(&BRIDGE)?;
    Ok(request)
}

fn withdrawals(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let request = list(indexer, call, BY_STATE)?;
    let records = Records::new(request.snapshot())?;
    let all = run(records.state.first_withdrawal, records.state.last_withdrawal);
    let wanted = call.first("state").and_then(|name| Stage::ALL.iter().find(|(_, known)| *known == name));
    let found = match wanted {
        None => page(&all, &request.paging.request).map_err(HttpError::internal)?,
        Some(_) if matches!(request.paging.request.at, Start::Offset(1..)) => {
            return Err(HttpError::bad_request(
                "pagination.offset does not go with state, which is searched for: follow next_key",
            ));
        }
        Some((stage, _)) => filtered_page(&all, &request.paging.request, |sequences| {
            lane::spend(WITHDRAWAL * sequences.len() as u64)?;
            let is_wanted = |sequence: &u64| {
                let row = opchild::withdrawal(request.snapshot(), *sequence).map_err(HttpError::internal)?;
                let height = row.map_or(u64::MAX, |row| row.height());
                let output = records.covering(height)?.map(|(_, output)| output);
                Ok(records.stage(*sequence, output.as_ref())? == *stage)
            };
            sequences.iter().map(is_wanted).collect()
        })?,
    };
    let write = |out: &mut PageWriter, sequences: &[u64]| write_withdrawals(&records, out, sequences);
    request.respond_page("withdrawals", found, None, write, b"")
}

fn withdrawals_by_account(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let request = list(indexer, call, BY_ACCOUNT)?;
    let found = by_account::<ReceiverWithdrawals, SenderWithdrawals>(indexer, request.snapshot(), call)?;
    let records = Records::new(request.snapshot())?;
    let write = |out: &mut PageWriter, sequences: &[u64]| write_withdrawals(&records, out, sequences);
    request.respond("withdrawals", &InMemory(found.iter().collect()), None, write)
}

fn write_withdrawals(
    records: &Records<'_>,
    out: &mut PageWriter,
    sequences: &[u64],
) -> Result<(), HttpError> {
    write_each(out, sequences, |sequence| {
        lane::spend(WITHDRAWAL)?;
        records.withdrawal(sequence)
    })
}

/// Numbers of the rows from and to an account, ascending, each once, by all spellings of its address.
fn by_account<To: List<Owner = Text>, From: List<Owner = Text>>(
    indexer: &Indexer,
    snapshot: &dyn Snapshot,
    call: &Call<'_>,
) -> Result<Vec<u64>, HttpError> {
    let text = call.text("account");
    let mut spellings = vec![text.to_owned()];
    let account = Account::from_bech32(text, indexer.prefix()).or_else(|| Account::from_hex_literal(text));
    if let Some(account) = account {
        spellings.extend([account.to_bech32(indexer.prefix()), account.to_hex()]);
    }
    spellings.sort_unstable();
    spellings.dedup();
    let mut found = Vec::new();
    for spelling in spellings {
        read_all::<To>(snapshot, &spelling, &mut found)?;
        read_all::<From>(snapshot, &spelling, &mut found)?;
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn read_all<L: List<Owner = Text>>(
    snapshot: &dyn Snapshot,
    owner: &str,
    found: &mut Vec<u64>,
) -> Result<(), HttpError> {
    let list = Stored::<L>::all(snapshot, Text::from(owner)).map_err(HttpError::internal)?;
    if found.len() as u64 + list.len() > MAX_MERGED {
        return Err(HttpError::bad_request(format!(
            "more than {MAX_MERGED} rows are from and to this account: read them by `/indexer/bridge/v1/withdrawals`, or those \
             to it by `/indexer/bridge/v1/withdrawals/{{address}}`"
        )));
    }
    lane::spend(list.len() * 8)?;
    found.extend(list.slice(0..list.len()).map_err(HttpError::internal)?);
    Ok(())
}

fn deposits(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let request = list(indexer, call, BY_BRIDGE)?;
    if let Some(number) = layer_one::bridge_id(call) {
        return layer_one::deposits(&request, number);
    }
    let state = opchild::state(request.snapshot()).map_err(HttpError::internal)?;
    let all = run(state.first_deposit, state.last_deposit);
    request.respond("deposits", &all, None, |out, numbers| write_deposits(request.snapshot(), out, numbers))
}

fn deposits_by_account(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let request = list(indexer, call, BY_ACCOUNT)?;
    let found = by_account::<ReceiverDeposits, SenderDeposits>(indexer, request.snapshot(), call)?;
    let write = |out: &mut PageWriter, numbers: &[u64]| write_deposits(request.snapshot(), out, numbers);
    request.respond("deposits", &InMemory(found.iter().collect()), None, write)
}

fn write_deposits(snapshot: &dyn Snapshot, out: &mut PageWriter, numbers: &[u64]) -> Result<(), HttpError> {
    write_each(out, numbers, |number| {
        let row = bridge_record::stored::<FinalizedDeposits, _>(snapshot, &number, number)?;
        Ok(bridge_record::finalized(number, row))
    })
}

fn deposit(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let view = view(indexer, call, &[BRIDGE_ID])?;
    let number = number(call, "l1_sequence")?;
    let record = match layer_one::bridge_id(call) {
        Some(bridge) => layer_one::deposit(view.snapshot(), bridge, number)?,
        None => store::table::read::<FinalizedDeposits>(view.snapshot(), &number)
            .map_err(HttpError::internal)?
            .map(|row| bridge_record::finalized(number, row.0)),
    };
    respond_one("deposit", record, || not_found(indexer, "deposit", number))
}

fn not_found(indexer: &Indexer, what: &str, number: u64) -> String {
    format!("[NOT_FOUND] {what} not found: {number}{}", since(indexer.identity.start_height))
}

/// Consecutive numbers; none if the first one is 0.
fn run(first: u64, last: u64) -> Run {
    if first == 0 { Run::EMPTY } else { Run { first, len: (last + 1).saturating_sub(first) } }
}

/// A path parameter that is a number.
fn number(call: &Call<'_>, name: &str) -> Result<u64, HttpError> {
    let text = call.text(name);
    text.parse().map_err(|_| {
        let shown = params::shown(text);
        HttpError::bad_request(format!(
            "[INVALID_VALUE] invalid value for {name}: {shown} (must be a number)"
        ))
    })
}

/// Appends the records of numbers, as many as the page takes.
fn write_each<T: Serialize>(
    out: &mut PageWriter,
    numbers: &[u64],
    mut record: impl FnMut(u64) -> Result<T, HttpError>,
) -> Result<(), HttpError> {
    for number in numbers {
        let record = serde_json::to_vec(&record(*number)?).map_err(HttpError::internal)?;
        if out.record(&record)?.is_break() {
            break;
        }
    }
    Ok(())
}

fn respond_one<T: Serialize>(
    member: &str,
    record: Option<T>,
    unknown: impl FnOnce() -> String,
) -> Result<Reply, HttpError> {
    let record = record.ok_or_else(|| HttpError::not_found(unknown()))?;
    Ok(one(member, &serde_json::to_vec(&record).map_err(HttpError::internal)?))
}
