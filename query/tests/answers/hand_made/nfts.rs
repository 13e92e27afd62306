//! NFTs in a hand-made database, written as by the indexer, with a model of the contents.

use std::collections::BTreeMap;

use chain::Account;
use proptest::prelude::*;
use schema::keys::AccountKey;
use schema::nft::fold::record;
use schema::nft::{Change, Collection, Entry, Mint, NewCollection, Origin, Place, TokenName, Transfer};
use serde_json::{Value, json};
use store::Key as _;

use super::walk::Listing;
use super::{HandMade, account};

/// Ids with characters that are special in paths, queries or orders.
pub(crate) const IDS: [&str; 10] = ["#1", "a/b", "ü é", "", "1", "10", "2", "a\0b", "a", "%2525"];

/// Names of collections, by number.
pub(crate) const NAMES: [&str; 5] = ["Alpha Cats", "alpha-dogs!", "ibc/AB12", "猫 №½", "!!"];

/// Operations, by numbers of collections, [`IDS`] and accounts.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Collect(usize),
    Mint(usize, usize, u8),
    Give(usize, usize, u8),
    Burn(usize, usize),
    Name(usize),
}

/// The database and the model.
pub(crate) struct Nfts {
    pub(crate) made: HandMade,
    height: u64,
    /// Height and name on the chain of origin, by number.
    collections: BTreeMap<usize, (u64, String)>,
    /// AccountKey and height, by numbers of collection and id.
    tokens: BTreeMap<(usize, usize), (u8, u64)>,
    origins: BTreeMap<usize, String>,
}

/// Address of collection number `n`.
pub(crate) fn collection(n: usize) -> Account {
    // Their order by number differs from that by address.
    Account::from_bytes(&[0xf0 - 7 * u8::try_from(n).unwrap(); 20]).unwrap()
}

/// An id as encoded in a path or a query.
pub(crate) fn escaped(text: &str) -> String {
    text.bytes().flat_map(|byte| ['%', digit(byte / 16), digit(byte % 16)]).collect()
}

fn digit(value: u8) -> char {
    char::from_digit(value.into(), 16).unwrap()
}

pub(crate) fn ops() -> impl Strategy<Value = Vec<Vec<Op>>> {
    let (collection, id, owner) = (0..NAMES.len(), 0..IDS.len(), 0_u8..3);
    let op = prop_oneof![
        2 => collection.clone().prop_map(Op::Collect),
        6 => (collection.clone(), id.clone(), owner.clone()).prop_map(|(c, id, to)| Op::Mint(c, id, to)),
        3 => (collection.clone(), id.clone(), owner).prop_map(|(c, id, to)| Op::Give(c, id, to)),
        1 => (collection.clone(), id).prop_map(|(c, id)| Op::Burn(c, id)),
        1 => collection.prop_map(Op::Name),
    ];
    prop::collection::vec(prop::collection::vec(op, 0..8), 1..9)
}

impl Nfts {
    pub(crate) fn new(vm: &str) -> Self {
        Self {
            made: HandMade::new(vm, 1),
            height: 0,
            collections: BTreeMap::new(),
            tokens: BTreeMap::new(),
            origins: BTreeMap::new(),
        }
    }

    /// The next block, with the possible ones of `ops`: a missing token cannot move.
    pub(crate) fn block(&mut self, ops: &[Op]) {
        self.height += 1;
        let mut entries = Vec::new();
        for op in ops {
            let Some(change) = self.apply(op) else { continue };
            entries.push(Entry { time: time(self.height), tx: 0, change: Some(change) });
        }
        let height = self.height;
        self.made.write(|txn| {
            for (ordinal, entry) in (0..).zip(entries) {
                record(txn, &Place::of_event(height, ordinal), entry).unwrap();
            }
        });
    }

