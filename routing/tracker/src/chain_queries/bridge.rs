//! Queries for the optimistic bridge: deposits on the rollup, outputs and claims on the L1.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use node::FoundEvent;
use sha3::{Digest as _, Sha3_256};

use super::ChainQueries;
use crate::detect;
use crate::event::{around, finalized, find, number};
use crate::hop::{Deposit, ObservedHop, Output, Relation, TxRef, Withdrawal};
use crate::query_error::QueryError;
use crate::search::Search;
use crate::state::Observation;

/// Maximum pages of outputs scanned for one that was not deleted.
const PAGES: u32 = 10;

impl ChainQueries<'_> {
    pub(super) async fn finalized(&self, hop: &Deposit) -> Result<Vec<Observation>, QueryError> {
        const KIND: &str = "finalize_token_deposit";
        let Some(to) = &hop.to else { return Ok(Vec::new()) };
        let search = self.search(to)?;
        let sequence = hop.l1_sequence.to_string();
        let (txs, _) = search.txs(&format!("{KIND}.l1_sequence='{sequence}'"), 1, false).await?;
        for found in txs {
            // A rollup has one bridge, so its events have no bridge number.
            let Some(event) = find(&found.0, KIND, &[("l1_sequence", &sequence)]) else { continue };
            let Some(how) = finalized(&found.0.events[event]) else { continue };
            let at = search.located(&found).await?;
            let refund = self.refund(to, around(&found.0, event), &at).map(Box::new);
            return Ok(vec![Observation::Finalized { sequence: hop.l1_sequence, at, how, refund }]);
        }
        Ok(Vec::new())
    }

    /// The withdrawal that a refused deposit starts in its own message.
    fn refund(&self, rollup: &str, message: &[FoundEvent], at: &TxRef) -> Option<ObservedHop> {
        let rollup = self.registry.chain(rollup)?;
        let event = message.iter().find(|event| event.kind == "initiate_token_withdrawal")?;
        detect::withdrawal(self.registry, rollup, event, Relation::Refund, at).map(ObservedHop::Withdrawal)
    }

    pub(super) async fn output(&self, hop: &Withdrawal) -> Result<Vec<Observation>, QueryError> {
        let Some((l1, bridge)) = &hop.to else { return Ok(Vec::new()) };
        let search = self.search(l1)?;
        if let Some(output) = &hop.output
            && output.claimable_at.is_some_and(|at| at <= self.now)
        {
            // Final: it can no longer be deleted.
            return Ok(Vec::new());
        }
        let deleted = deletions(&search, *bridge).await?;
        if let Some(output) = &hop.output {
            let gone = deleted.iter().any(|deletion| deletion.takes(output.index, output.tx.height));
            if !gone {
                return Ok(Vec::new());
            }
        }
        let last = deleted.iter().map(|deletion| deletion.height).max().unwrap_or(0);
        let sequence = hop.l2_sequence;
        Ok(match self.covering(&search, *bridge, hop, &deleted).await? {
            Some(output) => {
                vec![Observation::Output { sequence, as_of: output.tx.height, output: Some(output) }]
            }
            None if hop.output.is_some() => vec![Observation::Output { sequence, as_of: last, output: None }],
            None => Vec::new(),
        })
    }

    /// The first output at or above the withdrawal's height that was not deleted.
    async fn covering(
        &self,
        search: &Search,
        bridge: u64,
        hop: &Withdrawal,
        deleted: &[Deletion],
    ) -> Result<Option<Output>, QueryError> {
        const KIND: &str = "propose_output";
        let height = hop.sent.height;
        let query = format!("{KIND}.bridge_id='{bridge}' AND {KIND}.l2_block_number>={height}");
        let mut seen = 0;
        for page in 1..=PAGES {
            let (txs, total) = search.txs(&query, page, false).await?;
            seen += txs.len() as u64;
            let is_last = txs.is_empty() || seen >= total;
            for found in txs {
                let proposals = found
                    .0
                    .events
                    .iter()
                    .filter(|event| event.kind == KIND && number(event, "bridge_id") == Some(bridge));
                let covers = |event: &&FoundEvent| number(event, "l2_block_number") >= Some(height);
                let live =
                    |index: &u64| !deleted.iter().any(|deletion| deletion.takes(*index, found.0.height));
                let indexes = proposals.filter(covers).filter_map(|event| number(event, "output_index"));
                let Some(index) = indexes.filter(live).min() else { continue };
                let tx = search.located(&found).await?;
                let wait = i64::try_from(hop.finalization_seconds).unwrap_or(i64::MAX);
                let claimable_at = tx.time.map(|time| claimable(time, wait));
                return Ok(Some(Output { index, tx, claimable_at }));
            }
            if is_last {
                break;
            }
        }
        Ok(None)
    }

    pub(super) async fn claimed(&self, hop: &Withdrawal) -> Result<Vec<Observation>, QueryError> {
        const KIND: &str = "finalize_token_withdrawal";
        let Some((l1, bridge)) = &hop.to else { return Ok(Vec::new()) };
        let search = self.search(l1)?;
        let (sequence, bridge_id) = (hop.l2_sequence.to_string(), bridge.to_string());
        let query = format!("{KIND}.l2_sequence='{sequence}' AND {KIND}.bridge_id='{bridge_id}'");
        let wanted = [("l2_sequence", sequence.as_str()), ("bridge_id", bridge_id.as_str())];
        let claim = |at| vec![Observation::Claimed { sequence: hop.l2_sequence, at }];
        match search.txs(&query, 1, false).await {
            Ok((txs, _)) => {
                for found in txs {
                    if find(&found.0, KIND, &wanted).is_some() {
                        return Ok(claim(Some(search.located(&found).await?)));
                    }
                }
                Ok(Vec::new())
            }
            // No node of the L1 searches; the L1's state has the claim too, but not its transaction.
            Err(failure) => match (&search.clients.rest, withdrawal_hash(hop, *bridge)) {
                (Some(rest), Some(hash)) => {
                    let hash = encoded(&STANDARD.encode(hash));
                    let path = format!(
                        "/opinit/ophost/v1/bridges/{bridge}/withdrawals/claimed/by_hash?withdrawal_hash={hash}"
                    );
                    let answer = rest.get(&path, None).await?;
                    Ok(if says_claimed(&answer) { claim(None) } else { Vec::new() })
                }
                _ => Err(failure),
            },
        }
    }
}

