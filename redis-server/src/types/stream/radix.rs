//! How many nodes the genuine server's radix tree of the same keys has, for `XINFO STREAM`.

use super::StreamId;

/// Bytes of a key.
const KEY: usize = 16;

/// Number of nodes of a path-compressed tree of ascending `keys`: a node for every branch, one for every run of bytes
/// between branches, one for every end; the root is there in any case.
pub(super) fn nodes(keys: impl Iterator<Item = StreamId>) -> usize {
    let mut nodes = 0;
    // Depths of the branches on the way to the last key.
    let mut branches: Vec<usize> = Vec::new();
    let mut before: Option<([u8; KEY], Option<usize>)> = None;
    for key in keys {
        let key = key.to_be_bytes();
        let mut shared_before = None;
        if let Some((last, shared_with_its_last)) = before {
            let shared = last.iter().zip(&key).take_while(|(a, b)| a == b).count();
            nodes += 1 + run(Some(shared).max(shared_with_its_last), KEY);
            nodes += close(&mut branches, Some(shared));
            if branches.last() != Some(&shared) {
                branches.push(shared);
            }
            shared_before = Some(shared);
        }
        before = Some((key, shared_before));
    }
    let Some((_, shared)) = before else { return 1 };
    nodes + 1 + run(shared, KEY) + close(&mut branches, None)
}

/// Ends the branches that are deeper than `depth`; the number of their nodes.
fn close(branches: &mut Vec<usize>, depth: Option<usize>) -> usize {
    let mut nodes = 0;
    while let Some(&deepest) = branches.last()
        && Some(deepest) > depth
    {
        branches.pop();
        nodes += 1 + run(branches.last().copied().max(depth), deepest);
    }
    nodes
}

/// One node if there are bytes between a branch at depth `from` and depth `to`.
fn run(from: Option<usize>, to: usize) -> usize {
    // A branch's own node holds the first byte of each way on.
    usize::from(to > from.map_or(0, |from| from + 1))
}

#[test]
fn nodes_are_counted() {
    let check = |keys: &[(u64, u64)], expected: usize| {
        assert_eq!(nodes(keys.iter().map(|&(ms, seq)| StreamId { ms, seq })), expected, "{keys:?}");
    };
    check(&[], 1);
    check(&[(1, 0)], 2);
    // A run, a branch on the last byte, two ends.
    check(&[(1, 0), (1, 1)], 4);
    // A run, a branch, two runs, two ends.
    check(&[(1, 0), (2, 0)], 6);
    check(&[(1, 0), (1, 1), (2, 0)], 8);
    check(&[(0, 1), (1 << 63, 0)], 5);
}
