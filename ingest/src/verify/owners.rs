//! Owners of tokens, compared with the state of their contracts: unlike a second index, this check shares no code with
//! the indexes.

use std::sync::Arc;

use chain::nft::{move_vm, wasm};
use chain::{Account, U256, Vm, evm::abi};
use futures_util::StreamExt as _;
use node::retry::Backoff;
use node::{Kind, Node, StateAt};
use schema::audit::{AuditContext, Report};
use schema::keys::AccountKey;
use schema::nft::{Token, Tokens};
use store::key::Text;
use store::{Bounds, Message, Order, RowCursor, Store, Table as _};

use crate::Error;

/// Tokens that are compared.
const SAMPLE: usize = 100;

/// Concurrent queries.
const CONCURRENT_QUERIES: usize = 8;

/// Attempts before a query counts as unanswered.
const ATTEMPTS: u32 = 3;

/// Compares about [`SAMPLE`] tokens, evenly spaced. A question without a reply is counted, but is not a finding.
pub(super) async fn compare(
    store: &Arc<dyn Store>,
    node: &Arc<Node>,
    report: &mut Report,
) -> Result<(), Error> {
    let snapshot = store.snapshot()?;
    let context = AuditContext::new(&*snapshot)?;
    let vm: Vm = context.identity.vm.parse().map_err(|_| Error::Setup("the database names no known vm"))?;
    let chain = &Chain { node, vm, prefix: &context.identity.prefix, height: context.blocks.height };
    let tokens = || RowCursor::new(&*snapshot, Tokens::SPEC, Bounds::all(), Order::Asc);
    let step = tokens().count() / SAMPLE + 1;
    let sampled = tokens().step_by(step).collect::<Result<Vec<_>, _>>()?;
    // The audit reports rows that do not decode.
    let decoded = sampled.iter().filter_map(|(key, value)| {
        let (id, Message(token)) = store::table::decode_row::<Tokens>(key, value).ok()?;
        Some((key, id, token))
    });
    let queries = futures_util::stream::iter(decoded)
        .map(|(key, id, token)| async move { (chain.owner(&id, &token).await, key, token) });
    let answers: Vec<_> = queries.buffered(CONCURRENT_QUERIES).collect().await;
    for (answer, key, token) in answers {
        let Some(answer) = answer else {
            report.unchecked("owners of tokens", 1);
            continue;
        };
        report.checked("owners of tokens", 1);
        if answer.as_bytes() != token.owner {
            let row = (Tokens::SPEC, key.as_slice(), Some(token.owner.as_slice()));
            report.row("owner of a token", row, answer.to_hex());
        }
    }
    Ok(())
}

/// The chain's state at a height.
struct Chain<'a> {
    node: &'a Node,
    vm: Vm,
    prefix: &'a str,
    height: u64,
}

impl Chain<'_> {
    /// The owner of the token; `None` without a reply.
    async fn owner(&self, (collection, Text(id)): &(AccountKey, Text), token: &Token) -> Option<Account> {
        let state = || StateAt::from(Some(self.height));
        match (self.vm, self.node) {
            (Vm::Evm, Node { evm: Some(evm), .. }) => {
                let contract = <[u8; 20]>::try_from(collection.0.as_bytes()).ok()?;
                let data = abi::owner_of(U256::from_str_radix(id, 10).ok()?);
                let answer = query(|| evm.call(contract, &data, Some(self.height))).await?;
                Account::from_bytes(&abi::read_address(&answer)?)
            }
            (Vm::Wasm, Node { rest: Some(rest), .. }) => {
                let contract = collection.0.to_bech32(self.prefix);
                let owner_of = serde_json::json!({ "owner_of": { "token_id": id } }).to_string();
                let answer = query(|| rest.wasm_smart(&contract, &owner_of, state())).await?;
                wasm::token_owner(&answer, self.prefix)
            }
            (Vm::Move, Node { rest: Some(rest), .. }) => {
                let object = Account::from_bytes(&token.object)?.to_hex();
                let answer =
                    query(|| rest.move_resource(&object, "0x1::object::ObjectCore", state())).await?;
                move_vm::object_owner(&answer)
            }
            _ => None,
        }
    }
}

/// A reply, if one of [`ATTEMPTS`] attempts succeeds.
pub(super) async fn query<T, F: Future<Output = Result<T, node::Error>>>(
    attempt: impl Fn() -> F,
) -> Option<T> {
    for step in 0..ATTEMPTS {
        match attempt().await {
            Ok(answer) => return Some(answer),
            Err(error) if error.kind() == Kind::Permanent => return None,
            Err(_) => tokio::time::sleep(Backoff::default().delay(step)).await,
        }
    }
    None
}
