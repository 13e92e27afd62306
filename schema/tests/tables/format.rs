//! The on-disk format, pinned: every table with a row of it in hex, and the invariants of all tables.
//!
//! `UPDATE_GOLDEN=1 cargo test --test tables` rewrites the golden. A change in it means that existing databases can no
//! longer be read: raise [`schema::FORMAT`] with it.

use std::fmt::Write as _;

use chain::movement::{Cause, Kind, Movement, Token};
use chain::packet::{End, Side};
use chain::{Account, U256};
use proptest::prelude::*;
use schema::balances::{AskedAccounts, Bases, TokenHolders, TokenState, TokenStates};
use schema::block::{Block, BlockEvents, Blocks};
use schema::call_errors::CallErrors;
use schema::contracts::ContractTxs;
use schema::descriptors::{DescriptorSet, Descriptors};
use schema::evm_block::{EvmBlock, EvmBlockByHash, EvmBlocks};
use schema::evm_tx::{AccountEvmTxs, EvmTxByHash, EvmTxs};
use schema::internal_tx::{AccountCalls, BlockCalls, Calls, CallsByHeight};
use schema::keys::{AccountKey, Role, hash_prefix};
use schema::ledger::{
    AccountMovements, AccountTokenMovements, BalanceChanges, BalanceTotals, ChangeRow, Class, DenomTokens,
    Holder, MovedNfts, Movements, NftObjects, TokenDenoms, TokenMovements, Total, WholeTokens,
};
use schema::logs::{Content, LogTxs, fingerprint};
use schema::meta::{
    self, BlockLane, CallLane, Identity, ListedAccountTokens, PendingReindex, Rewinds, RichLane,
};
use schema::movement::{self, MovementRow, PlacedMovement, TokenKey};
use schema::msg_set::{MsgSet, MsgSetByNames, MsgSetByType, MsgSets, joined};
use schema::nft::fold;
use schema::nft::{
    About, Change, Collection, Entry, Mint, NewCollection, NewName, NewUri, NonCollections, Origin, Outcome,
    PendingEvent, PendingEvents, Place, Question, Questions, Renewal, Renewals, Subject, TokenName, Transfer,
};
use schema::packets::{
    AccountPackets, Blob, Channel, ChannelKey, ChannelReplies, ChannelStage, Channels, Connections,
    EndPackets, PacketEnd, PacketNumbers, PacketRow, PacketState, Packets, PacketsByState, Stage,
};
use schema::parties::RecipientEvmTxs;
use schema::payload::{Chunk, Dictionary, DictionaryRow, Payload};
use schema::postings;
use schema::rich::{self, Balances, Denoms, DenomsFolded, Erc20, Erc20s, NewContracts};
use schema::supply::{SupplyReplies, SupplyReply};
use schema::tokens::{
    FirstSeen, TokenNumbers, TokenQuestions, TokenReplies, TokenReply, TokenSearch, Tokens, TokensByType,
};
use schema::tx::{AccountSetTxs, AccountTxs, SetTxs, TxByHash, Txs};
use schema::undo::{Horizon, Lane, Record, RecordKey, UndoLog, UndoRecords};
use schema::{TABLES, Visitor};
use store::{
    Bounds, Counts, Durability, Key, List, MemStore, Message, Order, Row, Store, Table, Txn, Value,
    key::{All, Text},
};

use crate::{activity_rows, bridge_rows};

const GOLDEN: &str = "tests/format.golden";

/// 20 bytes 00 to 13: a person.
fn person() -> AccountKey {
    AccountKey(account(20))
}

/// 32 bytes 00 to 1f: a contract.
fn contract() -> AccountKey {
    AccountKey(account(32))
}

fn account(bytes: u8) -> Account {
    Account::from_bytes(&(0..bytes).collect::<Vec<_>>()).unwrap()
}

/// A record that is stored uncompressed.
fn plain(record: &[u8]) -> Payload {
    Payload([&[0], record].concat())
}

