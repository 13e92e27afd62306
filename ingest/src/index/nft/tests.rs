//! Random histories of tokens against a plain model, with delayed replies.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chain::comet::proof::Commitments;
use chain::nft::{NftEvent, TokenRef, Updated};
use chain::record::Proposer;
use chain::{Account, Text, Timestamp, U256, Vm};
use proptest::prelude::*;
use schema::block::Blocks;
use schema::digest;
use schema::keys::AccountKey;
use schema::meta::{self, BlockLane};
use schema::nft::{
    About, Collections, Holdings, HoldingsByHeight, NftLog, NonCollections, OwnedCollections, OwnedTokens,
    OwnedTokensByHeight, Questions, Token, Tokens, TokensByHeight, rebuild,
};
use schema::payload::Codec;
use schema::undo::{Horizon, Lane, UndoLog};
use store::key::All;
use store::{Batch, Counts, Durability, Key as _, MemStore, Message, Order, Ranked, Store, Table as _, Txn};

use super::NftRows;
use crate::derive::Block;
use crate::index::{BlockIndex as _, IndexContext};
use crate::nft::plan::final_owners;
use crate::nft::range::Asked;
use crate::nft::{LateReply, NftAt, QuestionKey, Replies, Reply};

/// The first declares ERC-721, the second is recognized by its tokens' owners, the third is not a collection, and the
/// fourth becomes one at a height.
const COLLECTIONS: u8 = 4;
const BECOMES_ONE: u64 = 4;
const TOKENS: u8 = 4;
const OWNERS: u8 = 3;

#[derive(Clone, Copy, Debug)]
enum Event {
    Mint(u8, u8, u8),
    Transfer(u8, u8, u8),
    Burn(u8, u8),
    Update(u8, u8),
    Range(u8, u8, u8),
    All(u8),
    Name(u8),
}

/// Events of the first `collections`, about ranges of tokens or not.
fn event(collections: u8, ranges: bool) -> impl Strategy<Value = Event> {
    let token = (0..collections, 0..TOKENS);
    let range = u32::from(ranges);
    prop_oneof![
        6 => (token.clone(), 0..OWNERS).prop_map(|((c, t), o)| Event::Mint(c, t, o)),
        6 => (token.clone(), 0..OWNERS).prop_map(|((c, t), o)| Event::Transfer(c, t, o)),
        4 => token.clone().prop_map(|(c, t)| Event::Burn(c, t)),
        3 => token.clone().prop_map(|(c, t)| Event::Update(c, t)),
        3 * range => (token, 0..TOKENS).prop_map(|((c, a), b)| Event::Range(c, a.min(b), a.max(b))),
        range => (0..collections).prop_map(Event::All),
        2 * range => (0..collections).prop_map(Event::Name),
    ]
}

fn collection(n: u8) -> Account {
    Account::from_bytes(&[0xc0 + n; 20]).unwrap()
}

fn owner(n: u8) -> Account {
    Account::from_bytes(&[0x10 + n; 20]).unwrap()
}

fn nfts(events: &[Event]) -> Vec<NftAt> {
    let id = |c, t: u8| TokenRef::Id { collection: collection(c), token_id: t.to_string() };
    let metadata = |c, tokens| NftEvent::Metadata { collection: collection(c), tokens };
    let event = |event: &Event| match *event {
        Event::Mint(c, t, o) => NftEvent::Mint {
            collection: collection(c),
            token_id: Some(t.to_string()),
            object: None,
            owner: Some(owner(o)),
            uri: None,
        },
        Event::Transfer(c, t, o) => NftEvent::Transfer { token: id(c, t), to: owner(o) },
        Event::Burn(c, t) => NftEvent::Burn { token: id(c, t) },
        Event::Update(c, t) => metadata(c, Updated::Token(t.to_string())),
        Event::Range(c, a, b) => metadata(c, Updated::Range(U256::from(a), U256::from(b))),
        Event::All(c) => metadata(c, Updated::All),
        Event::Name(c) => metadata(c, Updated::Name),
    };
    let places = (2..).step_by(2);
    places.zip(events).map(|(place, of)| NftAt { place, tx: None, event: event(of) }).collect()
}

