//! Check of holders against balances, and of denoms against their lower-case forms.

use std::collections::BTreeSet;

use store::key::Text;
use store::{Bounds, Key as _, Table as _};

use super::{Ground, Remedy, Report};
use crate::Error;
use crate::rich::{Address, Balances, Denoms, DenomsFolded, Erc20s, Holders, amount_of};

pub(super) fn check(ground: &Ground<'_>, report: &mut Report) -> Result<(), Error> {
    if let Some(lane) = &ground.rich
        && lane.height > ground.blocks.height
    {
        let expected = format!("not above the block lane's {}", ground.blocks.height);
        let key = crate::meta::key::<crate::meta::RichLane>().to_bytes();
        let stored = lane.height.to_string();
        let row = (crate::meta::Meta::SPEC, key.as_slice(), Some(stored.as_bytes()));
        report.row("lane of the rich list", row, expected, Remedy::RichList);
    }
    let found = balances(ground, report)?;
    holders(ground, found, report)?;
    denoms(ground, report)
}

/// Each balance has its holder; gives how many there are.
fn balances(ground: &Ground<'_>, report: &mut Report) -> Result<u64, Error> {
    let (mut found, mut n, mut last) = (0, 0, None);
    store::for_each_row(ground.snapshot, Balances::SPEC, Bounds::all(), |key, value| {
        n += 1;
        let Some((contract, account)) = <(Address, Address)>::from_bytes(key) else { return Ok(()) };
        if last != Some(contract) {
            last = Some(contract);
            known(ground, &contract, (Balances::SPEC, key, value), report)?;
        }
        let row = (Balances::SPEC, key, Some(value));
        let Some(amount) = amount_of(value) else {
            report.row("balance", row, "at most 256 bits", Remedy::RichList);
            return Ok(());
        };
        if value.first() == Some(&0) {
            report.row("balance", row, "an amount without leading zeros", Remedy::RichList);
        }
        if amount == [0; 32] {
            return Ok(());
        }
        let holder = (contract, (amount, account)).to_bytes();
        if ground.snapshot.get(Holders::SPEC, &holder)?.is_some() {
            found += 1;
        } else {
            let row = (Holders::SPEC, holder.as_slice(), None);
            report.row("missing holder", row, "an empty value", Remedy::Row(Some(Vec::new())));
            let asked = format!("what the contract says of {}", hex::encode(account));
            report.row(
                "balance without its holder",
                (Balances::SPEC, key, Some(value)),
                asked,
                Remedy::Balance(contract, account),
            );
        }
        Ok::<(), Error>(())
    })?;
    report.checked("balances", n);
    Ok(found)
}

fn holders(ground: &Ground<'_>, found: u64, report: &mut Report) -> Result<(), Error> {
    let mut rows = 0;
    store::for_each_row(ground.snapshot, Holders::SPEC, Bounds::all(), |_, _| {
        rows += 1;
        Ok::<(), Error>(())
    })?;
    if rows == found {
        return Ok(());
    }
    store::for_each_row(ground.snapshot, Holders::SPEC, Bounds::all(), |key, value| {
        let holder = <(Address, ([u8; 32], Address))>::from_bytes(key);
        let Some((contract, (amount, account))) = holder else { return Ok(()) };
        let held = ground.snapshot.get(Balances::SPEC, &(contract, account).to_bytes())?;
        if held.as_deref().and_then(amount_of) != Some(amount) {
            let expected = "nothing: the balance is another";
            report.row("stray holder", (Holders::SPEC, key, Some(value)), expected, Remedy::Row(None));
            let asked = format!("what the contract says of {}", hex::encode(account));
            let key = (contract, account).to_bytes();
            let row = (Balances::SPEC, key.as_slice(), held.as_deref());
            report.row("balance without its holder", row, asked, Remedy::Balance(contract, account));
        }
        Ok(())
    })
}

fn denoms(ground: &Ground<'_>, report: &mut Report) -> Result<(), Error> {
    let mut folded = BTreeSet::new();
    store::for_each_row(ground.snapshot, Denoms::SPEC, Bounds::all(), |key, value| {
        let Some(Text(denom)) = Text::from_bytes(key) else { return Ok(()) };
        folded.insert((Text(denom.to_lowercase()), Text(denom)).to_bytes());
        if let Ok(contract) = Address::try_from(value) {
            return known(ground, &contract, (Denoms::SPEC, key, value), report);
        }
        report.row("denom", (Denoms::SPEC, key, Some(value)), "20 bytes", Remedy::RichList);
        Ok(())
    })?;
    report.checked("denoms", folded.len() as u64);
    store::for_each_row(ground.snapshot, DenomsFolded::SPEC, Bounds::all(), |key, value| {
        if !folded.remove(key) {
            // The denom itself may be lost.
            let row = (DenomsFolded::SPEC, key, Some(value));
            report.row("denom in lower case", row, "nothing: there is no such denom", Remedy::RichList);
        }
        Ok::<(), Error>(())
    })?;
    for key in folded {
        let row = (DenomsFolded::SPEC, key.as_slice(), None);
        report.row("denom in lower case", row, "an empty value", Remedy::Row(Some(Vec::new())));
    }
    Ok(())
}

/// Checks that a contract with balances or a denom is listed as an ERC-20.
fn known(
    ground: &Ground<'_>,
    contract: &Address,
    (table, key, value): (&'static store::TableSpec, &[u8], &[u8]),
    report: &mut Report,
) -> Result<(), Error> {
    if ground.snapshot.get(Erc20s::SPEC, contract)?.is_none() {
        let expected = "a contract that is known as an ERC-20";
        report.row("unknown ERC-20", (table, key, Some(value)), expected, Remedy::RichList);
    }
    Ok(())
}