/// One row of every table, written as by the ingest.
fn example() -> MemStore {
    let store = MemStore::new();
    let snapshot = store.snapshot().unwrap();
    let mut counts = Counts::new(8);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    about_the_database(&mut txn);
    cosmos(&mut txn);
    evm(&mut txn);
    nfts(&mut txn);
    ledger(&mut txn);
    balances(&mut txn);
    tokens(&mut txn);
    packets(&mut txn);
    txn.push::<schema::search::AttributeTxs>(&[0xa7; 12], 300).unwrap();
    activity_rows::hour(&mut txn, person());
    bridge_rows::rollup(&mut txn);
    bridge_rows::layer_one(&mut txn);
    rich_list(&mut txn);
    let (key, record) = undo_record();
    txn.put::<UndoRecords>(&key, &Message(record));
    let (batch, _) = txn.finish();
    store.commit(batch, Durability::Buffered).unwrap();
    drop(snapshot);
    store
}

fn about_the_database(txn: &mut Txn<'_>) {
    meta::put(
        txn,
        &Identity {
            format: 1,
            chain_id: "test-1".to_owned(),
            vm: "evm".to_owned(),
            prefix: "init".to_owned(),
            start_height: 4,
        },
    );
    let time = 1_700_000_000_123_456_789;
    meta::put(txn, &BlockLane { height: 300, txs: 7, evm_txs: 5, time, hash: (0..32).collect() });
    meta::put(txn, &CallLane { height: 299, calls: 12, complete_from: 290, untraced: vec![295, 298] });
    meta::put(
        txn,
        &PendingReindex { from: 250, to: 300, internal_txs: true, rich_list: true, removed: true },
    );
    meta::put(txn, &Rewinds { count: 3, last_to: 299 });
    txn.put::<Dictionary>(&258, &Message(DictionaryRow { kind: 1, bytes: vec![0xaa, 0xbb] }));
    txn.put::<Descriptors>(
        &[0xd5; 32],
        &Message(DescriptorSet { first_height: 4, compressed: vec![1, 2, 3] }),
    );
    let block = Block {
        first_tx: 6,
        txs: 2,
        first_evm_tx: 5,
        evm_txs: 1,
        time,
        json: br#"{"height":"300"}"#.to_vec(),
    };
    txn.put::<Blocks>(&300, &Message(block));
    txn.put::<BlockEvents>(&300, &br#"[{"type":"t","attributes":[]}]"#.to_vec());
}

fn tokens(txn: &mut Txn<'_>) {
    let token = TokenKey(Token::Erc20([0x0c; 20]));
    txn.put::<Tokens>(&token, &Message(FirstSeen { number: 3, height: 300 }));
    txn.put::<TokenNumbers>(&3, &token.to_bytes());
    txn.push::<TokensByType>(&token.type_byte(), 3).unwrap();
    txn.put::<TokenQuestions>(&4, &());
    txn.put::<TokenSearch>(&(1, Text::from("usdc"), 3), &());
    let reply = TokenReply {
        name: "USD Coin".to_owned(),
        name_outcome: Outcome::Known.into(),
        symbol: "USDC".to_owned(),
        symbol_outcome: Outcome::Known.into(),
        decimals: 6,
        decimals_outcome: Outcome::Known.into(),
        denom: "uusdc".to_owned(),
        is_erc721: false,
        height: 301,
        is_derived: true,
    };
    txn.put::<TokenReplies>(&token, &Message(reply));
}

fn ledger(txn: &mut Txn<'_>) {
    let (erc20, token) = (TokenKey(Token::Erc20([0x0c; 20])), TokenKey(Token::Denom("umin".to_owned())));
    let movement = Movement {
        message: Some(0),
        token: token.0.clone(),
        token_id: None,
        from: Some(person().0),
        to: Some(contract().0),
        amount: U256::from(300),
        kind: Kind::IbcOut,
        cause: Some(Cause::Packet {
            port: "transfer".to_owned(),
            channel: "channel-0".to_owned(),
            sequence: 7,
        }),
    };
    let burn = Movement {
        message: None,
        token: Token::Erc721([0x0d; 20]),
        token_id: Some("9".to_owned()),
        to: None,
        amount: U256::ONE,
        kind: Kind::Burn,
        cause: Some(Cause::Withdrawal { bridge: None, sequence: 2 }),
        ..movement.clone()
    };
    let placed = [(movement::Place::Tx(1), movement), (movement::Place::End, burn)];
    let placed = (0..).zip(placed).map(|(index, (place, movement))| PlacedMovement {
        height: 300,
        place,
        index,
        movement,
    });
    txn.put::<Movements>(&1, &MovementRow(placed.collect()));
    txn.push::<AccountMovements>(&(person(), Class::Out), 1).unwrap();
    txn.push::<AccountTokenMovements>(&(contract(), token.clone(), Class::In), 1).unwrap();
    txn.push::<TokenMovements>(&token, 1).unwrap();
    txn.put::<TokenDenoms>(&erc20, &"uusdc".to_owned());
    let change = schema::ledger::Change(U256::from(5).wrapping_neg());
    txn.put::<BalanceTotals>(&(erc20.clone(), Holder(None)), &Total { blocks: 33, change });
    txn.put::<BalanceChanges>(
        &(erc20.clone(), Holder(Some(person().0)), 32),
        &ChangeRow(vec![(300, change)]),
    );
    txn.put::<DenomTokens>(&Text::from("uusdc"), &erc20.to_bytes());
    let collection = TokenKey(Token::Collection([0x10; 32]));
    txn.put::<MovedNfts>(&(collection.clone(), Text::from("A 1")), &person().0.as_bytes().to_vec());
    txn.put::<NftObjects>(&contract(), &[collection.to_bytes(), b"A 1".to_vec()].concat());
    txn.put::<WholeTokens>(&TokenKey(Token::Cw20([0x0f; 32])), &300);
}

fn balances(txn: &mut Txn<'_>) {
    let token = TokenKey(Token::Denom("umin".to_owned()));
    txn.put::<Bases>(&(person(), token.clone()), &vec![1, 44]);
    txn.put::<AskedAccounts>(&person(), &());
    let state = TokenState {
        incomplete: true,
        proved: true,
        drifting: true,
        bases: vec![1, 44],
        denom: "umin".to_owned(),
    };
    txn.put::<TokenStates>(&token, &Message(state));
    let supply = SupplyReply { base: vec![1, 44], height: 300 };
    txn.put::<SupplyReplies>(&token, &Message(supply));
    txn.insert::<TokenHolders>(&token, &(amount(300), contract()), &()).unwrap();
}

fn packets(txn: &mut Txn<'_>) {
    let end = End { port: "transfer".to_owned(), channel: "channel-2".to_owned() };
    let own = PacketEnd { side: Side::Sent, end: end.clone() };
    let stage = |event| Some(Stage { height: 300, tx: 7, message: 1, event });
    let row = PacketRow {
        received: true,
        version: 1,
        source_port: "transfer".to_owned(),
        source_channel: "channel-2".to_owned(),
        destination_port: "transfer".to_owned(),
        destination_channel: "channel-0".to_owned(),
        sequence: 258,
        timeout_height: "1-300".to_owned(),
        timeout_time: 1_700_000_000_123_456_789,
        data: Some(Blob { bytes: vec![0xda; 2], len: 0 }),
        acknowledgement: Some(Blob { bytes: vec![0xac; 32], len: 65_537 }),
        state: PacketState::Failed as u32,
        send: stage(1),
        receive: stage(2),
        write_acknowledgement: stage(3),
        acknowledge: stage(4),
        timeout: stage(5),
        next: 4,
        previous: 2,
    };
    txn.put::<Packets>(&3, &Message(row));
    txn.put::<PacketNumbers>(&(own.clone(), 258), &3);
    txn.insert::<PacketsByState>(&(own.clone(), PacketState::TimedOut), &3, &()).unwrap();
    txn.push::<EndPackets>(&own, 3).unwrap();
    txn.push::<AccountPackets>(&Text::from("cosmos1a"), 3).unwrap();
    let channel = Channel {
        counterparty_port: "transfer".to_owned(),
        counterparty_channel: "channel-0".to_owned(),
        connection: "connection-0".to_owned(),
        ordering: "ORDER_UNORDERED".to_owned(),
        version: "ics20-1".to_owned(),
        state: ChannelStage::Closed.into(),
    };
    txn.insert::<Channels>(&(), &ChannelKey(end), &Message(channel)).unwrap();
    txn.put::<Connections>(&Text::from("connection-0"), &"07-tendermint-0".to_owned());
    let key = ChannelKey(End { port: "transfer".to_owned(), channel: "channel-0".to_owned() });
    let reply = Channel { connection: "connection-0".to_owned(), ..Channel::default() };
    txn.put::<ChannelReplies>(&key, &Message(reply));
}

fn amount(amount: u64) -> [u8; 32] {
    U256::from(amount).to_be_bytes()
}

fn cosmos(txn: &mut Txn<'_>) {
    let names = vec!["a.MsgOne".to_owned(), "b.MsgTwo".to_owned()];
    txn.put::<Txs>(&7, &plain(&Chunk::single(br#"{"txhash":"C0"}"#).take()));
    postings::add::<TxByHash>(txn, [(hash_prefix(&[0xc0; 32]), 7, 0)]);
    txn.put::<MsgSetByNames>(&Text(joined(&names)), &300);
    txn.put::<MsgSetByType>(&(Text(names[0].clone()), 300), &());
    txn.put::<MsgSets>(&300, &Message(MsgSet { names, first_tx: 7 }));
    txn.push::<AccountTxs>(&(person(), Role::Involved), 7).unwrap();
    txn.push::<AccountSetTxs>(&(person(), Role::Signer, 300), 7).unwrap();
    txn.push::<SetTxs>(&300, 7).unwrap();
}

fn evm(txn: &mut Txn<'_>) {
    let mut chunk = Chunk::default();
    chunk.push(b"{}");
    chunk.push(b"[1]");
    txn.put::<EvmTxs>(&5, &plain(&Chunk::single(br#"{"type":"0x2"}"#).take()));
    postings::add::<EvmTxByHash>(txn, [(hash_prefix(&[0xe5; 32]), 5, 0)]);
    txn.push::<AccountEvmTxs>(&(contract(), Role::Involved), 5).unwrap();
    txn.push::<RecipientEvmTxs>(&person(), 5).unwrap();
    txn.push::<LogTxs>(&fingerprint(Content::Address(&[0x0c; 20])), 5).unwrap();
    txn.push::<ContractTxs>(&person(), 7).unwrap();
    let header = EvmBlock {
        hash: vec![0xeb; 32],
        parent: vec![0xea; 32],
        tx_root: vec![0x74; 32],
        receipts_root: Vec::new(),
        gas_limit: 60_000_000,
        gas_used: 21_000,
        base_fee: vec![0x3b, 0x9a, 0xca, 0],
        ..EvmBlock::default()
    };
    txn.put::<EvmBlocks>(&299, &Message(header));
    postings::add::<EvmBlockByHash>(txn, [(hash_prefix(&[0xeb; 32]), 299, 0)]);
    txn.put::<Calls>(&11, &plain(&chunk.take()));
    txn.put::<CallErrors>(&12, &"execution reverted".to_owned());
    txn.put::<CallsByHeight>(&299, &Message(BlockCalls { first: 11, counts: vec![1, 1] }));
    for seq in [11, 300] {
        txn.push::<AccountCalls>(&contract(), seq).unwrap();
    }
}

fn nfts(txn: &mut Txn<'_>) {
    let time = 1_700_000_000_123_456_789;
    let address = contract().0.as_bytes().to_vec();
    let token = |id: &str| TokenName { collection: address.clone(), token_id: id.to_owned() };
    let collection = Collection {
        name: "ibc/A1".to_owned(),
        creator: vec![1; 20],
        height: 299,
        time,
        ..Collection::default()
    };
    let mint = Mint {
        token: token("#7"),
        owner: vec![2; 20],
        uri: "ipfs://7".to_owned(),
        object: vec![3; 32],
        outcome: Outcome::Known.into(),
    };
    let changes = [
        Change::Origin(Origin { local: "ibc/A1".to_owned(), origin: "Apes".to_owned() }),
        Change::Collection(NewCollection { address: address.clone(), collection }),
        Change::Mint(mint),
        Change::Transfer(Transfer { token: token("#7"), owner: vec![4; 20] }),
        Change::Uri(NewUri { token: token("#7"), uri: "ipfs://8".to_owned(), ..NewUri::default() }),
        Change::Burn(token("#8")),
        Change::Name(NewName { address: address.clone(), name: "ibc/A2".to_owned(), name_too_long: false }),
    ];
    for (ordinal, change) in (1..).zip(changes) {
        let entry = Entry { time, tx: 7, change: Some(change) };
        fold::record(txn, &Place::of_event(300, ordinal), entry).unwrap();
    }
    txn.put::<NonCollections>(&(person(), 300), &());
    let subject = Subject { address: address.clone(), token_id: "7".to_owned(), owner: vec![4; 20] };
    let question = Question { about: Some(About::Collection(subject)), ..Question::default() };
    txn.put::<Questions>(&Place::of_event(300, 9), &Message(question));
    let renewal = Renewal { range: vec![0; 64], next: 301 };
    txn.put::<Renewals>(&(contract(), 300, 9), &Message(renewal));
    let waiter =
        PendingEvent { time, tx: 7, kind: 1, token_id: Some("9".to_owned()), ..PendingEvent::default() };
    txn.put::<PendingEvents>(&(contract(), 300, 9), &Message(waiter));
}

fn rich_list(txn: &mut Txn<'_>) {
    let (token, account) = ([0x11; 20], [0x22; 20]);
    meta::put(txn, &RichLane { height: 300, baseline: 4, next_accounts: "AQ==".to_owned() });
    meta::put(txn, &ListedAccountTokens { balances: 300 });
    let mut before = rich::UndoBuilder::default();
    before.record::<Balances>(txn, &(token, account)).unwrap();
    let mut amount = [0; 32];
    amount[30..].copy_from_slice(&[0x01, 0x2c]);
    rich::set_balance(txn, &token, &account, Some(amount)).unwrap();
    rich::put_undo(txn, 300..=300, before).unwrap();
    txn.put::<Erc20s>(&token, &Message(Erc20 { complete: true, drifting: true, silent: true, coin: false }));
    txn.put::<NewContracts>(&account, &());
    txn.put::<Denoms>(&Text("l2/Ab".to_owned()), &token.to_vec());
    txn.put::<DenomsFolded>(&(Text("l2/ab".to_owned()), Text("l2/Ab".to_owned())), &());
}

/// The undo record of a commit that changed a row, added one, and extended a list.
fn undo_record() -> (RecordKey, Record) {
    let (store, mut counts) = (MemStore::new(), Counts::new(1));
    for height in [300, 301] {
        let snapshot = store.snapshot().unwrap();
        let mut txn = Txn::new(&*snapshot, &mut counts);
        meta::put(&mut txn, &BlockLane { height, ..BlockLane::default() });
        txn.put_unread::<Txs>(&height, &plain(b"{}"));
        txn.push::<SetTxs>(&300, height).unwrap();
        let (batch, _) = UndoLog::new(Lane::Blocks, Horizon::DEFAULT).finish(txn).unwrap();
        store.commit(batch, Durability::Buffered).unwrap();
    }
    let rows = store::table::rows::<UndoRecords>(&*store.snapshot().unwrap(), &All, Order::Desc, 1).unwrap();
    let (key, Message(record)) = rows.into_iter().next().unwrap();
    assert_eq!(record.size, 0, "compressed it would be other bytes with another version of zstd");
    (key, record)
}

fn dump() -> String {
    let store = example();
    let snapshot = store.snapshot().unwrap();
    let mut text = format!("format {}\n\n# table tag access\n", schema::FORMAT);
    for spec in TABLES {
        writeln!(text, "{} {:02x} {:?}", spec.name, spec.tag, spec.access).unwrap();
    }
    text.push_str("\n# table key value\n");
    for spec in TABLES {
        for (key, value) in snapshot.scan(spec, Bounds::all(), Order::Asc, 100).unwrap() {
            let value = if value.is_empty() { "-".to_owned() } else { hex::encode(value) };
            writeln!(text, "{} {} {value}", spec.name, hex::encode(key)).unwrap();
        }
    }
    text
}

#[test]
fn every_table_of_an_optional_index_is_a_table_of_the_database() {
    for index in schema::INDEXES {
        for table in index.tables {
            assert!(TABLES.iter().any(|known| known.name == table.name), "{}: {}", index.name, table.name);
        }
    }
}

#[test]
fn the_bytes_on_disk_are_those_of_the_golden() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(GOLDEN);
    let dumped = dump();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &dumped).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    for (ours, golden) in dumped.lines().zip(golden.lines()) {
        assert_eq!(ours, golden, "a database that exists has the bytes on the right: raise schema::FORMAT");
    }
    assert_eq!(dumped.lines().count(), golden.lines().count());
}

#[test]
fn every_table_has_an_example() {
    let store = example();
    let snapshot = store.snapshot().unwrap();
    for spec in TABLES {
        assert!(!snapshot.scan(spec, Bounds::all(), Order::Asc, 1).unwrap().is_empty(), "{}", spec.name);
    }
}

#[test]
fn names_and_tags_are_used_once() {
    for (i, spec) in TABLES.iter().enumerate() {
        for other in &TABLES[i + 1..] {
            assert_ne!(spec.name, other.name);
            assert_ne!(spec.tag, other.tag, "{} and {}", spec.name, other.name);
        }
    }
}

/// Stored rows decode, and encode to the stored bytes.
struct EveryRowComesBack<'a>(&'a MemStore);

impl EveryRowComesBack<'_> {
    fn rows(&self, spec: &'static store::TableSpec) -> Vec<Row> {
        self.0.snapshot().unwrap().scan(spec, Bounds::all(), Order::Asc, 100).unwrap()
    }
}

impl Visitor for EveryRowComesBack<'_> {
    fn table<T: Table>(&mut self) {
        for (key, value) in self.rows(T::SPEC) {
            let (decoded_key, decoded) = store::table::decode_row::<T>(&key, &value).unwrap();
            assert_eq!(decoded_key.to_bytes(), key, "{}", T::SPEC.name);
            assert_eq!(encoded(&decoded), value, "{}", T::SPEC.name);
        }
    }

    fn list<L: List>(&mut self) {
        for (key, value) in self.rows(L::SPEC) {
            let decoded = <(L::Owner, u64)>::from_bytes(&key).unwrap();
            assert_eq!(decoded.to_bytes(), key, "{}", L::SPEC.name);
            let entries: Vec<u8> = store::list::values(&value).unwrap().iter().flat_map(encoded).collect();
            assert_eq!(entries, value, "{}", L::SPEC.name);
        }
    }
}

#[test]
fn the_example_is_read_back_unchanged() {
    schema::visit(&mut EveryRowComesBack(&example()));
}

fn encoded(value: &impl Value) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut out);
    out
}

