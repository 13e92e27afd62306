//! Tokens that have moved, with what the node says of them.

use chain::movement::Token;
use schema::movement::TokenKey;
use schema::tokens::{self, TOKENS, Tokens, TokensByType};
use store::Message;
use web::call::Call;
use web::endpoint::{Endpoint, Param, Type};
use web::http_error::HttpError;
use web::limits::lane;
use web::reply::Reply;

use super::ledger::{self, TAG, TOKEN};
use super::{ListRequest, one};
use crate::array::set::InMemory;
use crate::array::union::Union;
use crate::array::{Array, Run};
use crate::cursor::Space;
use crate::indexer::Indexer;
use crate::params;
use crate::token_record;
use crate::v1::{GetLedgerTokenResponse, ListLedgerTokensResponse};

const PAGES: Param = Param::Group(&params::pages(Space::LedgerTokens));

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    TAG.list::<ListLedgerTokensResponse>(
        "/indexer/ledger/v1/tokens",
        "Tokens, in the order in which they were first seen. Like the next one it needs the optional index `tokens`: 404 if it is \
         not stored, 503 while it is being built.",
        &[
            Param::query("type", Type::TextsOf(TYPES), "Any of erc20, fa, bank, cw20, erc721, erc1155, collection and cw721; all if absent."),
            Param::query("search", Type::String, "The beginning of a symbol or denom, in any case."),
            PAGES,
        ],
        list,
    ),
    TAG.list::<GetLedgerTokenResponse>(
        "/indexer/ledger/v1/tokens/{token}",
        "One token. Of a contract that emits movements of several types, the first one that was seen.",
        &[Param::path("token", TOKEN)],
        by_name,
    ),
];

/// An expression for the values of `type`.
const TYPES: &str = r"^\s*(erc20|fa|bank|cw20|erc721|erc1155|collection|cw721)?\s*(,\s*(erc20|fa|bank|cw20|erc721|erc1155|collection|cw721)?\s*)*$";

/// Types by name, with an example that has the byte of their keys.
static NAMED: [(&str, Token); 8] = [
    ("erc20", Token::Erc20([0; 20])),
    ("fa", Token::Asset([0; 32])),
    ("bank", Token::Denom(String::new())),
    ("cw20", Token::Cw20([0; 32])),
    ("erc721", Token::Erc721([0; 20])),
    ("erc1155", Token::Erc1155([0; 20])),
    ("collection", Token::Collection([0; 32])),
    ("cw721", Token::Cw721([0; 32])),
];

/// Tokens that a search finds.
const MAX_FOUND: usize = 10_000;

fn list(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let types = types(call)?;
    let text = call.first("search").unwrap_or_default();
    let request = ListRequest::<u64>::new(indexer, call, Space::LedgerTokens)?;
    request.view.require(&TOKENS)?;
    let respond = |array: &dyn Array<Row = u64>| {
        request.respond("tokens", array, None, |out, numbers| {
            token_record::tokens(indexer, request.snapshot(), out, numbers)
        })
    };
    if !text.is_empty() {
        let found = tokens::search(request.snapshot(), text, MAX_FOUND).map_err(HttpError::internal)?;
        let mut found = found.ok_or_else(|| {
            HttpError::bad_request(format!(
                "[INVALID_VALUE] more than {MAX_FOUND} tokens match search: {} (use a longer text)",
                params::shown(text)
            ))
        })?;
        lane::spend(found.len() as u64 * 64)?;
        if !types.is_empty() {
            let keys = tokens::numbered(request.snapshot(), &found).map_err(HttpError::internal)?;
            let mut keys = keys.into_iter();
            found.retain(|_| keys.next().is_some_and(|key| types.contains(&key.type_byte())));
        }
        return respond(&InMemory(found.iter().collect()));
    }
    if types.is_empty() {
        let state = TOKENS.state(request.snapshot()).map_err(HttpError::internal)?;
        return respond(&Run { first: 1, len: state.map_or(0, |state| state.numbered) });
    }
    respond(&Union::<TokensByType>::new(request.snapshot(), types).map_err(HttpError::internal)?)
}

/// The types that `type` names, each once.
fn types(call: &Call<'_>) -> Result<Vec<u8>, HttpError> {
    let mut types = Vec::new();
    let texts = call.all("type").flat_map(|value| value.split(',')).map(str::trim);
    for text in texts.filter(|text| !text.is_empty()) {
        let Some((_, example)) = NAMED.iter().find(|(name, _)| *name == text) else {
            let names = NAMED.each_ref().map(|(name, _)| *name).join(", ");
            return Err(HttpError::bad_request(format!(
                "[INVALID_VALUE] invalid value for type: {} (must be any of {names})",
                params::shown(text)
            )));
        };
        let kind = TokenKey(example.clone()).type_byte();
        if !types.contains(&kind) {
            types.push(kind);
        }
    }
    Ok(types)
}

fn by_name(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let name = call.text("token");
    let view = indexer.view()?;
    view.require(&TOKENS)?;
    let keys: Vec<TokenKey> =
        ledger::named_tokens(indexer, view.snapshot(), name)?.into_iter().map(TokenKey).collect();
    let firsts = store::table::read_many::<Tokens>(view.snapshot(), &keys).map_err(HttpError::internal)?;
    let seen = keys.iter().zip(firsts).filter_map(|(key, first)| Some((key, first?)));
    let unknown = || HttpError::not_found(format!("[NOT_FOUND] token not found: {}", params::shown(name)));
    let (TokenKey(token), Message(first)) =
        seen.min_by_key(|(_, Message(first))| first.number).ok_or_else(unknown)?;
    let record = token_record::token(indexer, view.snapshot(), token, first)?;
    Ok(one("token", &serde_json::to_vec(&record).map_err(HttpError::internal)?))
}
