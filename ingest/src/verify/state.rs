//! Owners of tokens, balances and denoms, compared with the chain's state. A question without an answer is counted.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chain::nft::{move_vm, wasm};
use chain::{Account, U256, Vm, abi};
use futures_util::StreamExt as _;
use node::retry::{self, Backoff};
use node::{Kind, Node};
use schema::audit::{Ground, Remedy, Report};
use schema::keys::Owner;
use schema::nft::{Token, Tokens};
use schema::rich::{Address, Balances, Denoms, Erc20, Erc20s, amount_of};
use store::key::Text;
use store::{Bounds, Key as _, Message, Snapshot, Table, Value as _};

use super::chain::Chain;
use super::sample::is_chosen;
use crate::Error;

/// Concurrent questions.
const AT_ONCE: usize = 8;

/// Attempts before a question counts as unanswered.
pub(super) const TRIES: u32 = 3;

/// Compares about `n` tokens, `n` balances and those that the report suspects, and `n` denoms.
pub(super) async fn compare(
    chain: &Chain,
    ground: &Ground<'_>,
    n: usize,
    report: &mut Report,
) -> Result<(), Error> {
    let n = n as u64;
    owners(chain, ground, n, report).await?;
    if ground.rich.as_ref().is_some_and(|lane| lane.height > 0) {
        silent(chain, ground, n, report).await?;
        balances(chain, ground, n, report).await?;
        denoms(chain, ground, n, report).await?;
    }
    Ok(())
}

/// Rows with their types.
type Rows<T> = Vec<(<T as Table>::Key, <T as Table>::Value)>;

/// About `n` rows of `T`, evenly apart, that decode.
pub(super) fn some<T: Table>(snapshot: &dyn Snapshot, n: u64) -> Result<Rows<T>, Error> {
    some_of::<T>(snapshot, n, |_| true)
}

/// The same of those rows whose value `counts`.
fn some_of<T: Table>(
    snapshot: &dyn Snapshot,
    n: u64,
    counts: impl Fn(&[u8]) -> bool,
) -> Result<Rows<T>, Error> {
    let mut len = 0;
    store::for_each_row(snapshot, T::SPEC, Bounds::all(), |_, value| {
        len += u64::from(counts(value));
        Ok::<(), Error>(())
    })?;
    let (mut place, mut rows) = (0, Vec::new());
    store::for_each_row(snapshot, T::SPEC, Bounds::all(), |key, value| {
        if counts(value) {
            if is_chosen(place, len, n) {
                rows.extend(store::table::decode_row::<T>(key, value).ok());
            }
            place += 1;
        }
        Ok::<(), Error>(())
    })?;
    Ok(rows)
}

async fn owners(chain: &Chain, ground: &Ground<'_>, n: u64, report: &mut Report) -> Result<(), Error> {
    let tokens = some::<Tokens>(ground.snapshot, n)?;
    let height = ground.blocks.height;
    let asked = futures_util::stream::iter(tokens)
        .map(|(key, Message(token))| async move { (owner(chain, &key, &token, height).await, key, token) });
    let answers: Vec<_> = asked.buffered(AT_ONCE).collect().await;
    for (answer, key, token) in answers {
        let Some(answer) = answer else {
            report.unchecked("owners of tokens", 1);
            continue;
        };
        report.checked("owners of tokens", 1);
        if answer.as_bytes() != token.owner {
            let key = key.to_bytes();
            let row = (Tokens::SPEC, key.as_slice(), Some(token.owner.as_slice()));
            report.row("owner of a token", row, answer.to_hex(), Remedy::Index(token.height));
        }
    }
    Ok(())
}

