//! The workload: the transaction of a number, and sums over the transactions of an account, in closed form.
//!
//! A period of [`PERIOD`] positions has a template and a kind of transaction for each position, in the proportions of
//! the recording. Transaction `n` has position `n mod PERIOD` and draw `n`. As [`PERIOD`] is prime and the draws of
//! an account have a power of two as their step, the positions of an account's draws repeat after [`PERIOD`] of them.

use std::collections::BTreeMap;

use crate::accounts::{Account, Accounts, digest, mix};
use crate::law::{Law, Member, Progression};
use crate::template::Template;
use crate::values::Values;

/// Transactions after which templates and kinds repeat: a prime.
pub(crate) const PERIOD: usize = 1021;

/// The accounts of a transaction, and its effect on state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A signer of the law calls a contract, or its transaction fails.
    Call,
    /// A signer of the law creates a contract, which credits it with this amount of a token of its own, if any.
    Creation(u128),
    /// The recorded sender pays an amount of an asset to a recipient of the law.
    Payment { asset: String, amount: u128 },
    /// The recorded sender mints an NFT of a collection to a signer of the law.
    Mint { collection: String },
    /// The owner of an NFT that was minted this many transactions before gives it to a recipient of the law.
    Handover { since_mint: u64 },
}

impl Kind {
    /// Whether an NFT must be minted before.
    pub(crate) fn needs_a_mint(&self) -> bool {
        matches!(self, Self::Handover { .. })
    }
}

/// A usable transaction of the recording.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) template: Template,
    pub(crate) kind: Kind,
    /// Its recorded sender, who sends it if the kind says so.
    pub(crate) sender: Account,
    /// Its share of the transactions, in relation to the others.
    pub(crate) weight: u64,
}

#[derive(Debug)]
struct Position {
    candidate: usize,
    kind: Kind,
    /// The recorded sender and the number of its transactions before this position of a period.
    fixed: Option<(usize, u64)>,
    /// Number of mints before this position.
    mints: u64,
}

/// A recorded account that sends transactions.
#[derive(Debug)]
struct FixedSender {
    account: Account,
    /// Its sequence after the recording.
    sequence: u64,
    /// Number of its transactions in a period.
    per_period: u64,
    /// What it pays in a period at each position, by asset.
    pays: Vec<(usize, String, u128)>,
}

/// Something that a draw changes for its account: so many transactions later, by this amount.
#[derive(Debug, Default)]
struct Effects {
    law: Option<Law>,
    by_position: Vec<Vec<(u64, u128)>>,
}

#[derive(Debug)]
pub(crate) struct Workload {
    candidates: Vec<Candidate>,
    positions: Vec<Position>,
    fixed: Vec<FixedSender>,
    /// Positions of the mints.
    mints: Vec<usize>,
    /// The offset of the handover of the NFT that is minted at a position.
    handed_over: BTreeMap<usize, u64>,
    first_token: u64,
    sequences: Effects,
    payments: BTreeMap<String, Effects>,
    pub(crate) accounts: Accounts,
}

impl Workload {
    /// `sequences` is the sequence of each recorded sender after the recording, by its address. At least one candidate
    /// must need no mint.
    pub(crate) fn new(
        candidates: Vec<Candidate>,
        sequences: &BTreeMap<[u8; 20], u64>,
        first_token: u64,
        accounts: Accounts,
    ) -> Self {
        let mut chosen = chosen(&candidates);
        let mut kinds: Vec<Kind> = chosen.iter().map(|index| candidates[*index].kind.clone()).collect();
        let mut workload = Self {
            positions: Vec::new(),
            fixed: Vec::new(),
            mints: Vec::new(),
            handed_over: BTreeMap::new(),
            first_token,
            sequences: Effects::new(Law::Signer),
            payments: BTreeMap::new(),
            accounts,
            candidates,
        };
        // A handover belongs to the last mint before it that has none; without one, it is another candidate.
        let other =
            workload.candidates.iter().position(|candidate| !candidate.kind.needs_a_mint()).unwrap_or(0);
        let mut free = Vec::new();
        for (position, kind) in kinds.iter_mut().enumerate() {
            if let Kind::Handover { since_mint } = kind {
                if let Some(mint) = free.pop() {
                    *since_mint = (position - mint) as u64;
                    continue;
                }
                chosen[position] = other;
                *kind = workload.candidates[other].kind.clone();
            }
            if matches!(kind, Kind::Mint { .. }) {
                free.push(position);
            }
        }
        for (position, (candidate, kind)) in chosen.into_iter().zip(kinds).enumerate() {
            workload.add(position, candidate, kind, sequences);
        }
        workload
    }

