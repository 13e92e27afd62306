//! The form of movements on disk.

use chain::movement::{Cause, Kind, Movement, Token};
use chain::{Account, U256};
use serde_json::{Value as Json, json};
use store::key::Text;
use store::value::{put_varint, take_varint};
use store::{Key, Value};

/// A token as a key: one byte of its type, then its address, or the text of its denom.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenKey(pub Token);

impl TokenKey {
    /// The byte of its type.
    pub fn type_byte(&self) -> u8 {
        token_type(&self.0)
    }
}

impl Key for TokenKey {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(token_type(&self.0));
        match &self.0 {
            Token::Erc20(contract) | Token::Erc721(contract) | Token::Erc1155(contract) => {
                out.extend_from_slice(contract);
            }
            Token::Asset(object) | Token::Cw20(object) | Token::Collection(object) | Token::Cw721(object) => {
                out.extend_from_slice(object);
            }
            Token::Denom(denom) => Text(denom.clone()).put(out),
        }
    }

    fn put_json(&self, out: &mut Vec<Json>) {
        out.push(token_json(&self.0));
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        let (kind, rest) = input.split_first()?;
        *input = rest;
        Some(Self(match kind {
            1 => Token::Erc20(take(input)?),
            2 => Token::Asset(take(input)?),
            3 => Token::Denom(Text::take(input)?.0),
            4 => Token::Cw20(take(input)?),
            5 => Token::Erc721(take(input)?),
            6 => Token::Erc1155(take(input)?),
            7 => Token::Collection(take(input)?),
            8 => Token::Cw721(take(input)?),
            _ => return None,
        }))
    }
}

fn token_type(token: &Token) -> u8 {
    match token {
        Token::Erc20(_) => 1,
        Token::Asset(_) => 2,
        Token::Denom(_) => 3,
        Token::Cw20(_) => 4,
        Token::Erc721(_) => 5,
        Token::Erc1155(_) => 6,
        Token::Collection(_) => 7,
        Token::Cw721(_) => 8,
    }
}

fn token_json(token: &Token) -> Json {
    match token {
        Token::Erc20(contract) => json!(["erc20", hex::encode(contract)]),
        Token::Asset(object) => json!(["asset", hex::encode(object)]),
        Token::Denom(denom) => json!(["denom", denom]),
        Token::Cw20(contract) => json!(["cw20", hex::encode(contract)]),
        Token::Erc721(contract) => json!(["erc721", hex::encode(contract)]),
        Token::Erc1155(contract) => json!(["erc1155", hex::encode(contract)]),
        Token::Collection(object) => json!(["collection", hex::encode(object)]),
        Token::Cw721(contract) => json!(["cw721", hex::encode(contract)]),
    }
}

/// Where in a block a movement is from, in the order of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The block, before its transactions.
    Begin,
    /// The transaction with this number in the block, from 0.
    Tx(u64),
    /// The block, after its transactions.
    End,
}

/// A movement with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedMovement {
    /// The block.
    pub height: u64,
    /// The place in the block.
    pub place: Place,
    /// Its number among the movements of the block, from 0.
    pub index: u64,
    /// The movement.
    pub movement: Movement,
}

/// Consecutive movements. Each is:
///
/// | height (varint) | place: 0 begin, 1 end, else transaction + 2 (varint) | index (varint) | message + 1, or 0 (varint) | kind (1) |
/// token ([`TokenKey`]) | token id, if its type has some | from, to, each: 0, or length and bytes | amount | cause |
///
/// Numbers of 256 bits are their length and their bytes, big-endian without leading zeros. A cause is 0, or 1, port, channel and
/// sequence of a packet, or 2 (deposit) or 3 (withdrawal), bridge + 1 or 0, and sequence (varints); a text is its length
/// and its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MovementRow(pub Vec<PlacedMovement>);

impl MovementRow {
    /// The movement at `at` of a stored row. Those after it are not read.
    pub fn nth(mut row: &[u8], at: u64) -> Option<PlacedMovement> {
        for _ in 0..at {
            take_placed(&mut row)?;
        }
        take_placed(&mut row)
    }
}

impl Value for MovementRow {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.iter().for_each(|placed| put(placed, out));
    }

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            all.push(take_placed(&mut bytes)?);
        }
        Some(Self(all)).filter(|all| !all.0.is_empty())
    }

    fn json(&self) -> Json {
        self.0.iter().map(json_of).collect()
    }
}

fn put(placed: &PlacedMovement, out: &mut Vec<u8>) {
    let PlacedMovement { height, place, index, movement } = placed;
    let place = match place {
        Place::Begin => 0,
        Place::End => 1,
        Place::Tx(tx) => tx.saturating_add(2),
    };
    let message = movement.message.map_or(0, |message| u64::from(message) + 1);
    for number in [*height, place, *index, message] {
        put_varint(number, out);
    }
    // There are some ten kinds.
    let kind = Kind::ALL.iter().position(|kind| *kind == movement.kind).unwrap_or_default();
    out.push(u8::try_from(kind).unwrap_or_default());
    TokenKey(movement.token.clone()).put(out);
    let id = movement.token_id.as_deref().unwrap_or_default();
    match ids(&movement.token) {
        Ids::None => {}
        Ids::Numbers => put_number(U256::from_str_radix(id, 10).unwrap_or_default(), out),
        Ids::Texts => put_bytes(id.as_bytes(), out),
    }
    for side in [movement.from, movement.to] {
        put_bytes(side.as_ref().map_or(&[], Account::as_bytes), out);
    }
    put_number(movement.amount, out);
    match &movement.cause {
        None => out.push(0),
        Some(Cause::Packet { port, channel, sequence }) => {
            out.push(1);
            put_bytes(port.as_bytes(), out);
            put_bytes(channel.as_bytes(), out);
            put_varint(*sequence, out);
        }
        Some(Cause::Deposit { bridge, sequence }) => put_bridge(2, *bridge, *sequence, out),
        Some(Cause::Withdrawal { bridge, sequence }) => put_bridge(3, *bridge, *sequence, out),
    }
}

