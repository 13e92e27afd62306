//! Merkle trees of withdrawals, as OPinit's layer one checks them: SHA3-256 over pairs in the order of their bytes.
//!
//! Each output has a tree of its own: the withdrawals of the blocks that it covers and its predecessor does not. The rules are those of
//! OPinit (`x/ophost/types/output.go`) and of its bots (`merkle/merkle.go`).

use sha3::{Digest as _, Sha3_256};

/// A node of a tree.
pub type Node = [u8; 32];

/// The version of an output root; the layer one knows no other.
pub const VERSION: u8 = 1;

/// The root of a tree without withdrawals.
pub const EMPTY: Node = [0; 32];

/// A withdrawal as the bridge hashes it.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<'a> {
    /// The bridge.
    pub bridge: u64,
    /// Its number on the rollup.
    pub sequence: u64,
    /// The text of its sender.
    pub from: &'a str,
    /// The text of its receiver.
    pub to: &'a str,
    /// The denom on the layer one.
    pub base_denom: &'a str,
    /// The amount; the layer one can pay no larger one.
    pub amount: u64,
}

impl Leaf<'_> {
    /// Its hash, by which the layer one remembers that it was claimed.
    pub fn hash(&self) -> Node {
        let once = Sha3_256::new()
            .chain_update(self.bridge.to_be_bytes())
            .chain_update(self.sequence.to_be_bytes())
            .chain_update(Sha3_256::digest(self.from))
            .chain_update(Sha3_256::digest(self.to))
            .chain_update(Sha3_256::digest(self.base_denom))
            .chain_update(self.amount.to_be_bytes())
            .finalize();
        Sha3_256::digest(once).into()
    }
}

/// The parent of two nodes.
fn parent(a: &Node, b: &Node) -> Node {
    let (low, high) = if a <= b { (a, b) } else { (b, a) };
    Sha3_256::new().chain_update(low).chain_update(high).finalize().into()
}

/// The root that is proposed: that of the withdrawals, and the hash of the last block that it covers.
pub fn output_root(storage_root: &Node, last_block_hash: &[u8; 32]) -> Node {
    Sha3_256::new()
        .chain_update([VERSION])
        .chain_update(storage_root)
        .chain_update(last_block_hash)
        .finalize()
        .into()
}

/// The root to which a proof leads from a leaf.
pub fn root_of(leaf: Node, proof: &[Node]) -> Node {
    proof.iter().fold(leaf, |node, sibling| parent(&node, sibling))
}

/// A tree of withdrawals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// From the leaves to the root; empty without leaves. The last leaf is repeated until their number is a power of two, and at least
    /// two.
    levels: Vec<Vec<Node>>,
}

impl Tree {
    /// The tree of leaves in the order of their sequences.
    pub fn new(mut leaves: Vec<Node>) -> Self {
        let Some(last) = leaves.last().copied() else { return Self { levels: Vec::new() } };
        leaves.resize(leaves.len().next_power_of_two().max(2), last);
        let mut levels = vec![leaves];
        while let Some(level) = levels.last().filter(|level| level.len() > 1) {
            let above = level.chunks_exact(2).map(|pair| parent(&pair[0], &pair[1])).collect();
            levels.push(above);
        }
        Self { levels }
    }

    /// Its levels from the leaves to the root; none without leaves.
    pub fn levels(&self) -> &[Vec<Node>] {
        &self.levels
    }

    /// Its root.
    pub fn root(&self) -> Node {
        self.levels.last().and_then(|level| level.first()).copied().unwrap_or(EMPTY)
    }

    /// The siblings from the leaf at `place` up. A tree of one leaf has the leaf itself as its sibling.
    pub fn proof(&self, place: usize) -> Vec<Node> {
        let below_root = self.levels.iter().take(self.levels.len().saturating_sub(1));
        below_root.enumerate().filter_map(|(level, nodes)| nodes.get((place >> level) ^ 1)).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_withdrawal_has_its_hash_on_the_layer_one() {
        let who = "init1pyq6amga29zfsldw8k26kgvl7a0fhf3kftflmr";
        let example =
            Leaf { bridge: 16, sequence: 42, from: who, to: who, base_denom: "uinit", amount: 1_000_000 };
        assert_eq!(
            hex::encode(example.hash()),
            "01cb711cb7ddd2040411af5c644ce75ac2980b3b7c4cce0f993263a69781b517"
        );
        let who = "init1vsrgk7gdz7dezrmyraj3krlrdt9gkf89uv4xxy";
        let recorded = Leaf { bridge: 1, sequence: 6, from: who, to: who, base_denom: "uinit", amount: 1234 };
        assert_eq!(
            hex::encode(recorded.hash()),
            "b1537fca445aa3a0a77566690aa64226cf766c7d5eac08c9934e3500bcd50fe3"
        );
    }

    #[test]
    fn each_proof_leads_to_the_root() {
        for len in 0..20_u8 {
            let leaves: Vec<Node> = (0..len).map(|leaf| [leaf; 32]).collect();
            let tree = Tree::new(leaves.clone());
            for (place, leaf) in leaves.iter().enumerate() {
                let proof = tree.proof(place);
                assert_eq!(root_of(*leaf, &proof), tree.root(), "{place} of {len}");
                assert!(proof.len() <= 5 && !proof.is_empty());
            }
        }
        assert_eq!(Tree::new(Vec::new()).root(), EMPTY);
        assert_eq!(Tree::new(vec![[7; 32]]).proof(0), [[7; 32]]);
    }
}
