//! The optional index `ledger`: movements of tokens, lists of them, and the changes of balances that follow.

pub use crate::balance_change::{
    BalanceChanges, BalanceTotals, Change, ChangeRow, History, Holder, Total, has_balances, is_negative,
};

mod nfts;

use std::str::FromStr as _;

use chain::Vm;
use chain::comet::Event;
use chain::comet::order::is_of_the_end;
use chain::evm::ethereum_events;
use chain::movement::{Found, Kind, Movement, Reader, Source, Token};
use serde_json::Value as Json;
use store::key::Text;
use store::{Bounds, Key, List as _, Order, Snapshot, Table as _, prefix_end};

use crate::Error;
use crate::balance_change::BlockChanges;
use crate::block::BlockEvents;
use crate::index::{Index, Input, Rows, StoredBlock};
use crate::keys::AccountKey;
use crate::meta::Identity;
use crate::movement::{MovementRow, Place, PlacedMovement, TokenKey};
use crate::records::damaged;
use crate::tx::{TxRecord, Txs};

pub(crate) use self::nfts::named_by;

/// The index.
pub const LEDGER: Index = Index {
    name: "ledger",
    version: 1,
    tables: &[
        Movements::SPEC,
        AccountMovements::SPEC,
        AccountTokenMovements::SPEC,
        TokenMovements::SPEC,
        TokenDenoms::SPEC,
        DenomTokens::SPEC,
        BalanceTotals::SPEC,
        BalanceChanges::SPEC,
        WholeTokens::SPEC,
        MovedNfts::SPEC,
        NftObjects::SPEC,
    ],
    replies: &[],
    input: Input::Records,
    needs_evm: false,
    rows,
};

store::tables! {
    /// Movements of tokens ([`chain::movement`]), numbered from 1 in the order of the chain.
    ///
    /// | number of the row's first movement (8, BE) | → up to 32 movements ([`MovementRow`])
    pub table Movements("movement", 0x70, Scan): u64 => MovementRow;

    /// Movements of an account, oldest first: each in one list of the account.
    ///
    /// | account (1 + 20 or 32) | class: 0 out, 1 in, 2 to itself, 3 fee, 4 nothing (1) | first ordinal (8, BE) | → up to 32
    /// numbers (varints)
    pub list AccountMovements("account_movement", 0x71): (AccountKey, Class);

    /// Movements of an account that are of one token, oldest first.
    ///
    /// | account (1 + 20 or 32) | token | class (1) | first ordinal (8, BE) | → up to 32 numbers (varints)
    pub list AccountTokenMovements("account_token_movement", 0x72): (AccountKey, TokenKey, Class);

    /// Movements of a token, oldest first.
    ///
    /// | token | first ordinal (8, BE) | → up to 32 numbers (varints)
    pub list TokenMovements("token_movement", 0x73): TokenKey;

    /// The bank denoms of contracts and of Move's assets, as the chain writes them.
    ///
    /// | token | → denom (text)
    pub table TokenDenoms("token_denom", 0x74, Point): TokenKey => String;

    /// The contracts and assets of bank denoms.
    ///
    /// | denom (escaped text) | → token
    pub table DenomTokens("denom_token", 0x75, Point): Text => Vec<u8>;

    /// CW20 contracts whose movements are all there since they exist. Of the others the first balances are unknown: they are
    /// older than the first block, or another contract instantiated them, which is in no message and no event.
    ///
    /// | token | → height (8, BE)
    pub table WholeTokens("whole_token", 0x6c, Point): TokenKey => u64;

    /// The owners of Move's NFTs and of cw721s after their last movement.
    ///
    /// | token | id (escaped text) | → account (20 or 32 bytes); empty if it was burned
    pub table MovedNfts("moved_nft", 0x6d, Point): (TokenKey, Text) => Vec<u8>;

    /// The collections and the ids of Move's NFTs.
    ///
    /// | object (1 + 20 or 32) | → token, id (text)
    pub table NftObjects("moved_nft_object", 0x6e, Point): AccountKey => Vec<u8>;
}

/// What a movement is to an account; one byte of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The account gave.
    Out,
    /// The account received.
    In,
    /// Both.
    ToItself,
    /// It paid a fee, was paid one, or a part of one was given back.
    Fee,
    /// The amount is 0, which strangers can log about any account.
    Nothing,
}

impl Class {
    /// Every class; the place of a class is its number on disk.
    pub const ALL: [Self; 5] = [Self::Out, Self::In, Self::ToItself, Self::Fee, Self::Nothing];

    fn name(self) -> &'static str {
        match self {
            Self::Out => "out",
            Self::In => "in",
            Self::ToItself => "self",
            Self::Fee => "fee",
            Self::Nothing => "zero",
        }
    }
}

