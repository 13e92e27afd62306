//! Output roots and proofs of withdrawals, against what recorded layer ones accepted.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::bridge::tree::{Leaf, Tree, output_root, root_of};
use chain::bridge::{BridgeEvent, Proposal, Withdrawal};
use chain::comet::{order, parse_block, parse_results};
use replay::Recording;
use serde_json::Value;
use testkit::recording;

/// Each recorded pair with the numbers of its outputs and claims.
const PAIRS: [(&str, usize, usize); 3] = [("l1-l2", 65, 7), ("l1-l2-swaps", 43, 3), ("bridge-cases", 79, 6)];

/// A rollup: its withdrawals with their heights, and the hashes of its blocks.
#[derive(Default)]
struct Rollup {
    withdrawals: BTreeMap<u64, (u64, Withdrawal)>,
    hashes: BTreeMap<u64, [u8; 32]>,
}

impl Rollup {
    fn open(name: &str) -> Self {
        let mut rollup = Self::default();
        for height in Recording::open(&recording(name)).unwrap().heights() {
            rollup.hashes.insert(height.height, parse_block(&height.block).unwrap().hash);
            for (_, event) in events(&height.block_results) {
                if let BridgeEvent::Withdrawal(withdrawal) = event {
                    rollup.withdrawals.insert(withdrawal.sequence, (height.height, withdrawal));
                }
            }
        }
        rollup
    }

    /// The numbers of the withdrawals in the blocks after one height up to another, and their tree.
    fn tree(&self, bridge: u64, after: u64, to: u64) -> (Vec<u64>, Tree) {
        let covered = self.withdrawals.iter().filter(|(_, (height, _))| after < *height && *height <= to);
        let leaf = |(sequence, (_, withdrawal)): (&u64, &(u64, Withdrawal))| {
            let Withdrawal { from, to, base_denom, amount, .. } = withdrawal;
            let amount = amount.parse().unwrap();
            (*sequence, Leaf { bridge, sequence: *sequence, from, to, base_denom, amount }.hash())
        };
        let (sequences, leaves) = covered.map(leaf).unzip();
        (sequences, Tree::new(leaves))
    }
}

/// The events of bridges at a height, with the places of their transactions.
fn events(results: &[u8]) -> Vec<(Option<usize>, BridgeEvent)> {
    let results = parse_results(results).unwrap();
    order::in_order(&results).filter_map(|(tx, event)| Some((tx, BridgeEvent::read(event)?))).collect()
}

#[test]
fn all_recorded_output_roots_and_claims_follow_from_the_withdrawals() {
    for (pair, outputs, claims) in PAIRS {
        let rollup = Rollup::open(&format!("{pair}/l2"));
        let mut trees: BTreeMap<u64, (u64, Vec<u64>, Tree)> = BTreeMap::new();
        let (mut equal, mut proved) = (0, 0);
        for height in Recording::open(&recording(&format!("{pair}/l1"))).unwrap().heights() {
            let txs: Vec<Value> =
                height.rest_txs.as_ref().map_or(Vec::new(), |txs| serde_json::from_slice(txs).unwrap());
            for (tx, event) in events(&height.block_results) {
                match event {
                    BridgeEvent::Proposed(Proposal { bridge, output, l2_block, root, .. }) => {
                        // The one before the first recorded output is not known.
                        let before = match trees.get(&(output - 1)) {
                            Some((block, ..)) => *block,
                            None if output == 1 => 0,
                            None => {
                                trees.insert(output, (l2_block, Vec::new(), Tree::new(Vec::new())));
                                continue;
                            }
                        };
                        let (sequences, tree) = rollup.tree(bridge, before, l2_block);
                        let ours = output_root(&tree.root(), &rollup.hashes[&l2_block]);
                        assert_eq!(hex::encode(ours), hex::encode(root), "{pair}: output {output}");
                        trees.insert(output, (l2_block, sequences, tree));
                        equal += 1;
                    }
                    BridgeEvent::Deleted { output, .. } => drop(trees.split_off(&output)),
                    BridgeEvent::Claim(claim) => {
                        let (l2_block, sequences, tree) = &trees[&claim.output];
                        let place = sequences.iter().position(|known| *known == claim.sequence).unwrap();
                        let proof = tree.proof(place);
                        assert_eq!(root_of(tree.levels()[0][place], &proof), tree.root());
                        let proof: Vec<String> = proof.iter().map(|node| STANDARD.encode(node)).collect();
                        let sequence = claim.sequence.to_string();
                        let message = txs[tx.unwrap()]["body"]["messages"]
                            .as_array()
                            .unwrap()
                            .iter()
                            .find(|message| message["sequence"].as_str() == Some(&*sequence))
                            .unwrap();
                        assert_eq!(message["withdrawal_proofs"], serde_json::json!(proof));
                        assert_eq!(message["storage_root"], STANDARD.encode(tree.root()));
                        assert_eq!(message["last_block_hash"], STANDARD.encode(rollup.hashes[l2_block]));
                        proved += 1;
                    }
                    _ => {}
                }
            }
        }
        assert_eq!((equal, proved), (outputs, claims), "{pair}");
    }
}