fn put_bridge(kind: u8, bridge: Option<u64>, sequence: u64, out: &mut Vec<u8>) {
    out.push(kind);
    put_varint(bridge.map_or(0, |bridge| bridge.saturating_add(1)), out);
    put_varint(sequence, out);
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn put_number(number: U256, out: &mut Vec<u8>) {
    put_bytes(&number.to_be_bytes_trimmed_vec(), out);
}

fn take_placed(input: &mut &[u8]) -> Option<PlacedMovement> {
    let height = take_varint(input)?;
    let place = match take_varint(input)? {
        0 => Place::Begin,
        1 => Place::End,
        tx => Place::Tx(tx - 2),
    };
    let (index, message) = (take_varint(input)?, take_varint(input)?);
    let message = message.checked_sub(1).map(u32::try_from).transpose().ok()?;
    let [kind] = take(input)?;
    let kind = *Kind::ALL.get(usize::from(kind))?;
    let TokenKey(token) = TokenKey::take(input)?;
    let token_id = match ids(&token) {
        Ids::None => None,
        Ids::Numbers => Some(take_number(input)?.to_string()),
        Ids::Texts => Some(String::from_utf8(take_bytes(input)?.to_vec()).ok()?),
    };
    let mut side = || {
        let bytes = take_bytes(input)?;
        if bytes.is_empty() { Some(None) } else { Account::from_bytes(bytes).map(Some) }
    };
    let (from, to) = (side()?, side()?);
    let amount = take_number(input)?;
    let cause = take_cause(input)?;
    let movement = Movement { message, token, token_id, from, to, amount, kind, cause };
    Some(PlacedMovement { height, place, index, movement })
}

#[expect(clippy::option_option, reason = "no cause is not an unreadable one")]
fn take_cause(input: &mut &[u8]) -> Option<Option<Cause>> {
    let [kind] = take(input)?;
    let mut text = || String::from_utf8(take_bytes(input)?.to_vec()).ok();
    Some(Some(match kind {
        0 => return Some(None),
        1 => {
            let (port, channel) = (text()?, text()?);
            Cause::Packet { port, channel, sequence: take_varint(input)? }
        }
        2 | 3 => {
            let (bridge, sequence) = (take_varint(input)?.checked_sub(1), take_varint(input)?);
            if kind == 2 {
                Cause::Deposit { bridge, sequence }
            } else {
                Cause::Withdrawal { bridge, sequence }
            }
        }
        _ => return None,
    }))
}

fn take<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(*bytes)
}

fn take_bytes<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take_varint(input)?).ok()?;
    let (bytes, rest) = input.split_at_checked(len)?;
    *input = rest;
    Some(bytes)
}

fn take_number(input: &mut &[u8]) -> Option<U256> {
    let bytes = take_bytes(input).filter(|bytes| bytes.first() != Some(&0))?;
    U256::try_from_be_slice(bytes)
}

/// What a contract tells its tokens apart by.
enum Ids {
    None,
    Numbers,
    Texts,
}

fn ids(token: &Token) -> Ids {
    match token {
        Token::Erc721(_) | Token::Erc1155(_) => Ids::Numbers,
        Token::Collection(_) | Token::Cw721(_) => Ids::Texts,
        Token::Erc20(_) | Token::Asset(_) | Token::Denom(_) | Token::Cw20(_) => Ids::None,
    }
}

fn json_of(placed: &PlacedMovement) -> Json {
    let PlacedMovement { height, place, index, movement } = placed;
    let account = |account: &Option<Account>| account.map(|account| hex::encode(account.as_bytes()));
    let place = match place {
        Place::Begin => json!("begin"),
        Place::Tx(tx) => json!(tx),
        Place::End => json!("end"),
    };
    let cause = match &movement.cause {
        None => Json::Null,
        Some(Cause::Packet { port, channel, sequence }) => json!(["packet", port, channel, sequence]),
        Some(Cause::Deposit { bridge, sequence }) => json!(["deposit", bridge, sequence]),
        Some(Cause::Withdrawal { bridge, sequence }) => json!(["withdrawal", bridge, sequence]),
    };
    json!({
        "height": height,
        "place": place,
        "index": index,
        "message": movement.message,
        "kind": movement.kind.name(),
        "token": token_json(&movement.token),
        "token_id": movement.token_id,
        "from": account(&movement.from),
        "to": account(&movement.to),
        "amount": movement.amount.to_string(),
        "cause": cause,
    })
}
