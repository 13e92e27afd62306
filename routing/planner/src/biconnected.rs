//! Biconnected components (Tarjan): the edges that a simple path between two assets can use.
//!
//! A graph splits into biconnected components (blocks), parts in which any two nodes lie on a common cycle.
//! Articulation points join them into a tree (Hopcroft and Tarjan, *Efficient algorithms for graph manipulation*,
//! 1973). A simple path stays inside the components on the unique path between its ends in that tree. Assets are mostly
//! a forest of vouchers with few cycles, so the remaining search space is small however many vouchers a token has.

use std::ops::Range;

/// No component: the root of a search.
const NONE: u32 = u32::MAX;

/// Biconnected components of a graph.
#[derive(Debug)]
pub(crate) struct BiconnectedComponents {
    /// Discovery index of each node, from 0.
    found: Vec<u32>,
    /// Component of the tree edge to each node.
    component: Vec<u32>,
    /// First discovered node of each component.
    head: Vec<u32>,
    /// Root of each node's search: nodes with the same root are connected.
    root: Vec<u32>,
}

impl BiconnectedComponents {
    /// Computes the components of a graph in which every edge has an opposite.
    pub(crate) fn new(
        nodes: usize,
        edges_of: impl Fn(usize) -> Range<usize>,
        end_of: impl Fn(usize) -> usize,
    ) -> Self {
        let mut walk = Walk::new(nodes);
        for root in 0..nodes {
            if walk.found[root] == NONE {
                walk.from(root, &edges_of, &end_of);
            }
        }
        let (mut component, mut head) = (vec![NONE; nodes], Vec::new());
        for node in walk.order {
            let parent = walk.parent[node];
            if parent == NONE {
                continue;
            }
            if walk.low[node] >= walk.found[parent as usize] {
                component[node] = number(head.len());
                head.push(parent);
            } else {
                component[node] = component[parent as usize];
            }
        }
        Self { found: walk.found, component, head, root: walk.root }
    }

    /// The components that a simple path between two nodes can use; `None` if there is no path, or more than `limit`
    /// components.
    pub(crate) fn between(&self, a: usize, b: usize, limit: usize) -> Option<Vec<u32>> {
        if self.root[a] != self.root[b] {
            return None;
        }
        let (mut a, mut b, mut components) = (a, b, Vec::with_capacity(limit));
        while a != b {
            let later = if self.found[a] > self.found[b] { &mut a } else { &mut b };
            let component = self.component[*later];
            if component == NONE {
                return None;
            }
            if !components.contains(&component) {
                if components.len() == limit {
                    return None;
                }
                components.push(component);
            }
            *later = self.head[component as usize] as usize;
        }
        Some(components)
    }

    /// A number that is the same for all connected nodes.
    pub(crate) fn root(&self, node: usize) -> u32 {
        self.root[node]
    }

    /// Component of the edges between two neighbours.
    pub(crate) fn of(&self, a: usize, b: usize) -> u32 {
        // One of the two is the parent of the other.
        self.component[if self.found[a] > self.found[b] { a } else { b }]
    }
}

/// Depth-first search with the state of Tarjan's algorithm.
struct Walk {
    found: Vec<u32>,
    /// Low-link: the earliest node reachable without the tree edge to the parent.
    low: Vec<u32>,
    parent: Vec<u32>,
    order: Vec<usize>,
    root: Vec<u32>,
}

impl Walk {
    fn new(nodes: usize) -> Self {
        Self {
            found: vec![NONE; nodes],
            low: vec![0; nodes],
            parent: vec![NONE; nodes],
            order: Vec::with_capacity(nodes),
            root: vec![NONE; nodes],
        }
    }

    fn from(
        &mut self,
        root: usize,
        edges_of: &impl Fn(usize) -> Range<usize>,
        end_of: &impl Fn(usize) -> usize,
    ) {
        let mut open = vec![(root, edges_of(root))];
        self.meet(root, NONE);
        while let Some((node, edges)) = open.last_mut() {
            let node = *node;
            if let Some(next) = edges.next().map(end_of) {
                if self.found[next] == NONE {
                    self.meet(next, number(node));
                    open.push((next, edges_of(next)));
                } else if self.parent[node] != number(next) {
                    self.low[node] = self.low[node].min(self.found[next]);
                }
                continue;
            }
            open.pop();
            if let Some((parent, _)) = open.last() {
                self.low[*parent] = self.low[*parent].min(self.low[node]);
            }
        }
    }

    fn meet(&mut self, node: usize, parent: u32) {
        self.found[node] = number(self.order.len());
        self.low[node] = self.found[node];
        self.parent[node] = parent;
        self.root[node] = if parent == NONE { number(node) } else { self.root[parent as usize] };
        self.order.push(node);
    }
}

/// A registry never has four billion assets.
fn number(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn components(nodes: usize, pairs: &[(usize, usize)]) -> BiconnectedComponents {
        let mut edges: Vec<_> = pairs.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).collect();
        edges.sort_unstable();
        let start = |node| edges.partition_point(|edge| edge.0 < node);
        BiconnectedComponents::new(nodes, |node| start(node)..start(node + 1), |edge| edges[edge].1)
    }

    #[test]
    fn in_a_tree_each_edge_is_a_component() {
        let tree = components(6, &[(0, 1), (0, 2), (2, 3), (2, 4)]);
        let between = tree.between(1, 3, 8).unwrap();
        assert_eq!(between.len(), 3);
        for (a, b, on) in [(0, 1, true), (0, 2, true), (2, 3, true), (2, 4, false)] {
            assert_eq!(between.contains(&tree.of(a, b)), on, "{a} {b}");
        }
        assert_eq!(tree.between(1, 5, 8), None);
        assert_eq!(tree.between(1, 3, 2), None);
        assert_eq!(tree.between(1, 1, 0), Some(vec![]));
    }

    #[test]
    fn a_cycle_is_one_component_and_its_branches_are_others() {
        // 0-1-2-3-0 is a cycle; 4 is a branch of 1, 5 of 3; 3-6-7-3 is another cycle.
        let graph = components(8, &[(0, 1), (1, 2), (2, 3), (3, 0), (1, 4), (3, 5), (3, 6), (6, 7), (7, 3)]);
        assert_eq!(graph.of(0, 1), graph.of(2, 3));
        assert_ne!(graph.of(0, 1), graph.of(3, 6));
        assert_eq!(graph.between(0, 2, 8), Some(vec![graph.of(0, 1)]));
        let mut between = graph.between(4, 7, 8).unwrap();
        between.sort_unstable();
        let mut expected = vec![graph.of(1, 4), graph.of(0, 1), graph.of(3, 6)];
        expected.sort_unstable();
        assert_eq!(between, expected);
    }

    #[test]
    fn parallel_edges_are_in_one_component() {
        let graph = components(3, &[(0, 1), (0, 1), (1, 2)]);
        assert_eq!(graph.between(0, 1, 8).unwrap().len(), 1);
        assert_eq!(graph.between(0, 2, 8).unwrap().len(), 2);
    }
}