/// The chain's reply about a collection, if one of the tokens of `subject` decides it.
fn about_collection(of: Account, height: u64, by_a_token: bool) -> Reply {
    let found = |name: &str| Reply::Collection { name: Text::Plain(name.to_owned()), creator: None };
    match of.as_bytes()[0] - 0xc0 {
        0 => found("zero"),
        1 if by_a_token => found("one"),
        1 => Reply::Unknown,
        3 if height >= BECOMES_ONE => found("three"),
        _ => Reply::No,
    }
}

/// The chain's reply about the name of a collection, which is refused at some heights.
fn about_name(height: u64) -> Reply {
    match height % 3 {
        0 => Reply::No,
        1 => Reply::named(Text::TooLong),
        _ => Reply::named(Text::Plain(format!("name@{height}"))),
    }
}

/// The chain's reply about a URI: some are refused at some heights, some too long.
fn about_uri(of: Account, token_id: &str, height: u64) -> Reply {
    let token: u64 = token_id.parse().unwrap();
    match (token, height % 4) {
        (0, 1..) | (1, 0 | 1) => Reply::No,
        (2, 2) => Reply::Uri(Text::TooLong),
        _ => Reply::Uri(Text::Plain(format!("{:02x}/{token_id}@{height}", of.as_bytes()[0]))),
    }
}

/// All replies of the chain about a block's tokens.
fn answers(height: u64, nfts: &[NftAt]) -> Replies {
    let owners = final_owners(nfts);
    let mut answers: Replies = (0..COLLECTIONS)
        .map(|n| {
            let left = owners.iter().any(|((of, _), owner)| *of == collection(n) && owner.is_some());
            (QuestionKey::Collection(collection(n)), about_collection(collection(n), height, left))
        })
        .collect();
    for ((of, token_id), _) in owners.iter().filter(|(_, owner)| owner.is_some()) {
        answers.insert(QuestionKey::Uri(*of, token_id.clone()), about_uri(*of, token_id, height));
    }
    answers
}

/// A database and the index that writes it.
struct Subject {
    store: MemStore,
    rows: NftRows,
    counts: Counts,
}

impl Subject {
    fn new() -> Self {
        let store = MemStore::new();
        let codec = Arc::new(Codec::load(&*store.snapshot().unwrap()).unwrap());
        let context = IndexContext { vm: Vm::Evm, prefix: "init".to_owned(), mid_chain: false, codec };
        Self { store, rows: NftRows::new(context), counts: Counts::new(100) }
    }