/// Claims compare whole seconds of block times.
fn claimable(time: i64, wait_seconds: i64) -> i64 {
    const NANOS: i64 = 1_000_000_000;
    time.div_euclid(NANOS).saturating_add(wait_seconds).saturating_mul(NANOS)
}

/// A `delete_output`: it deletes the output of its index and all later ones.
struct Deletion {
    index: u64,
    height: u64,
}

impl Deletion {
    /// Whether it deleted the output of this index that was proposed at this height.
    fn takes(&self, index: u64, proposed: u64) -> bool {
        self.index <= index && self.height >= proposed
    }
}

async fn deletions(search: &Search, bridge: u64) -> Result<Vec<Deletion>, QueryError> {
    const KIND: &str = "delete_output";
    let (txs, _) = search.txs(&format!("{KIND}.bridge_id='{bridge}'"), 1, true).await?;
    let of = |event: &&FoundEvent| event.kind == KIND && number(event, "bridge_id") == Some(bridge);
    let deletions = txs.iter().flat_map(|(tx, _)| {
        let indexes = tx.events.iter().filter(of).filter_map(|event| number(event, "output_index"));
        indexes.map(|index| Deletion { index, height: tx.height })
    });
    Ok(deletions.collect())
}

/// The leaf of the bridge's tree (router-mechanics §4.4); none for an amount that the L1 cannot pay.
fn withdrawal_hash(hop: &Withdrawal, bridge: u64) -> Option<[u8; 32]> {
    let hash = |bytes: &[u8]| -> [u8; 32] { Sha3_256::digest(bytes).into() };
    let amount: u64 = hop.amount.parse().ok()?;
    let mut leaf = Vec::with_capacity(8 * 3 + 32 * 3);
    leaf.extend(bridge.to_be_bytes());
    leaf.extend(hop.l2_sequence.to_be_bytes());
    for text in [&hop.sender, &hop.receiver, &hop.l1_denom] {
        leaf.extend(hash(text.as_bytes()));
    }
    leaf.extend(amount.to_be_bytes());
    Some(hash(&hash(&leaf)))
}

fn says_claimed(answer: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Answer {
        claimed: bool,
    }
    serde_json::from_slice::<Answer>(answer).is_ok_and(|answer| answer.claimed)
}

/// Base64 in a query: its three reserved characters are escaped.
fn encoded(base64: &str) -> String {
    base64.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn withdrawal(sequence: u64, who: &str, amount: &str) -> Withdrawal {
        let sent = TxRef { chain: "l2".into(), hash: String::new(), height: 1, time: None };
        Withdrawal {
            from: "l2".into(),
            to: None,
            link: Relation::Start,
            l2_sequence: sequence,
            sender: who.into(),
            receiver: who.into(),
            l2_denom: "l2/x".into(),
            l1_denom: "uinit".into(),
            amount: amount.into(),
            finalization_seconds: 0,
            sent,
            output: None,
            output_as_of: 0,
            claimed: None,
        }
    }

    #[test]
    fn a_withdrawal_has_its_hash_on_the_l1() {
        // router-mechanics §4.4.
        let example = withdrawal(42, "init1pyq6amga29zfsldw8k26kgvl7a0fhf3kftflmr", "1000000");
        let hash = withdrawal_hash(&example, 16).unwrap();
        assert_eq!(hex::encode(hash), "01cb711cb7ddd2040411af5c644ce75ac2980b3b7c4cce0f993263a69781b517");
        // Recorded.
        let recorded = withdrawal(6, "init1vsrgk7gdz7dezrmyraj3krlrdt9gkf89uv4xxy", "1234");
        let hash = STANDARD.encode(withdrawal_hash(&recorded, 1).unwrap());
        assert_eq!(hash, "sVN/ykRao6CndWZpCqZCJs92bH1erAjJk041ALzVD+M=");
        assert_eq!(encoded(&hash), "sVN%2FykRao6CndWZpCqZCJs92bH1erAjJk041ALzVD%2BM%3D");
        assert_eq!(withdrawal_hash(&withdrawal(6, "x", "18446744073709551616"), 1), None);
    }

    #[test]
    fn a_claim_is_accepted_from_the_whole_second_on() {
        assert_eq!(claimable(1_900_000_000, 20), 21_000_000_000);
    }
}