    fn add(&mut self, position: usize, candidate: usize, kind: Kind, sequences: &BTreeMap<[u8; 20], u64>) {
        let mints = self.mints.len() as u64;
        let mut fixed = None;
        match &kind {
            Kind::Call | Kind::Creation(_) => self.sequences.by_position[position].push((0, 1)),
            Kind::Handover { since_mint } => {
                let mint = position - usize::try_from(*since_mint).unwrap_or_default();
                self.sequences.by_position[mint].push((*since_mint, 1));
                self.handed_over.insert(mint, *since_mint);
            }
            Kind::Mint { .. } => {
                self.mints.push(position);
                fixed = Some(self.fixed_sender(candidate, sequences));
            }
            Kind::Payment { asset, amount } => {
                let sender = self.fixed_sender(candidate, sequences);
                let effects =
                    self.payments.entry(asset.clone()).or_insert_with(|| Effects::new(Law::Recipient));
                effects.by_position[position].push((0, *amount));
                self.fixed[sender.0].pays.push((position, asset.clone(), *amount));
                fixed = Some(sender);
            }
        }
        self.positions.push(Position { candidate, kind, fixed, mints });
    }

    fn fixed_sender(&mut self, candidate: usize, sequences: &BTreeMap<[u8; 20], u64>) -> (usize, u64) {
        let account = &self.candidates[candidate].sender;
        let known = self.fixed.iter().position(|fixed| fixed.account.address == account.address);
        let index = known.unwrap_or_else(|| {
            let sequence = sequences.get(&account.address).copied().unwrap_or_default();
            let account = account.clone();
            self.fixed.push(FixedSender { account, sequence, per_period: 0, pays: Vec::new() });
            self.fixed.len() - 1
        });
        let before = self.fixed[index].per_period;
        self.fixed[index].per_period += 1;
        (index, before)
    }

    /// The template of a transaction and its values.
    pub(crate) fn tx(&self, tx: u64) -> (&Template, Values) {
        let position = &self.positions[place(tx)];
        let (periods, template) = (tx / PERIOD as u64, &self.candidates[position.candidate].template);
        let signer = |draw| self.accounts.account(Law::Signer.member(draw));
        let (mut contract, mut recipient, mut token) = (None, None, None);
        let sender = match &position.kind {
            Kind::Call => signer(tx),
            Kind::Creation(_) => {
                contract = Some(self.accounts.contract(tx));
                signer(tx)
            }
            Kind::Handover { since_mint } => {
                recipient = Some(self.accounts.account(Law::Recipient.member(tx)));
                token = Some(self.token_of(tx - since_mint));
                signer(tx - since_mint)
            }
            Kind::Mint { .. } => {
                (recipient, token) = (Some(signer(tx)), Some(self.token_of(tx)));
                self.fixed_account(position)
            }
            Kind::Payment { .. } => {
                recipient = Some(self.accounts.account(Law::Recipient.member(tx)));
                self.fixed_account(position)
            }
        };
        let sequence = if let Some((index, before)) = position.fixed {
            let fixed = &self.fixed[index];
            fixed.sequence + periods * fixed.per_period + before
        } else {
            let draw = if let Kind::Handover { since_mint } = position.kind { tx - since_mint } else { tx };
            self.sequence(Law::Signer.member(draw), tx)
        };
        let mut signature = [digest("r", 0, tx), digest("s", 0, tx)].concat();
        signature.push(mix(tx).to_le_bytes()[0] & 1);
        signature.truncate(template.signature_len);
        (template, Values { sender, recipient, contract, sequence, token, signature })
    }

    fn fixed_account(&self, position: &Position) -> Account {
        let index = position.fixed.map_or(0, |(index, _)| index);
        self.fixed[index].account.clone()
    }

    /// Number of transactions that an account of the law has sent before transaction `before`.
    pub(crate) fn sequence(&self, member: Member, before: u64) -> u64 {
        u64::try_from(self.sequences.sum(member, before)).unwrap_or(u64::MAX)
    }

    /// The sequence of a recorded sender before transaction `before`.
    pub(crate) fn fixed_sequence(&self, address: [u8; 20], before: u64) -> Option<u64> {
        let index = self.fixed.iter().position(|fixed| fixed.account.address == address)?;
        let fixed = &self.fixed[index];
        let sends = |position: &&Position| position.fixed.is_some_and(|(sender, _)| sender == index);
        let rest = self.positions[..place(before)].iter().filter(sends).count();
        Some(fixed.sequence + before / PERIOD as u64 * fixed.per_period + rest as u64)
    }

    /// The recorded accounts that send transactions.
    pub(crate) fn fixed_accounts(&self) -> impl Iterator<Item = &Account> {
        self.fixed.iter().map(|fixed| &fixed.account)
    }

    /// The assets of payments.
    pub(crate) fn assets(&self) -> impl Iterator<Item = &str> {
        self.payments.keys().map(String::as_str)
    }

    /// What an account of the law has received of an asset before transaction `before`; `None` if it is not an asset of
    /// payments.
    pub(crate) fn received(&self, asset: &str, member: Member, before: u64) -> Option<u128> {
        self.payments.get(asset).map(|effects| effects.sum(member, before))
    }