    fn write(&mut self, write: impl FnOnce(&mut NftRows, &mut Txn<'_>)) {
        let snapshot = self.store.snapshot().unwrap();
        let mut txn = Txn::new(&*snapshot, &mut self.counts);
        write(&mut self.rows, &mut txn);
        let (batch, pending) = txn.finish();
        drop(snapshot);
        self.store.commit(batch, Durability::Buffered).unwrap();
        self.counts.absorb(pending);
    }

    fn apply(&mut self, height: u64, nfts: Vec<NftAt>, answers: Replies) {
        let block = Block {
            height,
            hash: [0; 32],
            parent: None,
            claims: None,
            about_previous: Commitments { height, last_results_hash: None, app_hash: Vec::new() },
            answer: None,
            origins: None,
            chain_id: String::new(),
            time: Timestamp::from_unix_nanos(i64::try_from(height).unwrap()),
            gas_used: 0,
            gas_wanted: 0,
            fees: Vec::new(),
            proposer_address: [0; 20],
            proposer: Proposer::default(),
            proposer_is_open: false,
            txs: Vec::new(),
            tx_records: Vec::new(),
            evm_txs: Vec::new(),
            evm_tx_records: Vec::new(),
            unknown_types: 0,
            nfts,
            answers,
            erc20: Vec::new(),
            events: Vec::new(),
            probe: None,
        };
        let row = schema::block::Block { first_tx: 1, time: block.time.unix_nanos(), ..Default::default() };
        self.write(|rows, txn| {
            txn.put_unread::<Blocks>(&height, &Message(row));
            rows.apply(&block, &BlockLane::default(), txn).unwrap();
        });
    }

    /// Answers the open questions up to `height` that are selected by `chosen`. Returns whether there were any.
    fn answer(&mut self, height: u64, mut chosen: impl FnMut() -> bool) -> bool {
        let open = store::table::rows::<Questions>(&*self.store.snapshot().unwrap(), &All, Order::Asc, 1000)
            .unwrap();
        let open: Vec<_> = open.into_iter().filter(|(place, _)| place.height <= height).collect();
        for (place, Message(question)) in &open {
            if !chosen() {
                continue;
            }
            let asked =
                Asked::read(&*self.store.snapshot().unwrap(), &[(place.clone(), question.clone())]).unwrap();
            let account = |bytes: &[u8]| Account::from_bytes(bytes).unwrap();
            let reply = |about: &About| match about {
                About::Collection(subject) => {
                    about_collection(account(&subject.address), place.height, !subject.owner.is_empty())
                }
                About::Uri(token) => about_uri(account(&token.collection), &token.token_id, place.height),
                About::Name(_) => about_name(place.height),
                About::Object(_) | About::Range(_) | About::Proposer(_) => {
                    unreachable!("no chain is asked about these")
                }
            };
            let replies = asked.abouts().iter().map(|about| Ok(reply(about))).collect();
            let Some(reply) = asked.replies(replies).next().unwrap().unwrap() else { continue };
            let late = LateReply { place: place.clone(), question: question.clone(), reply };
            // A question may be asked twice before its reply is committed.
            self.write(|rows, txn| rows.late(&late, txn).unwrap());
            self.write(|rows, txn| rows.late(&late, txn).unwrap());
        }
        !open.is_empty()
    }

    /// Answers all questions up to `height`.
    fn answer_all(&mut self, height: u64) {
        for _ in 0..100 {
            if !self.answer(height, || true) {
                return;
            }
        }
        panic!("questions stay open");
    }

    fn digest(&self) -> Vec<digest::TableDigest> {
        digest::tables(&*self.store.snapshot().unwrap()).unwrap()
    }

    /// Owner, URI and height of each token.
    fn shown(&self) -> Model {
        let (tokens, snapshot) = (self.tokens(), self.store.snapshot().unwrap());
        let shown = |(key, row): (_, Token)| {
            let uri = schema::nft::uris(&*snapshot, &[&row]).unwrap().remove(0);
            (key, (Account::from_bytes(&row.owner).unwrap(), uri, row.height))
        };
        tokens.into_iter().map(shown).collect()
    }

    fn tokens(&self) -> BTreeMap<(Account, String), Token> {
        let rows =
            store::table::rows::<Tokens>(&*self.store.snapshot().unwrap(), &All, Order::Asc, 1000).unwrap();
        rows.into_iter().map(|((AccountKey(of), id), Message(token))| ((of, id.0), token)).collect()
    }
}

type Model = BTreeMap<(Account, String), (Account, String, u64)>;

/// A token of the model.
#[derive(Clone)]
struct Modelled {
    owner: Account,
    uri: String,
    height: u64,
    asked: u64,
    refusals: u32,
}

impl Modelled {
    fn ask(&mut self, (of, token_id): &(Account, String), height: u64) {
        self.asked = height;
        let reply = about_uri(*of, token_id, height);
        self.refusals = if reply == Reply::No { self.refusals + 1 } else { 0 };
        self.uri = match reply {
            Reply::Uri(uri) => uri.plain().unwrap_or_default(),
            _ => String::new(),
        };
    }
}

/// The model's tokens after `blocks`, event by event.
fn model(blocks: &[Vec<Event>]) -> Model {
    let mut model: BTreeMap<(Account, String), Modelled> = BTreeMap::new();
    let mut known: HashMap<Account, bool> = HashMap::new();
    for (height, events) in (1..).zip(blocks) {
        let nfts = nfts(events);
        let answers = answers(height, &nfts);
        let owners = final_owners(&nfts);
        for nft in &nfts {
            let (of, token_id, to) = match &nft.event {
                NftEvent::Mint { collection, token_id, owner, .. } => {
                    (*collection, token_id.clone().unwrap(), *owner)
                }
                NftEvent::Transfer { token: TokenRef::Id { collection, token_id }, to } => {
                    (*collection, token_id.clone(), Some(*to))
                }
                NftEvent::Burn { token: TokenRef::Id { collection, token_id } } => {
                    (*collection, token_id.clone(), None)
                }
                NftEvent::Metadata { collection, tokens: Updated::Token(token_id) } => {
                    let key = (*collection, token_id.clone());
                    let stays = owners.get(&key).is_none_or(Option::is_some);
                    let Some(token) = model.get_mut(&key).filter(|_| stays) else { continue };
                    if token.asked == height {
                        // The question of this block is the first after the change, whatever asked it.
                        token.refusals = token.refusals.min(1);
                    } else {
                        token.refusals = 0;
                        token.ask(&key, height);
                        token.height = height;
                    }
                    continue;
                }
                _ => unreachable!("no other events are made"),
            };
            let minted = matches!(nft.event, NftEvent::Mint { .. });
            // A burn causes no question about a contract.
            if to.is_some() && !known.get(&of).copied().unwrap_or_default() {
                let is_one =
                    matches!(answers.get(&QuestionKey::Collection(of)), Some(Reply::Collection { .. }));
                known.insert(of, is_one);
            }
            if !known.get(&of).copied().unwrap_or_default() {
                continue;
            }
            let key = (of, token_id);
            match (to, model.get_mut(&key)) {
                (Some(to), Some(token)) if !minted => {
                    (token.owner, token.height) = (to, height);
                    if token.refusals > 0 && height >= token.asked + (1 << (token.refusals - 1)) {
                        token.ask(&key, height);
                    }
                }
                (Some(to), _) => {
                    let mut token =
                        Modelled { owner: to, uri: String::new(), height, asked: height, refusals: 0 };
                    if owners[&key].is_some() {
                        token.ask(&key, height);
                    } else {
                        token.refusals = 1;
                    }
                    model.insert(key, token);
                }
                (None, _) => drop(model.remove(&key)),
            }
        }
    }
    model.into_iter().map(|(key, token)| (key, (token.owner, token.uri, token.height))).collect()
}

fn all<R: Ranked>(store: &MemStore) -> Vec<Vec<u8>> {
    let snapshot = store.snapshot().unwrap();
    let rows = snapshot.scan(R::SPEC, store::Bounds::all(), Order::Asc, 10_000).unwrap();
    let fresh = MemStore::new();
    let insert_all = |txn: &mut Txn<'_>| -> Result<(), store::Error> {
        for (key, value) in &rows {
            let ((owner, item), value) = store::table::decode_row::<R>(key, value)?;
            txn.insert::<R>(&owner, &item, &value)?;
        }
        Ok(())
    };
    store::commit_rows(&fresh, Durability::Buffered, insert_all).unwrap();
    let (start, end) = ([R::SPEC.tag], [R::SPEC.tag + 1]);
    let bounds = store::Bounds { start: &start, end: Some(&end) };
    let nodes =
        |snapshot: &dyn store::Snapshot| snapshot.scan(store::RANK, bounds, Order::Asc, usize::MAX).unwrap();
    assert_eq!(nodes(&*snapshot), nodes(&*fresh.snapshot().unwrap()), "the skip list is that of these items");
    rows.into_iter().map(|(key, _)| key).collect()
}

