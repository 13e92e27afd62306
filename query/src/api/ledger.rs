//! Movements of tokens.

use std::str::FromStr as _;

use chain::movement::{self, Token, metadata_of_denom};
use chain::{Account, Vm};
use schema::keys::AccountKey;
use schema::ledger::{self, AccountMovements, AccountTokenMovements, Class, LEDGER, TokenMovements};
use schema::movement::{Place, TokenKey};
use serde::Deserialize;
use store::{List, Snapshot};
use web::call::Call;
use web::endpoint::{Endpoint, Param, Type};
use web::http_error::HttpError;
use web::reply::Reply;

use super::{ListRequest, Tag, block, tx};
use crate::array::union::Union;
use crate::array::{Array, Run};
use crate::cursor::Space;
use crate::indexer::Indexer;
use crate::params;
use crate::transfer_record;
use crate::v1::ListTransfersResponse;

const PAGES: Param = Param::Group(&params::pages(Space::Transfers));

pub(super) const FROM_HEIGHT: Param =
    Param::query("from_height", Type::Between(0, i64::MAX), "Not before this block; 0 for the first.");

pub(super) const TO_HEIGHT: Param =
    Param::query("to_height", Type::Between(0, i64::MAX), "Not after this block; 0 for the last.");

pub(super) const TOKEN: &str =
    "A denom (slashes as %2F in a path), or the address of a contract or of Move's metadata object.";

const TAG: Tag = Tag("Ledger");

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    TAG.list::<ListTransfersResponse>(
        "/indexer/ledger/v1/transfers",
        "All movements of tokens. Like all of this group it needs the optional index `ledger`: 404 if it is not stored, 503 \
         while it is being built.",
        &[FROM_HEIGHT, TO_HEIGHT, PAGES],
        transfers,
    ),
    TAG.list::<ListTransfersResponse>(
        "/indexer/ledger/v1/transfers/by_account/{account}",
        "Movements from and to an account, without fees and without movements of nothing unless they are wanted.",
        &[
            Param::path_of("account", params::ADDRESS, "Bech32 or hex."),
            Param::query("direction", Type::TextsOf(DIRECTIONS), "Any of in, out and self; all if absent."),
            Param::query_or("include_fees", Type::Boolean, "false", "Fees and their refunds too."),
            Param::query_or(
                "include_zero",
                Type::Boolean,
                "false",
                "Movements of the amount 0 too, which strangers can log about any account.",
            ),
            Param::query("token", Type::String, TOKEN),
            FROM_HEIGHT,
            TO_HEIGHT,
            PAGES,
        ],
        by_account,
    ),
    TAG.list::<ListTransfersResponse>(
        "/indexer/ledger/v1/transfers/by_token/{token}",
        "Movements of a token.",
        &[Param::path("token", TOKEN), FROM_HEIGHT, TO_HEIGHT, PAGES],
        by_token,
    ),
    TAG.list::<ListTransfersResponse>(
        "/indexer/ledger/v1/transfers/by_height/{height}",
        "Movements of a block.",
        &[Param::path_of("height", params::HEIGHT, "A height, 1 or more."), PAGES],
        by_height,
    ),
    TAG.list::<ListTransfersResponse>(
        "/indexer/ledger/v1/transfers/by_tx/{tx_hash}",
        "Movements of a transaction.",
        &[
            Param::path_of("tx_hash", params::HASH, "The Cosmos hash in hex, with or without 0x."),
            PAGES,
        ],
        by_tx,
    ),
];

/// An expression for the values of `direction`.
const DIRECTIONS: &str = r"^\s*(in|out|self)?\s*(,\s*(in|out|self)?\s*)*$";

/// A request for movements, whose index is complete.
struct Request<'a>(ListRequest<'a, u64>);

impl<'a> Request<'a> {
    fn new(indexer: &'a Indexer, call: &Call<'_>) -> Result<Self, HttpError> {
        let request = ListRequest::new(indexer, call, Space::Transfers)?;
        request.view.require(&LEDGER)?;
        Ok(Self(request))
    }

