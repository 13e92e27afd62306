//! The requests: each is sent to both servers, as a target of HTTP and as statements of SQL.
//!
//! The statements have the form of the deployed indexer's: a page by offset or account selects sequences in a table of
//! edges, and a total counts those edges.

use anyhow::{Context as _, Result};
use benches::client::get;
use benches::pick::Pick;
use postgres::types::ToSql;
use query::cursor::{Cursor, Space, encode};
use store::Snapshot;

use crate::rows::{AccountId, Involved, Rows};
use crate::stand_in::{self, MsgType};

/// Maximum number of distinct requests of a case.
const DISTINCT: usize = 5_000;

/// Rows of a page.
const PAGE: u64 = 100;

const BY_HASH: &str = "SELECT data::text FROM tx WHERE hash = $1 ORDER BY height DESC LIMIT 1";
const ALL: &str = "SELECT max(sequence) FROM tx";
const BEFORE: &str = "SELECT data::text FROM tx WHERE sequence < $1 ORDER BY sequence DESC LIMIT 100";
const AT_OFFSET: &str = "SELECT data::text FROM tx ORDER BY sequence DESC LIMIT 100 OFFSET $1";
const OF_ACCOUNT: &str = "SELECT count(*) FROM tx_accounts WHERE account_id = $1";
const ACCOUNT: &str = "SELECT data::text FROM tx WHERE sequence IN (SELECT sequence FROM tx_accounts \
    WHERE account_id = $1 ORDER BY sequence DESC LIMIT 100 OFFSET $2) ORDER BY sequence DESC";
const OF_TYPE: &str = "SELECT count(DISTINCT sequence) FROM tx_msg_types WHERE msg_type_id = $1";
const TYPE: &str = "SELECT data::text FROM tx WHERE sequence IN (SELECT DISTINCT sequence FROM tx_msg_types \
    WHERE msg_type_id = $1 ORDER BY sequence DESC LIMIT 100 OFFSET $2) ORDER BY sequence DESC";
const OF_EVM_ACCOUNT: &str = "SELECT count(*) FROM evm_tx_accounts WHERE account_id = $1";
const EVM_ACCOUNT: &str = "SELECT data::text FROM evm_tx WHERE sequence IN (SELECT sequence FROM evm_tx_accounts \
    WHERE account_id = $1 ORDER BY sequence DESC LIMIT 100 OFFSET $2) ORDER BY sequence DESC";

/// A parameter of a statement.
pub(crate) enum Parameter {
    Number(i64),
    Bytes(Vec<u8>),
}