fn sorted(keys: impl Iterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    let mut keys: Vec<_> = keys.collect();
    keys.sort();
    keys.dedup();
    keys
}

/// Every list order contains exactly the model's tokens.
fn check_orders(store: &MemStore, model: &Model) {
    let rows = || {
        model.iter().map(|((of, id), (owner, _, height))| {
            (AccountKey(*of), store::key::Text(id.clone()), AccountKey(*owner), *height)
        })
    };
    assert_eq!(all::<Tokens>(store), sorted(rows().map(|(c, t, ..)| (c, t).to_bytes())));
    assert_eq!(all::<TokensByHeight>(store), sorted(rows().map(|(c, t, _, h)| (c, (h, t)).to_bytes())));
    assert_eq!(all::<OwnedTokens>(store), sorted(rows().map(|(c, t, o, h)| (o, (t, h, c)).to_bytes())));
    assert_eq!(
        all::<OwnedTokensByHeight>(store),
        sorted(rows().map(|(c, t, o, h)| (o, (h, t, c)).to_bytes()))
    );
    assert_eq!(all::<Holdings>(store), sorted(rows().map(|(c, t, o, _)| ((o, c), t).to_bytes())));
    assert_eq!(
        all::<HoldingsByHeight>(store),
        sorted(rows().map(|(c, t, o, h)| ((o, c), (h, t)).to_bytes()))
    );
    let snapshot = store.snapshot().unwrap();
    let shown =
        |of: AccountKey| store::table::read::<Collections>(&*snapshot, &of).unwrap().unwrap().0.height;
    assert_eq!(
        all::<OwnedCollections>(store),
        sorted(rows().map(|(c, _, o, _)| (o, (shown(c), c)).to_bytes()))
    );
}

