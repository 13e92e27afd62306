//! The stand-in: tables, indexes and statements of an indexer over PostgreSQL.
//!
//! Its shape is that of the indexer that these chains have today: records as `jsonb`, rows that join accounts and message
//! types to sequences, dictionaries of accounts, message types and hashes, one transaction for each block, inserts
//! of at most 100 rows with `ON CONFLICT DO NOTHING`, and counters that each block updates. Missing are NFTs, the rich list,
//! and the reads of dictionaries that a cache would not hold: all of these would add to its cost.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use postgres::types::ToSql;
use postgres::{Client, Statement, Transaction};
use serde::Deserialize;
use store::Snapshot;

use crate::postgres::Postgres;
use crate::rows::{Block, Involved, Rows};

/// Rows of an insert.
const BATCH: usize = 100;

const SCHEMA: &str = "
CREATE TABLE block (height bigint PRIMARY KEY, data jsonb NOT NULL);
CREATE TABLE seq_info (name text PRIMARY KEY, sequence bigint NOT NULL);
CREATE TABLE account_dict (id bigint PRIMARY KEY, account bytea NOT NULL UNIQUE);
CREATE TABLE msg_type_dict (id bigint PRIMARY KEY, msg_type text NOT NULL UNIQUE);
CREATE TABLE evm_tx_hash_dict (id bigint PRIMARY KEY, hash bytea NOT NULL UNIQUE);

CREATE TABLE tx (hash bytea, height bigint, sequence bigint NOT NULL, data jsonb NOT NULL, PRIMARY KEY (hash, height));
CREATE INDEX ON tx (sequence DESC);
CREATE INDEX ON tx (height, sequence DESC);
CREATE TABLE tx_accounts (account_id bigint, sequence bigint, signer boolean, PRIMARY KEY (account_id, sequence));
CREATE INDEX ON tx_accounts (sequence DESC);
CREATE TABLE tx_msg_types (msg_type_id bigint, sequence bigint, PRIMARY KEY (msg_type_id, sequence));
CREATE INDEX ON tx_msg_types (sequence DESC);

CREATE TABLE evm_tx (hash bytea, height bigint, sequence bigint NOT NULL, data jsonb NOT NULL, PRIMARY KEY (hash, height));
CREATE INDEX ON evm_tx (sequence DESC);
CREATE INDEX ON evm_tx (height, sequence DESC);
CREATE TABLE evm_tx_accounts (account_id bigint, sequence bigint, signer boolean, PRIMARY KEY (account_id, sequence));
CREATE INDEX ON evm_tx_accounts (sequence DESC);

CREATE TABLE evm_internal_tx (sequence bigint PRIMARY KEY, height bigint NOT NULL, hash_id bigint NOT NULL,
    parent_index bigint NOT NULL, index bigint NOT NULL, type text NOT NULL, from_to text NOT NULL, input bytea NOT NULL,
    output bytea NOT NULL, value bytea NOT NULL, gas bytea NOT NULL, gas_used bytea NOT NULL);
CREATE INDEX ON evm_internal_tx (height, sequence DESC);
CREATE INDEX ON evm_internal_tx (hash_id, sequence DESC);
CREATE TABLE evm_internal_tx_accounts (account_id bigint, sequence bigint, PRIMARY KEY (account_id, sequence));
CREATE INDEX ON evm_internal_tx_accounts (sequence DESC);
";

/// A table, and the types of the parameters of its columns.
struct Relation {
    name: &'static str,
    parameters: &'static [&'static str],
}

const fn relation(name: &'static str, parameters: &'static [&'static str]) -> Relation {
    Relation { name, parameters }
}

/// Text is sent as text and parsed by the server.
const JSON: &str = "text::jsonb";

const BLOCK: Relation = relation("block", &["bigint", JSON]);
const ACCOUNT_DICT: Relation = relation("account_dict", &["bigint", "bytea"]);
const MSG_TYPE_DICT: Relation = relation("msg_type_dict", &["bigint", "text"]);
const HASH_DICT: Relation = relation("evm_tx_hash_dict", &["bigint", "bytea"]);
const TX: Relation = relation("tx", &["bytea", "bigint", "bigint", JSON]);
const TX_ACCOUNTS: Relation = relation("tx_accounts", &["bigint", "bigint", "boolean"]);
const TX_MSG_TYPES: Relation = relation("tx_msg_types", &["bigint", "bigint"]);
const EVM_TX: Relation = relation("evm_tx", &["bytea", "bigint", "bigint", JSON]);
const EVM_TX_ACCOUNTS: Relation = relation("evm_tx_accounts", &["bigint", "bigint", "boolean"]);
const CALLS: Relation = relation(
    "evm_internal_tx",
    &[
        "bigint", "bigint", "bigint", "bigint", "bigint", "text", "text", "bytea", "bytea", "bytea", "bytea",
        "bytea",
    ],
);
const CALL_ACCOUNTS: Relation = relation("evm_internal_tx_accounts", &["bigint", "bigint"]);

const COUNTERS: &str = "INSERT INTO seq_info VALUES ('tx', $1), ('evm_tx', $2), ('evm_internal_tx', $3)
    ON CONFLICT (name) DO UPDATE SET sequence = EXCLUDED.sequence";

/// What a commit survives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// A power failure may lose the commits of the last moment (`synchronous_commit = off`), as with cairn far behind
    /// the head.
    Relaxed,
    /// Each commit is on the device, PostgreSQL's default.
    Strict,
}

