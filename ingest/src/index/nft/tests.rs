//! Random histories of tokens against a plain model, with delayed answers.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chain::nft::{NftEvent, TokenRef};
use chain::proof::Commitments;
use chain::record::Proposer;
use chain::{Account, Timestamp, Vm};
use proptest::prelude::*;
use schema::digest;
use schema::keys::AccountKey;
use schema::meta::BlockLane;
use schema::nft::{
    About, Collections, Holdings, HoldingsByHeight, NftLog, OwnedCollections, OwnedTokens,
    OwnedTokensByHeight, Questions, Token, Tokens, TokensByHeight, question_height, rebuild,
};
use schema::payload::Codec;
use store::key::{All, Text};
use store::{Batch, Counts, Durability, Key as _, MemStore, Message, Order, Ranked, Store, Table as _, Txn};

use super::NftRows;
use crate::derive::Block;
use crate::index::{BlockIndex as _, IndexContext};
use crate::nft::plan::final_owners;
use crate::nft::{Answers, LateAnswer, NftAt, QuestionKey, Reply};

/// The first declares ERC-721, the second is recognized by its tokens' owners, the third is not a collection.
const COLLECTIONS: u8 = 3;
const TOKENS: u8 = 4;
const OWNERS: u8 = 3;

#[derive(Clone, Copy, Debug)]
enum Event {
    Mint(u8, u8, u8),
    Transfer(u8, u8, u8),
    Burn(u8, u8),
}

fn event() -> impl Strategy<Value = Event> {
    let token = (0..COLLECTIONS, 0..TOKENS);
    prop_oneof![
        3 => (token.clone(), 0..OWNERS).prop_map(|((c, t), o)| Event::Mint(c, t, o)),
        3 => (token.clone(), 0..OWNERS).prop_map(|((c, t), o)| Event::Transfer(c, t, o)),
        2 => token.prop_map(|(c, t)| Event::Burn(c, t)),
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
    };
    let places = (2..).step_by(2);
    places.zip(events).map(|(place, of)| NftAt { place, tx: None, event: event(of) }).collect()
}

/// The chain's answer about a collection, if one of the tokens of `subject` decides it.
fn about_collection(of: Account, by_a_token: bool) -> Reply {
    match of.as_bytes()[0] - 0xc0 {
        0 => Reply::Collection { name: "zero".to_owned(), creator: None },
        1 if by_a_token => Reply::Collection { name: "one".to_owned(), creator: None },
        1 => Reply::Unknown,
        _ => Reply::No,
    }
}

fn uri(of: Account, token_id: &str, height: u64) -> String {
    format!("{:02x}/{token_id}@{height}", of.as_bytes()[0])
}

/// All answers of the chain about a block's tokens.
fn answers(height: u64, nfts: &[NftAt]) -> Answers {
    let owners = final_owners(nfts);
    let mut answers: Answers = (0..COLLECTIONS)
        .map(|n| {
            let left = owners.iter().any(|((of, _), owner)| *of == collection(n) && owner.is_some());
            (QuestionKey::Collection(collection(n)), about_collection(collection(n), left))
        })
        .collect();
    for ((of, token_id), _) in owners.iter().filter(|(_, owner)| owner.is_some()) {
        answers.insert(QuestionKey::Uri(*of, token_id.clone()), Reply::Uri(uri(*of, token_id, height)));
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

    fn apply(&mut self, height: u64, nfts: Vec<NftAt>, answers: Answers) {
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
            txs: Vec::new(),
            tx_records: Vec::new(),
            evm_txs: Vec::new(),
            evm_tx_records: Vec::new(),
            nfts,
            answers,
            erc20: Vec::new(),
            probe: None,
        };
        self.write(|rows, txn| rows.apply(&block, &BlockLane::default(), txn).unwrap());
    }

    /// Answers the open questions selected by `chosen`, until none of them is left.
    fn answer(&mut self, blocks: &[Vec<Event>], mut chosen: impl FnMut() -> bool) {
        let open = store::table::rows::<Questions>(&*self.store.snapshot().unwrap(), &All, Order::Asc, 1000)
            .unwrap();
        for (number, Message(question)) in open {
            if !chosen() {
                continue;
            }
            let height = question_height(number);
            let all = answers(height, &nfts(&blocks[usize::try_from(height).unwrap() - 1]));
            let asked = QuestionKey::of(question.about.as_ref().unwrap()).unwrap();
            let reply = match question.about.as_ref().unwrap() {
                About::Collection(subject) => about_collection(
                    Account::from_bytes(&subject.address).unwrap(),
                    !subject.owner.is_empty(),
                ),
                _ => all.get(&asked).cloned().unwrap_or(Reply::No),
            };
            let late = LateAnswer { number, question, reply };
            // A question may be asked twice before its answer is committed.
            self.write(|rows, txn| rows.late(&late, txn).unwrap());
            self.write(|rows, txn| rows.late(&late, txn).unwrap());
        }
    }

    fn digest(&self) -> Vec<digest::TableDigest> {
        digest::tables(&*self.store.snapshot().unwrap()).unwrap()
    }

    fn tokens(&self) -> BTreeMap<(Account, String), Token> {
        let rows =
            store::table::rows::<Tokens>(&*self.store.snapshot().unwrap(), &All, Order::Asc, 1000).unwrap();
        rows.into_iter().map(|((AccountKey(of), Text(id)), Message(token))| ((of, id), token)).collect()
    }
}