/// The bytes of a commit with its undo record.
fn commit_with_undo(subject: &mut Subject, write: impl FnOnce(&mut NftRows, &mut Txn<'_>)) -> usize {
    let snapshot = subject.store.snapshot().unwrap();
    let mut txn = Txn::new(&*snapshot, &mut subject.counts);
    write(&mut subject.rows, &mut txn);
    let (batch, pending) = UndoLog::new(Lane::Blocks, Horizon::DEFAULT).finish(txn).unwrap();
    drop(snapshot);
    let bytes = batch.bytes();
    subject.store.commit(batch, Durability::Buffered).unwrap();
    subject.counts.absorb(pending);
    bytes
}

/// A text that does not compress.
fn noise(length: usize, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut character = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + u8::try_from(state % 90).unwrap())
    };
    (0..length).map(|_| character()).collect()
}

#[test]
fn late_answers_write_at_most_three_times_their_text_undo_included() {
    let mut subject = Subject::new();
    let mint = |token: u64| NftEvent::Mint {
        collection: collection(0),
        token_id: Some(token.to_string()),
        object: None,
        owner: Some(owner(0)),
        uri: None,
    };
    let tokens = 1000;
    let nfts: Vec<NftAt> = (0..tokens)
        .map(|token| NftAt { place: 2 * (u32::try_from(token).unwrap() + 1), tx: None, event: mint(token) })
        .collect();
    let update = |place, tokens| {
        let event = NftEvent::Metadata { collection: collection(0), tokens };
        vec![NftAt { place, tx: None, event }]
    };
    let lane = |txn: &mut Txn<'_>, height| meta::put(txn, &BlockLane { height, ..BlockLane::default() });
    let answer = about_collection(collection(0), 1, true);
    subject.apply(1, nfts, Replies::from([(QuestionKey::Collection(collection(0)), answer)]));
    subject.write(|_, txn| lane(txn, 1));
    // At the mint, and again after an update of all tokens, with the former URIs as prior values.
    for height in [1, 2] {
        if height == 2 {
            subject.apply(2, update(2, Updated::All), Replies::new());
            subject.write(|_, txn| lane(txn, 2));
        }
        let (mut text, mut written, mut answered) = (0, 0, 0);
        loop {
            let open =
                store::table::rows::<Questions>(&*subject.store.snapshot().unwrap(), &All, Order::Asc, 256)
                    .unwrap();
            let open = open.into_iter().find(|(_, row)| !matches!(row.0.about, Some(About::Name(_))));
            let Some((place, Message(question))) = open else { break };
            let asked =
                Asked::read(&*subject.store.snapshot().unwrap(), &[(place.clone(), question.clone())]);
            let asked = asked.unwrap();
            let replies = asked.abouts().iter().map(|_| {
                answered += 1;
                text += 2000;
                Ok(Reply::Uri(Text::Plain(noise(2000, answered))))
            });
            let replies = replies.collect();
            let reply = asked.replies(replies).next().unwrap().unwrap().unwrap();
            let late = LateReply { place, question, reply };
            written += commit_with_undo(&mut subject, |rows, txn| rows.late(&late, txn).unwrap());
        }
        eprintln!("height {height}: {answered} late URIs, {text} bytes of text, {written} bytes written");
        assert_eq!(answered, tokens, "height {height}");
        assert!(written <= 3 * text, "height {height}: {written} bytes for {text}");
    }
    // A transfer does not write the URI again.
    let token = TokenRef::Id { collection: collection(0), token_id: "7".to_owned() };
    let event = NftEvent::Transfer { token, to: owner(1) };
    let before = subject.store.snapshot().unwrap();
    let mut txn = Txn::new(&*before, &mut subject.counts);
    let (answers, owners) = (Replies::new(), HashMap::new());
    let at = super::applier::At { height: 3, time: 3 };
    let context = &subject.rows.context;
    let mut applier = super::NftApplier::new(context, at, &answers, &owners, &mut txn);
    applier.event(&NftAt { place: 2, tx: None, event }, 0).unwrap();
    assert!(txn.bytes() < 2000, "{} bytes for a transfer", txn.bytes());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn tokens_are_the_result_of_the_events_in_their_order(
        blocks in prop::collection::vec(prop::collection::vec(event(3, false), 0..8), 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut subject = Subject::new();
        for (height, events) in (1..).zip(&blocks) {
            let nfts = nfts(events);
            let answers = answers(height, &nfts);
            subject.apply(height, nfts, answers);
            subject.answer_all(height);
        }
        let model = model(&blocks);
        prop_assert_eq!(&subject.shown(), &model);
        check_orders(&subject.store, &model);

        // Rewinds to any height, by folding the rest of the log, and indexes forward again.
        let end = subject.digest();
        let to = cut.index(blocks.len()) as u64;
        let mut batch = Batch::new();
        let snapshot = subject.store.snapshot().unwrap();
        let log = store::table::rows::<NftLog>(&*snapshot, &All, Order::Asc, 10_000).unwrap();
        for (place, _) in log.into_iter().filter(|(place, _)| place.height > to) {
            batch.delete(NftLog::SPEC, place.to_bytes());
        }
        let refused = store::table::rows::<NonCollections>(&*snapshot, &All, Order::Asc, 100).unwrap();
        for (key, ()) in refused.into_iter().filter(|((_, found_at), ())| *found_at > to) {
            batch.delete(NonCollections::SPEC, key.to_bytes());
        }
        drop(snapshot);
        subject.store.commit(batch, Durability::Buffered).unwrap();
        rebuild::rebuild(&subject.store).unwrap();
        subject.counts = Counts::new(100);
        check_orders(&subject.store, &self::model(&blocks[..usize::try_from(to).unwrap()]));
        for (height, events) in (1..).zip(&blocks).skip(usize::try_from(to).unwrap()) {
            let nfts = nfts(events);
            let answers = answers(height, &nfts);
            subject.apply(height, nfts, answers);
            subject.answer_all(height);
        }
        prop_assert_eq!(subject.digest(), end);
    }

    #[test]
    fn delayed_answers_lead_to_the_same_rows(
        blocks in prop::collection::vec(prop::collection::vec(event(COLLECTIONS, true), 0..6), 1..16),
        luck in prop::collection::vec(any::<bool>(), 1..60),
    ) {
        let (mut at_once, mut late) = (Subject::new(), Subject::new());
        let mut luck = luck.iter().copied().cycle();
        for (height, events) in (1..).zip(&blocks) {
            let nfts = nfts(events);
            let answers = answers(height, &nfts);
            let some = answers.clone().into_iter().filter(|_| luck.next().unwrap()).collect();
            at_once.apply(height, nfts.clone(), answers);
            at_once.answer_all(height);
            late.apply(height, nfts, some);
            late.answer(height, || luck.next().unwrap());
        }
        late.answer_all(blocks.len() as u64);
        prop_assert_eq!(late.shown(), at_once.shown());
        prop_assert_eq!(late.tokens(), at_once.tokens());
        prop_assert_eq!(late.digest(), at_once.digest());
        // The rows follow from the log.
        rebuild::rebuild(&late.store).unwrap();
        prop_assert_eq!(late.tokens(), at_once.tokens());
    }
}

#[test]
fn a_collection_has_the_name_of_its_newest_event_whenever_the_replies_come() {
    let rename = || nfts(&[Event::Name(0), Event::All(0), Event::Name(2)]);
    let of = |answered: [u64; 3]| {
        let mut subject = Subject::new();
        let mint = nfts(&[Event::Mint(0, 0, 0), Event::Mint(2, 0, 0)]);
        let replies = answers(1, &mint);
        subject.apply(1, mint, replies);
        // At 3 the contract refuses, at 5 it has a name, at 8 another.
        for height in [3, 5, 8] {
            subject.apply(height, rename(), Replies::new());
            let open =
                store::table::rows::<Questions>(&*subject.store.snapshot().unwrap(), &All, Order::Asc, 9);
            let names = open
                .unwrap()
                .into_iter()
                .filter(|(place, row)| place.height == height && matches!(row.0.about, Some(About::Name(_))));
            assert_eq!(names.count(), 1, "one a block, and none about an address without tokens");
        }
        let mut names = Vec::new();
        for height in answered {
            let place = |place: &schema::nft::Place| place.height == height;
            let open =
                store::table::rows::<Questions>(&*subject.store.snapshot().unwrap(), &All, Order::Asc, 9);
            for (place, Message(question)) in open.unwrap().into_iter().filter(|(of, _)| place(of)) {
                if let Some(About::Name(_)) = question.about {
                    let late = LateReply { place, question, reply: about_name(height) };
                    subject.write(|rows, txn| rows.late(&late, txn).unwrap());
                }
            }
            let row = store::table::read::<Collections>(
                &*subject.store.snapshot().unwrap(),
                &AccountKey(collection(0)),
            );
            names.push(row.unwrap().unwrap().0.name);
        }
        let by_name = store::table::rows::<schema::nft::CollectionsByName>(
            &*subject.store.snapshot().unwrap(),
            &All,
            Order::Asc,
            9,
        );
        let by_name: Vec<_> = by_name.unwrap().into_iter().map(|((name, _), ())| name.0).collect();
        assert_eq!(by_name, ["name@8"]);
        subject.answer_all(8);
        (names, subject.digest())
    };
    let in_order = of([3, 5, 8]);
    assert_eq!(in_order.0, ["zero", "name@5", "name@8"]);
    let backwards = of([8, 5, 3]);
    assert_eq!(backwards.0, ["name@8", "name@8", "name@8"]);
    assert_eq!(in_order.1, backwards.1);
}