    fn apply(&mut self, op: &Op) -> Option<Change> {
        let at = |height| move |(owner, _): (u8, u64)| (owner, height);
        let name = |c: &usize, id: &usize| TokenName {
            collection: collection(*c).as_bytes().to_vec(),
            token_id: IDS[*id].to_owned(),
        };
        let bytes = |owner: &u8| account(*owner).as_bytes().to_vec();
        Some(match op {
            Op::Collect(c) => {
                if self.collections.contains_key(c) {
                    return None;
                }
                let origin = self.origins.get(c).cloned().unwrap_or_default();
                self.collections.insert(*c, (self.collected_at(*c), origin));
                Change::Collection(NewCollection {
                    address: collection(*c).as_bytes().to_vec(),
                    collection: Collection {
                        name: NAMES[*c].to_owned(),
                        creator: if *c == 0 { Vec::new() } else { bytes(&1) },
                        height: self.collected_at(*c),
                        time: time(self.collected_at(*c)),
                        ..Collection::default()
                    },
                })
            }
            Op::Mint(c, id, owner) => {
                self.collections.get(c)?;
                self.tokens.insert((*c, *id), at(self.height)((*owner, 0)));
                let uri = format!("uri:{c}/{id}");
                Change::Mint(Mint { token: name(c, id), owner: bytes(owner), uri, ..Mint::default() })
            }
            Op::Give(c, id, owner) => {
                *self.tokens.get_mut(&(*c, *id))? = (*owner, self.height);
                Change::Transfer(Transfer { token: name(c, id), owner: bytes(owner) })
            }
            Op::Burn(c, id) => {
                self.tokens.remove(&(*c, *id))?;
                Change::Burn(name(c, id))
            }
            Op::Name(c) => {
                if self.origins.contains_key(c) {
                    return None;
                }
                let origin = format!("From afar {c}");
                self.origins.insert(*c, origin.clone());
                if let Some((_, known)) = self.collections.get_mut(c) {
                    known.clone_from(&origin);
                }
                Change::Origin(Origin { local: NAMES[*c].to_owned(), origin })
            }
        })
    }

    /// Some collections have a height long before they were indexed, as on an EVM chain.
    fn collected_at(&self, c: usize) -> u64 {
        if c.is_multiple_of(2) { self.height } else { self.height / 2 }
    }

    fn collection_record(&self, c: usize) -> Value {
        let (height, origin) = &self.collections[&c];
        let creator = if c == 0 { String::new() } else { account(1).to_bech32("init") };
        let length = self.tokens.keys().filter(|(of, _)| *of == c).count();
        json!({
            "object_addr": collection(c).to_hex(),
            "collection": {
                "creator": creator, "name": NAMES[c], "origin_name": origin,
                "nfts": {"handle": "", "length": length},
            },
            "height": height, "timestamp": timestamp(*height),
        })
    }

    fn token_record(&self, c: usize, id: usize) -> Value {
        let (owner, height) = self.tokens[&(c, id)];
        json!({
            "collection_addr": collection(c).to_hex(), "collection_name": NAMES[c],
            "collection_origin_name": self.collections[&c].1, "object_addr": "",
            "owner": account(owner).to_bech32("init"),
            "nft": {"token_id": IDS[id], "uri": format!("uri:{c}/{id}")},
            "height": height, "timestamp": timestamp(height),
        })
    }

    /// The list of collections at `path` that shows the `wanted` ones.
    pub(crate) fn collections(&self, path: &str, wanted: impl Fn(usize) -> bool) -> Listing {
        let mut items: Vec<(u64, Vec<u8>, usize)> = self
            .collections
            .iter()
            .filter(|(c, _)| wanted(**c))
            .map(|(c, (height, _))| (*height, AccountKey(collection(*c)).to_bytes(), *c))
            .collect();
        items.sort();
        Listing {
            target: format!("/indexer/nft/v1/collections{path}?"),
            member: "collections",
            rows: items.iter().map(|(_, _, c)| self.collection_record(*c)).collect(),
        }
    }

    /// True if a search for `part`, which is normalized, finds a collection.
    pub(crate) fn is_found(&self, c: usize, part: &str) -> bool {
        let (_, origin) = &self.collections[&c];
        [NAMES[c], origin].iter().any(|name| chain::nft::normalized_name(name).contains(part))
    }

    /// True if an account has a token of a collection.
    pub(crate) fn holds(&self, owner: u8, c: usize) -> bool {
        self.tokens.iter().any(|((of, _), (by, _))| *of == c && *by == owner)
    }

    /// The list of tokens at `target` that shows the `wanted` ones, by collection, id and owner.
    pub(crate) fn tokens(
        &self,
        target: String,
        by_height: bool,
        wanted: impl Fn(usize, usize, u8) -> bool,
    ) -> Listing {
        let mut items: Vec<_> = self
            .tokens
            .iter()
            .filter(|((c, id), (owner, _))| wanted(*c, *id, *owner))
            .map(|((c, id), (_, height))| (*height, IDS[*id].as_bytes(), collection(*c).to_hex(), *c, *id))
            .collect();
        if by_height {
            items.sort();
        } else {
            items.sort_by(|a, b| (a.1, a.0, &a.2).cmp(&(b.1, b.0, &b.2)));
        }
        Listing {
            target,
            member: "tokens",
            rows: items.iter().map(|(.., c, id)| self.token_record(*c, *id)).collect(),
        }
    }
}

/// Header time of a block: not on a whole microsecond.
fn time(height: u64) -> i64 {
    i64::try_from(height).unwrap() * 1_000_000_000 + 505_620_999
}

fn timestamp(height: u64) -> String {
    format!("1970-01-01T00:00:{height:02}.50562Z")
}
