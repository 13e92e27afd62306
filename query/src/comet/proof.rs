//! The place of a transaction in the root over the transactions of its block: the tree of RFC 6962, whose leaves are the hashes of the
//! transactions.

use chain::hash::{Hash, tx_hash};

/// The root, and what leads from a leaf to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Proof {
    pub(super) root: Hash,
    pub(super) leaf: Hash,
    /// The hashes beside the way to the root, from the leaf up.
    pub(super) aunts: Vec<Hash>,
}

/// The proof of the leaf at `index`; `None` if there are not so many.
pub(super) fn proof(txs: &[Hash], index: usize) -> Option<Proof> {
    let leaf = leaf_hash(txs.get(index)?);
    let mut aunts = Vec::new();
    let root = root(txs, Some(index), &mut aunts);
    Some(Proof { root, leaf, aunts })
}

/// The root over some leaves. Adds the aunts of the leaf `index`, if it is one of them.
fn root(txs: &[Hash], index: Option<usize>, aunts: &mut Vec<Hash>) -> Hash {
    match txs {
        [] => tx_hash(&[]),
        [tx] => leaf_hash(tx),
        _ => {
            // The largest power of two that is less than their number.
            let middle = txs.len().next_power_of_two() / 2;
            let (left, right) = txs.split_at(middle);
            let in_left = index.filter(|index| *index < middle);
            let in_right = index.and_then(|index| index.checked_sub(middle));
            let (left, right) = (root(left, in_left, aunts), root(right, in_right, aunts));
            if index.is_some() {
                aunts.push(if in_left.is_some() { right } else { left });
            }
            tx_hash(&[&[1][..], &left, &right].concat())
        }
    }
}

fn leaf_hash(tx: &Hash) -> Hash {
    tx_hash(&[&[0][..], tx].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The root that follows from a proof, by the place of the leaf.
    fn followed(proof: &Proof, index: usize, total: usize) -> Hash {
        fn up(leaf: Hash, index: usize, total: usize, aunts: &[Hash]) -> Hash {
            let Some((aunt, rest)) = aunts.split_last() else { return leaf };
            let middle = total.next_power_of_two() / 2;
            let (left, right) = if index < middle {
                (up(leaf, index, middle, rest), *aunt)
            } else {
                (*aunt, up(leaf, index - middle, total - middle, rest))
            };
            tx_hash(&[&[1][..], &left, &right].concat())
        }
        up(proof.leaf, index, total, &proof.aunts)
    }

    #[test]
    fn each_leaf_leads_to_the_root() {
        for total in 1..40 {
            let txs: Vec<Hash> = (0..total).map(|place| tx_hash(&[u8::try_from(place).unwrap()])).collect();
            let expected = root(&txs, None, &mut Vec::new());
            for index in 0..total {
                let proof = proof(&txs, index).unwrap();
                assert_eq!(
                    (proof.root, followed(&proof, index, total)),
                    (expected, expected),
                    "{index} of {total}"
                );
            }
            assert_eq!(proof(&txs, total), None);
        }
    }
}