    fn snapshot(&self) -> &dyn Snapshot {
        self.0.snapshot()
    }

    fn all(&self) -> Result<Run, HttpError> {
        let state = LEDGER.state(self.snapshot()).map_err(HttpError::internal)?;
        Ok(Run { first: 1, len: state.map_or(0, |state| state.numbered) })
    }

    /// The movements from one place on and before another one.
    fn between(&self, from: (u64, Place), to: (u64, Place)) -> Result<Run, HttpError> {
        let len = self.all()?.len;
        let before = |(height, place): (u64, Place)| {
            ledger::position(self.snapshot(), len, height, place).map_err(HttpError::internal)
        };
        let (start, end) = (before(from)?, before(to)?);
        Ok(Run { first: start + 1, len: end.saturating_sub(start) })
    }

    /// The movements of the blocks that the parameters select; `None` without them.
    fn range(&self, call: &Call<'_>) -> Result<Option<Run>, HttpError> {
        let (from, to) = (height(call, "from_height")?, height(call, "to_height")?);
        if from.is_none() && to.is_none() {
            return Ok(None);
        }
        let end = to.map_or(u64::MAX, |to| to + 1);
        self.between((from.unwrap_or(0), Place::Begin), (end, Place::Begin)).map(Some)
    }

    /// The union of disjoint lists, within the blocks that the parameters select.
    fn union<L: List>(&self, call: &Call<'_>, owners: Vec<L::Owner>) -> Result<Reply, HttpError> {
        let union = Union::<L>::new(self.snapshot(), owners).map_err(HttpError::internal)?;
        match self.range(call)? {
            None => self.respond(&union),
            Some(run) => self.respond(&union.within(run).map_err(HttpError::internal)?),
        }
    }

    fn respond(&self, array: &dyn Array<Row = u64>) -> Result<Reply, HttpError> {
        self.0.respond("transfers", array, None, |out, numbers| {
            transfer_record::transfers(self.0.indexer, self.snapshot(), out, numbers)
        })
    }
}

fn transfers(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let request = Request::new(indexer, call)?;
    let run = request.range(call)?;
    request.respond(&run.map_or_else(|| request.all(), Ok)?)
}

fn by_account(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let account = AccountKey(holder(indexer, params::account(call, indexer)?));
    let mut classes = directions(call)?;
    if call.boolean("include_fees", false) {
        classes.push(Class::Fee);
    }
    if call.boolean("include_zero", false) {
        classes.push(Class::Nothing);
    }
    let request = Request::new(indexer, call)?;
    let Some(text) = call.first("token") else {
        let owners = classes.into_iter().map(|class| (account, class)).collect();
        return request.union::<AccountMovements>(call, owners);
    };
    let tokens = tokens(indexer, request.snapshot(), text)?;
    let of_token = |token: &Token| {
        let key = TokenKey(token.clone());
        classes.iter().map(move |class| (account, key.clone(), *class)).collect::<Vec<_>>()
    };
    request.union::<AccountTokenMovements>(call, tokens.iter().flat_map(of_token).collect())
}

fn by_token(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let request = Request::new(indexer, call)?;
    let tokens = tokens(indexer, request.snapshot(), call.text("token"))?;
    request.union::<TokenMovements>(call, tokens.into_iter().map(TokenKey).collect())
}

fn by_height(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let height = params::height(call)?;
    let request = Request::new(indexer, call)?;
    request.respond(&request.between((height, Place::Begin), (height + 1, Place::Begin))?)
}

fn by_tx(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    /// The member of a record that is needed here.
    #[derive(Deserialize)]
    struct Head<'a> {
        height: &'a str,
    }
    let unknown =
        || HttpError::not_found(format!("[NOT_FOUND] transaction not found: {}", call.text("tx_hash")));
    let hash = params::hash(call)?.ok_or_else(unknown)?;
    let request = Request::new(indexer, call)?;
    let (seq, record) = tx::find(indexer, &request.0.view, &hash, b"")?.ok_or_else(unknown)?;
    let head: Head<'_> = serde_json::from_slice(&record).map_err(HttpError::internal)?;
    let height = head.height.parse().map_err(HttpError::internal)?;
    let block = block::at(&request.0.view, height)?;
    let place = block.map_or(0, |block| seq.saturating_sub(block.first_tx));
    let run = request.between((height, Place::Tx(place)), (height, Place::Tx(place + 1)))?;
    request.respond(&run)
}