/// Any bytes as key and as value of every table.
struct AnyBytes<'a>(&'a [u8]);

impl AnyBytes<'_> {
    fn key<K: Key>(&self, table: &str) {
        if let Some(key) = K::from_bytes(self.0) {
            assert_eq!(key.to_bytes(), self.0, "two keys of `{table}` mean the same");
        }
    }

    fn value<V: Value>(&self, table: &str) {
        if let Some(value) = V::decode(self.0) {
            let once = encoded(&value);
            let again = V::decode(&once).unwrap_or_else(|| panic!("`{table}` cannot read what it writes"));
            assert_eq!(encoded(&again), once, "`{table}` changes what it reads");
        }
    }
}

impl Visitor for AnyBytes<'_> {
    fn table<T: Table>(&mut self) {
        self.key::<T::Key>(T::SPEC.name);
        self.value::<T::Value>(T::SPEC.name);
    }

    fn list<L: List>(&mut self) {
        self.key::<(L::Owner, u64)>(L::SPEC.name);
        self.value::<u64>(L::SPEC.name);
    }
}

/// The example's rows with damaged bytes: these get further into a decoder than random ones.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let store = example();
    let snapshot = store.snapshot().unwrap();
    let rows = TABLES.iter().flat_map(|spec| snapshot.scan(spec, Bounds::all(), Order::Asc, 100).unwrap());
    let samples: Vec<Vec<u8>> =
        rows.flat_map(|(key, value)| [key, value]).filter(|bytes| !bytes.is_empty()).collect();
    let damage = (any::<prop::sample::Index>(), any::<u8>(), any::<prop::sample::Index>());
    (prop::sample::select(samples), prop::collection::vec(damage, 0..3)).prop_map(|(mut bytes, damages)| {
        for (at, byte, length) in damages {
            let at = at.index(bytes.len());
            match byte % 4 {
                0 => bytes.truncate(length.index(bytes.len()) + 1),
                1 => bytes.insert(at, byte),
                _ => bytes[at] ^= byte,
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_bytes_make_a_decoder_panic_and_no_two_keys_mean_the_same(
        bytes in prop_oneof![damaged(), prop::collection::vec(any::<u8>(), 0..80)]
    ) {
        schema::visit(&mut AnyBytes(&bytes));
    }
}