/// The owner of the token by the chain's state at `height`.
async fn owner(
    chain: &Chain,
    (collection, Text(id)): &(Owner, Text),
    token: &Token,
    height: u64,
) -> Option<Account> {
    match (chain.vm, &*chain.node) {
        (Vm::Evm, Node { evm: Some(_), .. }) => {
            let contract = <[u8; 20]>::try_from(collection.0.as_bytes()).ok()?;
            let data = abi::owner_of(U256::from_str_radix(id, 10).ok()?);
            let answer = ask_with_retries(|| chain.call(contract, &data, height)).await?;
            Account::from_bytes(&abi::read_address(&answer)?)
        }
        (Vm::Wasm, Node { rest: Some(rest), .. }) => {
            let contract = collection.0.to_bech32(&chain.prefix);
            let query = serde_json::json!({ "owner_of": { "token_id": id } }).to_string();
            let ask = || async { rest.wasm_smart(&contract, &query, chain.state(height)?).await };
            let answer = ask_with_retries(ask).await?;
            wasm::token_owner(&answer, &chain.prefix)
        }
        (Vm::Move, Node { rest: Some(rest), .. }) => {
            let object = Account::from_bytes(&token.object)?.to_hex();
            let ask = || async {
                rest.move_resource(&object, "0x1::object::ObjectCore", chain.state(height)?).await
            };
            move_vm::object_owner(&ask_with_retries(ask).await?)
        }
        _ => None,
    }
}

/// An answer, if one of [`TRIES`] attempts succeeds.
pub(super) async fn ask_with_retries<T, F: Future<Output = Result<T, node::Error>>>(
    ask: impl Fn() -> F,
) -> Option<T> {
    for step in 0..TRIES {
        match ask().await {
            Ok(answer) => return Some(answer),
            Err(error) if error.kind() == Kind::Permanent => return None,
            Err(_) => tokio::time::sleep(Backoff::default().delay(step)).await,
        }
    }
    None
}

/// The account's balances of `contracts` by the chain's state at the rich list's height.
pub(super) async fn held(
    chain: &Chain,
    ground: &Ground<'_>,
    account: &Address,
    contracts: &BTreeSet<Address>,
    height: u64,
) -> HashMap<Address, U256> {
    let mut found = HashMap::new();
    if chain.node.evm.is_some() {
        let data = abi::balance_of(*account);
        for contract in contracts {
            let answer = ask_with_retries(|| chain.call(*contract, &data, height)).await;
            if let Some(amount) = answer.and_then(|answer| abi::read_uint(&answer)) {
                found.insert(*contract, amount);
            }
        }
    }
    let left: Vec<&Address> = contracts.iter().filter(|contract| !found.contains_key(*contract)).collect();
    if let (Some(rest), false, Some(bech32)) =
        (&chain.node.rest, left.is_empty(), Account::from_bytes(account))
    {
        let bech32 = bech32.to_bech32(&chain.prefix);
        let ask = || async { rest.balances(&bech32, chain.state(height)?).await };
        if let Some(balances) = ask_with_retries(ask).await {
            for contract in left {
                // A contract whose denom is not known is not in the bank's answer.
                if let Some(amount) = in_bank(ground, contract, &balances) {
                    found.insert(*contract, amount);
                }
            }
        }
    }
    found
}

/// The amount of a contract's denom among an account's balances in the bank.
fn in_bank(ground: &Ground<'_>, contract: &Address, balances: &[(String, String)]) -> Option<U256> {
    let own =
        format!("evm/{}", contract.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}")));
    let is_it = |denom: &str| {
        let stored = ground.snapshot.get(Denoms::SPEC, &Text::from(denom).to_bytes());
        denom.to_lowercase() == own || matches!(stored, Ok(Some(found)) if found == contract)
    };
    let (_, amount) = balances.iter().find(|(denom, _)| is_it(denom))?;
    U256::from_str_radix(amount, 10).ok()
}