/// A height in a query parameter; 0 is none.
pub(super) fn height(call: &Call<'_>, name: &str) -> Result<Option<u64>, HttpError> {
    let Some(text) = call.first(name) else { return Ok(None) };
    let height: i64 = text.parse().unwrap_or(-1);
    let invalid = |_| {
        HttpError::bad_request(format!(
            "[INVALID_VALUE] invalid value for {name}: {} (must be a height, 0 or more)",
            params::shown(text)
        ))
    };
    u64::try_from(height).map(|height| (height > 0).then_some(height)).map_err(invalid)
}

/// The classes that `direction` names; all of them if there is none.
fn directions(call: &Call<'_>) -> Result<Vec<Class>, HttpError> {
    let named = [("out", Class::Out), ("in", Class::In), ("self", Class::ToItself)];
    let texts = call.all("direction").flat_map(|value| value.split(',')).map(str::trim);
    let mut classes = Vec::new();
    for text in texts.filter(|text| !text.is_empty()) {
        let Some((_, class)) = named.iter().find(|(name, _)| *name == text) else {
            return Err(HttpError::bad_request(format!(
                "[INVALID_VALUE] invalid value for direction: {} (must be any of in, out, self)",
                params::shown(text)
            )));
        };
        if !classes.contains(class) {
            classes.push(*class);
        }
    }
    Ok(if classes.is_empty() { named.map(|(_, class)| class).to_vec() } else { classes })
}

fn vm(indexer: &Indexer) -> Vm {
    Vm::from_str(&indexer.identity.vm).unwrap_or(Vm::None)
}

/// The account that has the balances of `account`.
pub(super) fn holder(indexer: &Indexer, account: Account) -> Account {
    movement::holder(vm(indexer), account)
}

/// The tokens with this name or address: a contract may be an ERC-20, an ERC-721 or an ERC-1155.
pub(super) fn tokens(
    indexer: &Indexer,
    snapshot: &dyn Snapshot,
    text: &str,
) -> Result<Vec<Token>, HttpError> {
    let unknown = || HttpError::not_found(format!("[NOT_FOUND] token not found: {}", params::shown(text)));
    Ok(match vm(indexer) {
        Vm::Evm => {
            let digits = text.strip_prefix("evm/").map(|digits| digits.trim_start_matches("0x"));
            let literal = digits.map_or_else(|| text.to_owned(), |digits| format!("0x{digits}"));
            let contract = Account::from_hex_literal(&literal);
            let contract = contract.and_then(|account| <[u8; 20]>::try_from(account.as_bytes()).ok());
            match (contract, digits) {
                (Some(contract), Some(_)) => vec![Token::Erc20(contract)],
                (Some(contract), None) => {
                    vec![Token::Erc20(contract), Token::Erc721(contract), Token::Erc1155(contract)]
                }
                (None, _) => {
                    let token = ledger::token_of_denom(snapshot, text).map_err(HttpError::internal)?;
                    vec![token.ok_or_else(unknown)?]
                }
            }
        }
        Vm::Move => {
            let literal = text.starts_with("0x").then(|| format!("move/{}", &text[2..]));
            let object = metadata_of_denom(literal.as_deref().unwrap_or(text)).ok_or_else(unknown)?;
            vec![Token::Asset(object)]
        }
        Vm::Wasm | Vm::None => {
            let contract = Account::from_bech32(text, indexer.prefix());
            let contract = contract.and_then(|account| <[u8; 32]>::try_from(account.as_bytes()).ok());
            vec![contract.map_or_else(|| Token::Denom(text.to_owned()), Token::Cw20)]
        }
    })
}