impl Key for Class {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }

    fn put_json(&self, out: &mut Vec<Json>) {
        out.push(self.name().into());
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        Self::ALL.get(usize::from(u8::take(input)?)).copied()
    }
}

/// Movements of a row: as few reads as for the lists, and as many appends.
const ROW: u64 = store::list::ROW;

/// The key of the row of a movement.
pub fn row_of(number: u64) -> u64 {
    number - number.saturating_sub(1) % ROW
}

/// Number of movements before the first one that is at `place` of the block `height` or later, of all `len`.
pub fn position(snapshot: &dyn Snapshot, len: u64, height: u64, place: Place) -> Result<u64, Error> {
    let is_before = |placed: &PlacedMovement| (placed.height, placed.place) < (height, place);
    // Rows before `low` have only earlier movements, rows from `high` on only others.
    let (mut low, mut high) = (0, len.div_ceil(ROW));
    while low < high {
        let middle = low.midpoint(high);
        let row = read_row(snapshot, middle * ROW + 1)?;
        match row.0.partition_point(is_before) {
            0 => high = middle,
            all if all == row.0.len() => low = middle + 1,
            some => return Ok(middle * ROW + some as u64),
        }
    }
    Ok(len.min(low * ROW))
}

/// The movements with these numbers, in their order.
pub fn movements(snapshot: &dyn Snapshot, numbers: &[u64]) -> Result<Vec<PlacedMovement>, Error> {
    let mut firsts: Vec<u64> = numbers.iter().map(|number| row_of(*number)).collect();
    firsts.sort_unstable();
    firsts.dedup();
    let keys: Vec<_> = firsts.iter().map(Key::to_bytes).collect();
    let rows = snapshot.multi_get(Movements::SPEC, &keys)?;
    let of = |number: &u64| {
        let first = row_of(*number);
        let row = firsts.binary_search(&first).ok().and_then(|at| rows.get(at)?.as_deref());
        let row = row.ok_or_else(|| damaged::<Movements>(first, "the row is missing"))?;
        MovementRow::nth(row, number - first).ok_or_else(|| {
            damaged::<Movements>(first, &format!("it has no movement {number} that can be read"))
        })
    };
    numbers.iter().map(of).collect()
}

/// The row that begins with the movement `first`.
pub fn read_row(snapshot: &dyn Snapshot, first: u64) -> Result<MovementRow, Error> {
    let row = store::table::read::<Movements>(snapshot, &first)?;
    row.ok_or_else(|| damaged::<Movements>(first, "the row is missing"))
}

fn rows(block: &StoredBlock<'_>, rows: &mut Rows<'_, '_>) -> Result<(), Error> {
    let chain = rows.chain();
    let mut writer = Writer { height: block.height, index: 0, changes: BlockChanges::default(), rows };
    find(block, chain, &mut |place, found| writer.write(place, found))?;
    writer.changes.write(block.height, writer.rows)
}

/// Calls `see` with what moves and is named at each place of a block, in order.
pub(crate) fn find(
    block: &StoredBlock<'_>,
    chain: &Identity,
    see: &mut dyn FnMut(Place, Found) -> Result<(), Error>,
) -> Result<(), Error> {
    let vm = Vm::from_str(&chain.vm).unwrap_or(Vm::None);
    let reader = Reader::new(vm, &chain.prefix);
    let events = block.events()?;
    let damaged_events = |error: serde_json::Error| damaged::<BlockEvents>(block.height, &error.to_string());
    let events: Vec<Event<'_>> = if events.is_empty() {
        Vec::new()
    } else {
        serde_json::from_slice(&events).map_err(damaged_events)?
    };
    let (end, begin): (Vec<_>, Vec<_>) = events.into_iter().partition(is_of_the_end);

    see(Place::Begin, reader.read(Source::Block, &begin))?;
    let mut place = 0;
    block.txs(|seq, record| {
        let tx = Place::Tx(place);
        place += 1;
        if !reader.may_move(record) {
            return Ok(());
        }
        let invalid = |error: serde_json::Error| damaged::<Txs>(seq, &error.to_string());
        let mut content = TxRecord::read(record).map_err(invalid)?;
        content.events.extend(ethereum_events::events_of_record(record));
        let messages = if reader.needs_messages(record) { content.messages() } else { Vec::new() };
        see(tx, reader.read(Source::Tx(&messages), &content.events))
    })?;
    see(Place::End, reader.read(Source::Block, &end))
}

/// Writes the movements of a block.
struct Writer<'r, 't, 's> {
    height: u64,
    /// The number of the next movement in the block.
    index: u64,
    changes: BlockChanges,
    rows: &'r mut Rows<'t, 's>,
}