async fn balances(chain: &Chain, ground: &Ground<'_>, n: u64, report: &mut Report) -> Result<(), Error> {
    let mut asked: BTreeMap<Address, BTreeSet<Address>> = BTreeMap::new();
    let sampled = some::<Balances>(ground.snapshot, n)?.into_iter().map(|(key, _)| key);
    for (contract, account) in sampled.chain(report.plan.balances.iter().copied()) {
        if !ground.snapshot.get(Erc20s::SPEC, &contract)?.as_deref().is_some_and(is_silent) {
            asked.entry(account).or_default().insert(contract);
        }
    }
    let height = ground.rich.as_ref().map_or(0, |lane| lane.height);
    let answers = futures_util::stream::iter(asked).map(|(account, contracts)| async move {
        (held(chain, ground, &account, &contracts, height).await, account, contracts)
    });
    let answers: Vec<_> = answers.buffered(AT_ONCE).collect().await;
    for (answer, account, contracts) in answers {
        for contract in contracts {
            let Some(answer) = answer.get(&contract) else {
                report.unchecked("balances", 1);
                continue;
            };
            report.checked("balances with the node", 1);
            let key = (contract, account).to_bytes();
            let stored = ground.snapshot.get(Balances::SPEC, &key)?;
            let amount = stored.as_deref().map_or(Some([0; 32]), amount_of).map(U256::from_be_bytes);
            if amount != Some(*answer) {
                let row = (Balances::SPEC, key.as_slice(), stored.as_deref());
                report.row(
                    "balance unlike the chain's",
                    row,
                    answer.to_string(),
                    Remedy::Balance(contract, account),
                );
            }
        }
    }
    Ok(())
}

/// Whether the row marks the token as one that returns no balances.
fn is_silent(row: &[u8]) -> bool {
    Message::<Erc20>::decode(row).is_some_and(|Message(token)| token.silent)
}

/// An arbitrary account: a token that returns balances returns this one's too.
const ANY_ACCOUNT: Address = [1; 20];

/// Queries tokens that are stored as silent for a balance. A token that answers gets its balances from the chain again:
/// those of touched accounts at once, all others when it is sampled.
async fn silent(chain: &Chain, ground: &Ground<'_>, n: u64, report: &mut Report) -> Result<(), Error> {
    let height = ground.rich.as_ref().map_or(0, |lane| lane.height);
    for (contract, Message(token)) in some_of::<Erc20s>(ground.snapshot, n, is_silent)? {
        let ask = || async {
            match chain.call(contract, &abi::balance_of(ANY_ACCOUNT), height).await {
                Err(node::Error::Refused { .. }) => Ok(None),
                answer => answer.map(|answer| abi::read_uint(&answer)),
            }
        };
        let Some(answer) = ask_with_retries(ask).await else {
            report.unchecked("tokens without balances", 1);
            continue;
        };
        report.checked("tokens without balances", 1);
        if answer.is_some() {
            let (mut stored, mut row) = (Vec::new(), Vec::new());
            Message(token.clone()).encode(&mut stored);
            Message(Erc20 { silent: false, drifting: true, ..token }).encode(&mut row);
            report.row(
                "silent token that tells balances",
                (Erc20s::SPEC, &contract, Some(&stored)),
                "not silent, and asked for balances",
                Remedy::Row(Some(row)),
            );
        }
    }
    Ok(())
}

async fn denoms(chain: &Chain, ground: &Ground<'_>, n: u64, report: &mut Report) -> Result<(), Error> {
    let Some(rest) = &chain.node.rest else { return Ok(()) };
    for (Text(denom), stored) in some::<Denoms>(ground.snapshot, n)? {
        let answer = if let Some(contract) = own_contract(&denom) {
            Some(contract)
        } else {
            let ask = || rest.erc20_of_denom(&denom);
            let asked = retry::until(Backoff::default(), "contract of a denom", ask);
            tokio::time::timeout(ANSWER_TIMEOUT, asked).await.ok().and_then(Result::ok).flatten()
        };
        let Some(answer) = answer else {
            report.unchecked("denoms", 1);
            continue;
        };
        report.checked("denoms with the node", 1);
        if stored != answer {
            let key = Text(denom).to_bytes();
            let words = Account::from_bytes(&answer).map(|contract| contract.to_hex()).unwrap_or_default();
            let row = (Denoms::SPEC, key.as_slice(), Some(stored.as_slice()));
            report.row("contract of a denom", row, words, Remedy::Row(Some(answer.to_vec())));
        }
    }
    Ok(())
}

/// The contract in `evm/<40 hex digits>`.
fn own_contract(denom: &str) -> Option<Address> {
    let contract = Account::from_hex_literal(&format!("0x{}", denom.strip_prefix("evm/")?))?;
    Address::try_from(contract.as_bytes()).ok()
}

/// Timeout of the contract of a denom.
const ANSWER_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);
