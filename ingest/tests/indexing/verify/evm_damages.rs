//! Damage that is possible only on a chain with an EVM.

use anyhow::{Context as _, Result};
use schema::evm_tx::{AccountEvmTxs, EvmTxByHash, EvmTxs};
use schema::internal_tx::{AccountCalls, BlockCalls, Calls, CallsByHeight};
use schema::meta::{self, CallLane};
use schema::rich::{self, AccountTokens, Address, Balances, Denoms, DenomsFolded, Holders};
use store::{Key as _, List as _, Message, RANK, Store, Table as _, Value as _};

use super::damages::{Damage, flip, lose_entry, write};
use super::database::{change, encoded, lose, put, rows, some_row};

pub(crate) const OF_EVM: &[Damage] = &[
    ("EVM record flipped", |store| flip(store, EvmTxs::SPEC)),
    ("EVM hash missing", |store| lose(store, EvmTxByHash::SPEC)),
    ("entry of an EVM list lost", |store| {
        lose_entry(store, AccountEvmTxs::SPEC, |ordinal, len| ordinal > 3 && ordinal + 1 < len)
    }),
    ("chunk of call frames flipped", |store| flip(store, Calls::SPEC)),
    ("chunk of call frames lost", |store| lose(store, Calls::SPEC)),
    ("call frames of a block miscounted", |store| {
        change::<CallsByHeight, BlockCalls>(store, |calls| {
            calls.counts[0] += 1;
            calls.first > 1000
        })
    }),
    ("call frame of another transaction", |store| {
        change::<CallsByHeight, BlockCalls>(store, |calls| {
            let [one, .., other] = &mut calls.counts[..] else { return false };
            (*one, *other) = (*one + 1, *other - 1);
            true
        })
    }),
    ("last entry of a list of call frames lost", |store| {
        lose_entry(store, AccountCalls::SPEC, |ordinal, len| ordinal > 3 && ordinal + 1 == len)
    }),
    ("lane counts too few call frames", |store| {
        let mut lane: CallLane = meta::read(&*store.snapshot()?)?.context("a lane")?;
        lane.calls -= 1;
        put(store, meta::Meta::SPEC, meta::key::<CallLane>().to_bytes(), encoded(&Message(lane)))
    }),
];

pub(crate) const OF_RICH_LIST: &[Damage] = &[
    ("balance of another amount", |store| {
        let (key, _) = some_row(store, Balances::SPEC)?;
        put(store, Balances::SPEC, key, vec![5])
    }),
    ("balance and holder of another amount", |store| {
        let (key, _) = in_bank(store)?;
        let (contract, account) = <(Address, Address)>::from_bytes(&key).context("a balance")?;
        let mut amount = [0; 32];
        amount[31] = 77;
        write(store, |txn| Ok(rich::set_balance(txn, &contract, &account, Some(amount))?))
    }),
    ("balance lost", |store| lose(store, Balances::SPEC)),
    ("holder lost", |store| lose(store, Holders::SPEC)),
    ("token of an account lost", |store| lose(store, AccountTokens::SPEC)),
    ("token of an account that never held it", |store| {
        let (key, value) = some_row(store, AccountTokens::SPEC)?;
        put(store, AccountTokens::SPEC, [&key[..20], &[0x5a; 20]].concat(), value)
    }),
    ("node of holders off by one", |store| {
        let nodes = rows(store, RANK)?.into_iter().filter(|(key, _)| key.first() == Some(&Holders::SPEC.tag));
        let (key, value) = nodes.into_iter().find(|(key, _)| key.get(21) == Some(&1)).context("a node")?;
        put(store, RANK, key, encoded(&(u64::decode(&value).context("a number")? + 1)))
    }),
    ("denom of another contract", |store| {
        let (key, _) = some_row(store, Denoms::SPEC)?;
        let other = rows(store, Balances::SPEC)?.swap_remove(0).0;
        let same = some_row(store, Denoms::SPEC)?.1 == other[..20];
        let last = rows(store, Balances::SPEC)?.pop().context("a balance")?.0;
        put(store, Denoms::SPEC, key, if same { &last } else { &other }[..20].to_vec())
    }),
    ("denom lost", |store| lose(store, Denoms::SPEC)),
    ("denom in lower case lost", |store| lose(store, DenomsFolded::SPEC)),
];

/// A balance of a contract that has a denom in the bank.
fn in_bank(store: &dyn Store) -> Result<(Vec<u8>, Vec<u8>)> {
    let contracts: Vec<_> = rows(store, Denoms::SPEC)?.into_iter().map(|(_, contract)| contract).collect();
    let balances = rows(store, Balances::SPEC)?.into_iter();
    let mut balances =
        balances.filter(|(key, value)| contracts.iter().any(|c| key.starts_with(c)) && value.len() > 1);
    balances.next().context("a balance in the bank")
}