impl Parameter {
    pub(crate) fn as_sql(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Number(number) => number,
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// A request as SQL.
pub(crate) struct Query {
    /// The statement of the total, and how many of the parameters it takes.
    pub(crate) count: Option<(&'static str, usize)>,
    /// The statement of the records.
    pub(crate) page: &'static str,
    pub(crate) parameters: Vec<Parameter>,
}

/// One kind of request.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The member of cairn's answer that holds the records.
    pub(crate) member: &'static str,
    /// Whether the reply is a page.
    pub(crate) page: bool,
    /// Requests over HTTP, and the same ones as SQL.
    pub(crate) requests: Vec<Vec<u8>>,
    pub(crate) queries: Vec<Query>,
}

/// The case whose latency is measured at several numbers of connections.
pub(crate) const UNDER_LOAD: &str = "100 transactions of the busiest account, random offset";

/// All cases on the chain of `rows`, whose records are in `snapshot`.
pub(crate) fn all(rows: &Rows, snapshot: &dyn Snapshot, msg_type: &MsgType) -> Result<Vec<Case>> {
    let mut pick = Pick::seeded(5);
    let cases = vec![
        by_hash(rows, snapshot, &mut pick)?,
        case("100 transactions, random cursor", |_| {
            let before = PAGE + 1 + pick.below(rows.txs() - PAGE);
            let target = format!(
                "/indexer/tx/v1/txs?pagination.limit={PAGE}&pagination.key={}",
                encode(Space::Txs, Cursor::After(before))
            );
            Ok((target, Some((ALL, 0)), BEFORE, vec![before]))
        })?,
        case("100 transactions, random offset", |_| Ok(at_offset(pick.below(rows.txs() - PAGE))))?,
        of_account(UNDER_LOAD, "txs", rows, &rows.of_tx, (OF_ACCOUNT, ACCOUNT), &mut pick)?,
        of_account(
            "100 EVM transactions of the busiest account, random offset",
            "evm-txs",
            rows,
            &rows.of_evm_tx,
            (OF_EVM_ACCOUNT, EVM_ACCOUNT),
            &mut pick,
        )?,
        case("100 transactions of one message type, random offset", |_| {
            let offset = pick.below(msg_type.txs - PAGE);
            let target = format!(
                "/indexer/tx/v1/txs?msgs={}&pagination.limit={PAGE}&pagination.offset={offset}",
                msg_type.name
            );
            Ok((target, Some((OF_TYPE, 1)), TYPE, vec![msg_type.id, offset]))
        })?,
    ];
    Ok(cases)
}

/// For each of some offsets up to the end of the list of all transactions, the offset and its case of one request.
pub(crate) fn offsets(rows: &Rows) -> Result<Vec<(u64, Case)>> {
    const STEPS: u64 = 20;
    let last = rows.txs() - PAGE;
    let one = |step| {
        let offset = last * step / STEPS;
        let (target, count, page, parameters) = at_offset(offset);
        let query = query(count, page, &parameters)?;
        let requests = vec![get(&target)];
        Ok((offset, Case { name: "offset", member: "txs", page: true, requests, queries: vec![query] }))
    };
    (0..=STEPS).map(one).collect()
}

/// Target, total, page, and parameters of a request.
type Request = (String, Option<(&'static str, usize)>, &'static str, Vec<u64>);

fn at_offset(offset: u64) -> Request {
    let target = format!("/indexer/tx/v1/txs?pagination.limit={PAGE}&pagination.offset={offset}");
    (target, Some((ALL, 0)), AT_OFFSET, vec![offset])
}

fn query(count: Option<(&'static str, usize)>, page: &'static str, parameters: &[u64]) -> Result<Query> {
    let number = |number: &u64| Ok(Parameter::Number(i64::try_from(*number)?));
    Ok(Query { count, page, parameters: parameters.iter().map(number).collect::<Result<_>>()? })
}

fn case(name: &'static str, mut make: impl FnMut(usize) -> Result<Request>) -> Result<Case> {
    let (mut requests, mut queries) = (Vec::new(), Vec::new());
    for turn in 0..DISTINCT {
        let (target, count, page, parameters) = make(turn)?;
        requests.push(get(&target));
        queries.push(query(count, page, &parameters)?);
    }
    Ok(Case { name, member: "txs", page: true, requests, queries })
}

fn by_hash(rows: &Rows, snapshot: &dyn Snapshot, pick: &mut Pick) -> Result<Case> {
    let (mut requests, mut queries) = (Vec::new(), Vec::new());
    for _ in 0..DISTINCT {
        let hash = stand_in::hash(&rows.tx(snapshot, 1 + pick.below(rows.txs()))?)?;
        requests.push(get(&format!("/indexer/tx/v1/txs/{}", hex::encode_upper(&hash))));
        queries.push(Query { count: None, page: BY_HASH, parameters: vec![Parameter::Bytes(hash)] });
    }
    Ok(Case { name: "one transaction by hash", member: "tx", page: false, requests, queries })
}

fn of_account(
    name: &'static str,
    kind: &str,
    rows: &Rows,
    of: &[Vec<Involved>],
    (count, page): (&'static str, &'static str),
    pick: &mut Pick,
) -> Result<Case> {
    let (account, records) = busiest(of, rows.accounts.len())?;
    let address = hex::encode(&rows.accounts[usize::try_from(account)? - 1]);
    case(name, |_| {
        let offset = pick.below(records - PAGE);
        let target = format!(
            "/indexer/tx/v1/{kind}/by_account/0x{address}?pagination.limit={PAGE}&pagination.offset={offset}"
        );
        Ok((target, Some((count, 1)), page, vec![u64::try_from(account)?, offset]))
    })
}

/// The account with most records, and their number.
fn busiest(of: &[Vec<Involved>], accounts: usize) -> Result<(AccountId, u64)> {
    let mut records = vec![0_u64; accounts + 1];
    for involved in of.iter().flatten() {
        records[usize::try_from(involved.account)?] += 1;
    }
    let busiest = records.into_iter().enumerate().max_by_key(|(_, records)| *records);
    let (account, records) = busiest.context("a chain without accounts")?;
    Ok((AccountId::try_from(account)?, records))
}