type Model = BTreeMap<(Account, String), (Account, String, u64)>;

/// The model's tokens after `blocks`, event by event.
fn model(blocks: &[Vec<Event>]) -> Model {
    let mut model = Model::new();
    let mut known: HashMap<Account, bool> = HashMap::new();
    for (height, events) in (1..).zip(blocks) {
        let nfts = nfts(events);
        let answers = answers(height, &nfts);
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
                (Some(to), Some(token)) if !minted => (token.0, token.2) = (to, height),
                (Some(to), _) => {
                    let uri = match answers.get(&QuestionKey::Uri(of, key.1.clone())) {
                        Some(Reply::Uri(uri)) => uri.clone(),
                        _ => String::new(),
                    };
                    model.insert(key, (to, uri, height));
                }
                (None, _) => drop(model.remove(&key)),
            }
        }
    }
    model
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
            (AccountKey(*of), Text(id.clone()), AccountKey(*owner), *height)
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn tokens_are_the_result_of_the_events_in_their_order(
        blocks in prop::collection::vec(prop::collection::vec(event(), 0..8), 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut subject = Subject::new();
        for (height, events) in (1..).zip(&blocks) {
            let nfts = nfts(events);
            let answers = answers(height, &nfts);
            subject.apply(height, nfts, answers);
        }
        let model = model(&blocks);
        let tokens = subject.tokens().into_iter();
        let tokens: Model = tokens
            .map(|(key, row)| (key, (Account::from_bytes(&row.owner).unwrap(), row.uri, row.height)))
            .collect();
        prop_assert_eq!(&tokens, &model);
        check_orders(&subject.store, &model);

        // Rewinds to any height, by folding the rest of the log, and indexes forward again.
        let end = subject.digest();
        let to = cut.index(blocks.len()) as u64;
        let mut batch = Batch::new();
        for height in to + 1..=blocks.len() as u64 {
            batch.delete(NftLog::SPEC, height.to_bytes());
        }
        let mut gone = subject.store.snapshot().unwrap().scan(
            schema::nft::NonCollections::SPEC, store::Bounds::all(), Order::Asc, 100).unwrap();
        gone.retain(|(_, value)| <u64 as store::Value>::decode(value).unwrap() > to);
        for (key, _) in gone {
            batch.delete(schema::nft::NonCollections::SPEC, key);
        }
        subject.store.commit(batch, Durability::Buffered).unwrap();
        rebuild::rebuild(&subject.store).unwrap();
        subject.counts = Counts::new(100);
        check_orders(&subject.store, &self::model(&blocks[..usize::try_from(to).unwrap()]));
        for (height, events) in (1..).zip(&blocks).skip(usize::try_from(to).unwrap()) {
            let nfts = nfts(events);
            let answers = answers(height, &nfts);
            subject.apply(height, nfts, answers);
        }
        prop_assert_eq!(subject.digest(), end);
    }

    #[test]
    fn delayed_answers_lead_to_the_same_rows(
        blocks in prop::collection::vec(prop::collection::vec(event(), 0..6), 1..10),
        luck in prop::collection::vec(any::<bool>(), 1..60),
    ) {
        let (mut at_once, mut late) = (Subject::new(), Subject::new());
        let mut luck = luck.iter().copied().cycle();
        for (height, events) in (1..).zip(&blocks) {
            let nfts = nfts(events);
            let answers = answers(height, &nfts);
            let some = answers.clone().into_iter().filter(|_| luck.next().unwrap()).collect();
            at_once.apply(height, nfts.clone(), answers);
            late.apply(height, nfts, some);
            late.answer(&blocks, || luck.next().unwrap());
        }
        let mut rounds = 0;
        while !late.store.snapshot().unwrap().scan(
            Questions::SPEC, store::Bounds::all(), Order::Asc, 1).unwrap().is_empty() {
            late.answer(&blocks, || true);
            rounds += 1;
            prop_assert!(rounds < 100, "questions stay open");
        }
        prop_assert_eq!(late.tokens(), at_once.tokens());
        prop_assert_eq!(late.digest(), at_once.digest());
    }
}