    /// What a recorded sender has paid of an asset before transaction `before`; `None` if it is not such a sender.
    pub(crate) fn paid(&self, asset: &str, address: [u8; 20], before: u64) -> Option<u128> {
        let fixed = self.fixed.iter().find(|fixed| fixed.account.address == address)?;
        let of_asset = || fixed.pays.iter().filter(|(_, paid, _)| paid == asset);
        let period: u128 = of_asset().map(|(_, _, amount)| amount).sum();
        let rest =
            of_asset().filter(|(position, _, _)| *position < place(before)).map(|(_, _, amount)| amount);
        Some(period * u128::from(before / PERIOD as u64) + rest.sum::<u128>())
    }

    /// The NFT that a transaction mints.
    fn token_of(&self, tx: u64) -> u64 {
        let periods = tx / PERIOD as u64;
        self.first_token + periods * self.mints.len() as u64 + self.positions[place(tx)].mints
    }

    /// The collection of an NFT and its owner before transaction `before`; `None` if it was not minted by then.
    pub(crate) fn owner(&self, token: u64, before: u64) -> Option<(&str, Account)> {
        let number = token.checked_sub(self.first_token)?;
        let mints = self.mints.len() as u64;
        let position = *self.mints.get(usize::try_from(number.checked_rem(mints)?).ok()?)?;
        let minted = number / mints * PERIOD as u64 + position as u64;
        let Kind::Mint { collection } = &self.positions[position].kind else { return None };
        if minted >= before {
            return None;
        }
        let owner = match self.handed_over.get(&position) {
            Some(since) if minted + since < before => Law::Recipient.member(minted + since),
            _ => Law::Signer.member(minted),
        };
        Some((collection, self.accounts.account(owner)))
    }

    /// The balance of the token that a created contract holds for an account; `None` before its creation.
    pub(crate) fn created_balance(&self, contract: [u8; 20], holder: [u8; 20], before: u64) -> Option<u128> {
        let tx = Accounts::created_by(contract).filter(|tx| *tx < before)?;
        let Kind::Creation(amount) = self.positions[place(tx)].kind else { return None };
        let creator = self.accounts.account(Law::Signer.member(tx)).address;
        Some(if creator == holder { amount } else { 0 })
    }

    /// Call frames of the transactions before `txs`.
    pub(crate) fn frames(&self, txs: u64) -> u64 {
        let frames = |position: &Position| self.candidates[position.candidate].template.frames();
        let period: u64 = self.positions.iter().map(frames).sum();
        txs / PERIOD as u64 * period + self.positions[..place(txs)].iter().map(frames).sum::<u64>()
    }
}

fn place(tx: u64) -> usize {
    usize::try_from(tx % PERIOD as u64).unwrap_or_default()
}

/// The candidate of each position: their numbers by weight (largest remainder), shuffled.
fn chosen(candidates: &[Candidate]) -> Vec<usize> {
    let all: u64 = candidates.iter().map(|candidate| candidate.weight).sum();
    let share = |candidate: &Candidate| candidate.weight * PERIOD as u64;
    let mut counts: Vec<u64> = candidates.iter().map(|candidate| share(candidate) / all.max(1)).collect();
    let mut by_rest: Vec<usize> = (0..candidates.len()).collect();
    by_rest.sort_by_key(|index| std::cmp::Reverse(share(&candidates[*index]) % all.max(1)));
    let missing = PERIOD - usize::try_from(counts.iter().sum::<u64>()).unwrap_or(PERIOD);
    for index in by_rest.into_iter().cycle().take(missing) {
        counts[index] += 1;
    }
    let repeated = counts.iter().enumerate().flat_map(|(index, count)| (0..*count).map(move |_| index));
    let mut shuffled: Vec<(u64, usize)> = (0..).map(mix).zip(repeated).collect();
    shuffled.sort_unstable();
    shuffled.into_iter().map(|(_, index)| index).collect()
}

impl Effects {
    fn new(law: Law) -> Self {
        Self { law: Some(law), by_position: vec![Vec::new(); PERIOD] }
    }

    /// The sum of the effects for an account before transaction `before`.
    fn sum(&self, member: Member, before: u64) -> u128 {
        let Some(Progression { first, step }) = self.law.and_then(|law| law.draws(member)) else { return 0 };
        let period = PERIOD as u64;
        // Effects stay within the period of their draw.
        let complete = before / period * period;
        let draws = complete.saturating_sub(first).div_ceil(step);
        let all = |position: usize| self.by_position[position].iter().map(|(_, amount)| amount).sum::<u128>();
        let (laps, rest) = (draws / period, draws % period);
        let mut sum = if laps == 0 { 0 } else { u128::from(laps) * (0..PERIOD).map(all).sum::<u128>() };
        let (mut position, step_in_period) = (place(first), place(step));
        for _ in 0..rest {
            sum += all(position);
            position = (position + step_in_period) % PERIOD;
        }
        let mut draw = first + draws * step;
        while draw < before {
            let effects = self.by_position[place(draw)].iter();
            sum += effects.filter(|(later, _)| draw + later < before).map(|(_, amount)| amount).sum::<u128>();
            draw += step;
        }
        sum
    }
}