type Cell = Box<dyn ToSql + Sync>;

fn number(number: u64) -> Result<Cell> {
    Ok(Box::new(i64::try_from(number)?))
}

/// The database and the session that fills it.
pub(crate) struct StandIn {
    session: Client,
    statements: HashMap<(&'static str, usize), Statement>,
    msg_types: HashMap<String, i64>,
    /// Accounts and hashes that are in the dictionaries.
    known_accounts: Vec<bool>,
    hashes: i64,
}

/// Cost of loading a chain.
pub(crate) struct Loaded {
    /// Time in statements so far and transactions so far, after each block.
    pub(crate) progress: Vec<(Duration, u64)>,
    /// CPU time of the server's processes.
    pub(crate) cpu: Duration,
}

impl Loaded {
    /// Time in statements.
    pub(crate) fn elapsed(&self) -> Duration {
        self.progress.last().map_or(Duration::ZERO, |(elapsed, _)| *elapsed)
    }
}

/// A message type.
pub(crate) struct MsgType {
    /// Its number in the dictionary.
    pub(crate) id: u64,
    pub(crate) name: String,
    /// Transactions with messages of this type.
    pub(crate) txs: u64,
}

/// The rows of one block by table, in the order of their insertion.
#[derive(Default)]
struct Batch(Vec<(&'static Relation, Vec<Vec<Cell>>)>);

impl Batch {
    fn add(&mut self, relation: &'static Relation, rows: Vec<Vec<Cell>>) {
        self.0.push((relation, rows));
    }
}

impl StandIn {
    /// Creates the tables, in place of those that are there.
    pub(crate) fn create(server: &Postgres, durability: Durability) -> Result<Self> {
        let mut session = server.connect()?;
        let commit = if durability == Durability::Strict { "on" } else { "off" };
        session.batch_execute(&format!("SET synchronous_commit = {commit}"))?;
        session.batch_execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")?;
        session.batch_execute(SCHEMA)?;
        Ok(Self {
            session,
            statements: HashMap::new(),
            msg_types: HashMap::new(),
            known_accounts: Vec::new(),
            hashes: 0,
        })
    }

    /// Writes the chain of `rows`, whose records are in `snapshot`. Only the statements are measured.
    pub(crate) fn load(&mut self, server: &Postgres, rows: &Rows, snapshot: &dyn Snapshot) -> Result<Loaded> {
        self.known_accounts = vec![false; rows.accounts.len()];
        let before = server.cpu()?;
        let mut progress = Vec::with_capacity(rows.blocks.len());
        let mut elapsed = Duration::ZERO;
        for block in &rows.blocks {
            let batch = self.batch(rows, snapshot, block)?;
            let started = Instant::now();
            self.commit(&batch, block).with_context(|| format!("block {}", block.height))?;
            elapsed += started.elapsed();
            progress.push((elapsed, block.txs.end - 1));
        }
        Ok(Loaded { progress, cpu: server.cpu()?.saturating_sub(before) })
    }

    /// Writes everything to the tables' files and updates the statistics of the query planner.
    pub(crate) fn settle(&mut self) -> Result<()> {
        // Each by itself: statements sent together are one transaction, in which there is no vacuum.
        for statement in ["VACUUM ANALYZE", "CHECKPOINT"] {
            self.session.batch_execute(statement)?;
        }
        Ok(())
    }

    /// Bytes of each table with its indexes.
    pub(crate) fn sizes(&mut self) -> Result<Vec<(String, u64)>> {
        let query = "SELECT relname::text, pg_total_relation_size(oid) FROM pg_class \
            WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 2 DESC";
        let rows = self.session.query(query, &[])?;
        rows.iter().map(|row| Ok((row.get(0), u64::try_from(row.get::<_, i64>(1))?))).collect()
    }

    /// The message type with most transactions.
    pub(crate) fn commonest_msg_type(&mut self) -> Result<MsgType> {
        let query = "SELECT id, msg_type, count(*) FROM tx_msg_types JOIN msg_type_dict ON id = msg_type_id \
            GROUP BY id, msg_type ORDER BY 3 DESC LIMIT 1";
        let row = self.session.query_one(query, &[])?;
        let [id, txs] = [row.get::<_, i64>(0), row.get::<_, i64>(2)];
        Ok(MsgType { id: u64::try_from(id)?, name: row.get(1), txs: u64::try_from(txs)? })
    }

    fn batch(&mut self, rows: &Rows, snapshot: &dyn Snapshot, block: &Block) -> Result<Batch> {
        let mut batch = Batch::default();
        let text = String::from_utf8(block.json.clone())?;
        batch.add(&BLOCK, vec![vec![number(block.height)?, Box::new(text)]]);
        self.add_txs(&mut batch, rows, snapshot, block)?;
        let mut evm_txs = Vec::new();
        for seq in block.evm_txs.clone() {
            evm_txs.push(record(rows.evm_tx(snapshot, seq)?, block.height, seq)?);
        }
        batch.add(&EVM_TX, evm_txs);
        self.add_accounts(&mut batch, &EVM_TX_ACCOUNTS, rows, &rows.of_evm_tx, block.evm_txs.clone())?;
        self.add_calls(&mut batch, rows, snapshot, block)?;
        Ok(batch)
    }

    fn add_txs(
        &mut self,
        batch: &mut Batch,
        rows: &Rows,
        snapshot: &dyn Snapshot,
        block: &Block,
    ) -> Result<()> {
        let (mut txs, mut types, mut new_types) = (Vec::new(), Vec::new(), Vec::new());
        for seq in block.txs.clone() {
            let json = rows.tx(snapshot, seq)?;
            for msg_type in msg_types(&json)? {
                let next = i64::try_from(self.msg_types.len() + 1)?;
                let id = *self.msg_types.entry(msg_type.clone()).or_insert(next);
                if id == next {
                    new_types.push(vec![Box::new(id) as Cell, Box::new(msg_type)]);
                }
                types.push(vec![Box::new(id) as Cell, number(seq)?]);
            }
            txs.push(record(json, block.height, seq)?);
        }
        batch.add(&MSG_TYPE_DICT, new_types);
        batch.add(&TX, txs);
        batch.add(&TX_MSG_TYPES, types);
        self.add_accounts(batch, &TX_ACCOUNTS, rows, &rows.of_tx, block.txs.clone())
    }

    fn add_calls(
        &mut self,
        batch: &mut Batch,
        rows: &Rows,
        snapshot: &dyn Snapshot,
        block: &Block,
    ) -> Result<()> {
        let (mut calls, mut hashes) = (Vec::new(), Vec::new());
        for (seq, json) in block.calls.clone().zip(rows.calls(snapshot, block.calls.clone())?) {
            let call: Call<'_> = serde_json::from_slice(&json)?;
            if call.index == 0 {
                self.hashes += 1;
                hashes.push(vec![Box::new(self.hashes) as Cell, Box::new(bytes(call.hash)?)]);
            }
            calls.push(vec![
                number(seq)?,
                number(block.height)?,
                Box::new(self.hashes),
                Box::new(call.parent_index),
                Box::new(call.index),
                Box::new(call.kind.to_owned()),
                Box::new(format!("{} {}", call.from, call.to)),
                Box::new(bytes(call.input)?),
                Box::new(bytes(call.output)?),
                Box::new(bytes(call.value)?),
                Box::new(bytes(call.gas)?),
                Box::new(bytes(call.gas_used)?),
            ]);
        }
        batch.add(&HASH_DICT, hashes);
        batch.add(&CALLS, calls);
        let of_calls = rows.of_call.as_slice();
        self.add_accounts(batch, &CALL_ACCOUNTS, rows, of_calls, block.calls.clone())
    }

    /// Adds the accounts of the records `seqs`, and those that are new to the dictionary before them.
    fn add_accounts(
        &mut self,
        batch: &mut Batch,
        relation: &'static Relation,
        rows: &Rows,
        of: &[Vec<Involved>],
        seqs: std::ops::Range<u64>,
    ) -> Result<()> {
        let (mut new, mut edges) = (Vec::new(), Vec::new());
        for seq in seqs {
            for Involved { account, signer } in of.get(usize::try_from(seq)? - 1).into_iter().flatten() {
                let place = usize::try_from(*account)? - 1;
                if !std::mem::replace(&mut self.known_accounts[place], true) {
                    new.push(vec![Box::new(*account) as Cell, Box::new(rows.accounts[place].clone())]);
                }
                let mut edge = vec![Box::new(*account) as Cell, number(seq)?];
                if relation.parameters.len() > edge.len() {
                    edge.push(Box::new(*signer));
                }
                edges.push(edge);
            }
        }
        batch.add(&ACCOUNT_DICT, new);
        batch.add(relation, edges);
        Ok(())
    }

    fn commit(&mut self, batch: &Batch, block: &Block) -> Result<()> {
        let mut transaction = self.session.transaction()?;
        transaction.query("SELECT name, sequence FROM seq_info", &[])?;
        for (relation, rows) in &batch.0 {
            for rows in rows.chunks(BATCH) {
                insert(&mut transaction, &mut self.statements, relation, rows)?;
            }
        }
        let ends = [block.txs.end, block.evm_txs.end, block.calls.end].map(|end| i64::try_from(end - 1));
        let [txs, evm_txs, calls] = ends;
        transaction.execute(COUNTERS, &[&txs?, &evm_txs?, &calls?])?;
        Ok(transaction.commit()?)
    }
}

fn insert(
    transaction: &mut Transaction<'_>,
    statements: &mut HashMap<(&'static str, usize), Statement>,
    relation: &Relation,
    rows: &[Vec<Cell>],
) -> Result<()> {
    let key = (relation.name, rows.len());
    if let std::collections::hash_map::Entry::Vacant(e) = statements.entry(key) {
        e.insert(transaction.prepare(&insert_sql(relation, rows.len()))?);
    }
    let cells: Vec<&(dyn ToSql + Sync)> = rows.iter().flatten().map(|cell| &**cell).collect();
    transaction.execute(&statements[&key], &cells)?;
    Ok(())
}

fn insert_sql(relation: &Relation, rows: usize) -> String {
    let columns = relation.parameters.len();
    let row = |row: usize| {
        let cell = |(column, kind): (usize, &&str)| format!("${}::{kind}", row * columns + column + 1);
        let cells: Vec<_> = relation.parameters.iter().enumerate().map(cell).collect();
        format!("({})", cells.join(", "))
    };
    let rows: Vec<_> = (0..rows).map(row).collect();
    format!("INSERT INTO {} VALUES {} ON CONFLICT DO NOTHING", relation.name, rows.join(", "))
}

/// The row of a transaction or an EVM transaction.
fn record(json: Vec<u8>, height: u64, seq: u64) -> Result<Vec<Cell>> {
    let hash = hash(&json)?;
    Ok(vec![Box::new(hash), number(height)?, number(seq)?, Box::new(String::from_utf8(json)?)])
}

/// The hash of a record.
pub(crate) fn hash(json: &[u8]) -> Result<Vec<u8>> {
    #[derive(Deserialize)]
    struct Record<'a> {
        #[serde(alias = "transactionHash")]
        txhash: &'a str,
    }
    bytes(serde_json::from_slice::<Record<'_>>(json)?.txhash)
}

/// The distinct message types of a transaction.
fn msg_types(json: &[u8]) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Record {
        tx: Tx,
    }
    #[derive(Deserialize)]
    struct Tx {
        body: Body,
    }
    #[derive(Deserialize)]
    struct Body {
        messages: Vec<Typed>,
    }
    #[derive(Deserialize)]
    struct Typed {
        #[serde(rename = "@type")]
        kind: String,
    }
    let record: Record = serde_json::from_slice(json).context("a transaction's messages")?;
    let mut types: Vec<String> = record.tx.body.messages.into_iter().map(|message| message.kind).collect();
    types.sort_unstable();
    types.dedup();
    Ok(types)
}

/// A call frame.
#[derive(Deserialize)]
struct Call<'a> {
    hash: &'a str,
    parent_index: i64,
    index: i64,
    #[serde(rename = "type")]
    kind: &'a str,
    from: &'a str,
    to: &'a str,
    input: &'a str,
    output: &'a str,
    value: &'a str,
    gas: &'a str,
    #[serde(rename = "gasUsed")]
    gas_used: &'a str,
}

fn bytes(text: &str) -> Result<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    hex::decode(digits).with_context(|| format!("not hex of whole bytes: {text}"))
}