impl Writer<'_, '_, '_> {
    fn write(&mut self, place: Place, found: Found) -> Result<(), Error> {
        let Found { mut movements, denoms, nfts, whole } = found;
        for (message, event) in nfts {
            movements.extend(nfts::movement(self.rows, message, event)?);
        }
        for (token, denom) in denoms {
            let token = TokenKey(token);
            self.rows.put_first::<TokenDenoms>(&token, &denom)?;
            self.rows.put_first::<DenomTokens>(&Text(denom), &token.to_bytes())?;
        }
        for token in whole {
            self.rows.put_first::<WholeTokens>(&TokenKey(token), &self.height)?;
        }
        for movement in movements {
            let number = self.rows.number();
            self.list(number, &movement)?;
            self.changes.add(&movement);
            let placed = PlacedMovement { height: self.height, place, index: self.index, movement };
            self.rows.append::<Movements>(&row_of(number), &MovementRow(vec![placed]));
            self.index += 1;
        }
        Ok(())
    }

    fn list(&mut self, number: u64, movement: &Movement) -> Result<(), Error> {
        let token = TokenKey(movement.token.clone());
        let (from, to) = (movement.from, movement.to.filter(|to| movement.from != Some(*to)));
        let sides = [(from, Class::Out), (to, Class::In)];
        for (account, side) in sides.into_iter().filter_map(|(account, side)| Some((account?, side))) {
            let class = class_of(movement, side);
            self.rows.push::<AccountMovements>(&(AccountKey(account), class), number)?;
            self.rows.push::<AccountTokenMovements>(&(AccountKey(account), token.clone(), class), number)?;
        }
        self.rows.push::<TokenMovements>(&token, number)
    }
}

/// The first `limit` tokens behind `after` that have moved from or to `account`, in the order of their keys.
pub fn tokens_of(
    snapshot: &dyn Snapshot,
    account: AccountKey,
    after: Option<&TokenKey>,
    order: Order,
    limit: usize,
) -> Result<Vec<TokenKey>, Error> {
    let (mut start, mut end) = (Some(account.to_bytes()), prefix_end(&account.to_bytes()));
    let (mut found, mut last) = (Vec::new(), after.cloned());
    while found.len() < limit {
        if let Some(token) = last {
            let rows = (account, token).to_bytes();
            match order {
                Order::Asc => start = prefix_end(&rows),
                Order::Desc => end = Some(rows),
            }
        }
        let Some(from) = &start else { break };
        let bounds = Bounds { start: from, end: end.as_deref() };
        let Some((key, _)) = snapshot.scan(AccountTokenMovements::SPEC, bounds, order, 1)?.pop() else {
            break;
        };
        let mut rest = key.as_slice();
        let token = AccountKey::take(&mut rest).and_then(|_| TokenKey::take(&mut rest)).ok_or_else(|| {
            store::table::corrupt(AccountTokenMovements::SPEC, &key, "the key does not decode")
        })?;
        found.push(token.clone());
        last = Some(token);
    }
    Ok(found)
}

/// What a movement is to the account on its side `side`.
pub fn class_of(movement: &Movement, side: Class) -> Class {
    match movement.kind {
        _ if movement.amount.is_zero() => Class::Nothing,
        Kind::Fee | Kind::FeeRefund => Class::Fee,
        _ if movement.from == movement.to => Class::ToItself,
        _ => side,
    }
}

/// The height since which all movements of a CW20 are there; `None` if its first balances are unknown.
pub fn whole_from(snapshot: &dyn Snapshot, token: &Token) -> Result<Option<u64>, Error> {
    Ok(store::table::read::<WholeTokens>(snapshot, &TokenKey(token.clone()))?)
}

/// The denom that the chain's events have named a contract or an asset by.
pub fn denom_of(snapshot: &dyn Snapshot, token: &Token) -> Result<Option<String>, Error> {
    Ok(store::table::read::<TokenDenoms>(snapshot, &TokenKey(token.clone()))?)
}

/// The token of a bank denom that is exactly `denom`, on a chain where another source counts than the bank.
pub fn token_of_denom(snapshot: &dyn Snapshot, denom: &str) -> Result<Option<Token>, Error> {
    let key = Text(denom.to_owned());
    let row = store::table::read::<DenomTokens>(snapshot, &key)?;
    let invalid = || store::table::corrupt(DenomTokens::SPEC, &key.to_bytes(), "the value is not a token");
    Ok(row
        .map(|row| TokenKey::from_bytes(&row).ok_or_else(invalid))
        .transpose()?
        .map(|TokenKey(token)| token))
}
