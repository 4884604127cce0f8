//! The Huffman code of strings (RFC 7541 section 5.2 and Appendix B).

/// Bits of each byte's code; the last one is that of EOS. Codes of one length follow each other in the order of their bytes,
/// and longer ones follow shorter ones, so that the lengths say it all.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

const EOS: usize = 256;

/// The codes by symbol, from the lowest bit up.
const CODES: [u32; 257] = codes();

const fn codes() -> [u32; 257] {
    let (mut codes, mut next, mut length) = ([0; 257], 0, 1);
    while length <= 30 {
        let mut symbol = 0;
        while symbol <= EOS {
            if LENGTHS[symbol] as u32 == length {
                codes[symbol] = next;
                next += 1;
            }
            symbol += 1;
        }
        next <<= 1;
        length += 1;
    }
    codes
}

/// Inner nodes of the code's tree: one less than its leaves.
const NODES: usize = 256;

/// The effect of four bits of input at a node: no code is shorter than five bits, so they end one at most.
#[derive(Clone, Copy)]
struct Step {
    /// The node behind them.
    node: u8,
    /// The byte that they end, if `EMITS` says so.
    byte: u8,
    flags: u8,
}

/// The step ends a byte.
const EMITS: u8 = 1;
/// The input may end behind the step: the rest is fewer than eight ones.
const MAY_END: u8 = 2;
/// The step leads to EOS, which no string holds.
const FAILS: u8 = 4;

static STEPS: [[Step; 16]; NODES] = steps();

/// Children of each node: another node, or `LEAF` and a symbol.
const TREE: [[u16; 2]; NODES] = tree();
const LEAF: u16 = 1 << 15;

const fn tree() -> [[u16; 2]; NODES] {
    let (mut tree, mut used, mut symbol) = ([[0; 2]; NODES], 1, 0);
    while symbol <= EOS {
        let (mut node, mut bit) = (0, LENGTHS[symbol] as u32);
        while bit > 1 {
            bit -= 1;
            let side = (CODES[symbol] >> bit & 1) as usize;
            if tree[node][side] == 0 {
                tree[node][side] = used;
                used += 1;
            }
            node = tree[node][side] as usize;
        }
        tree[node][(CODES[symbol] & 1) as usize] = LEAF | symbol as u16;
        symbol += 1;
    }
    assert!(used as usize == NODES);
    tree
}

const fn steps() -> [[Step; 16]; NODES] {
    let may_end = padding();
    let mut steps = [[Step { node: 0, byte: 0, flags: 0 }; 16]; NODES];
    let mut from = 0;
    while from < NODES {
        let mut bits = 0;
        while bits < 16 {
            let (mut node, mut step, mut bit) = (from, Step { node: 0, byte: 0, flags: 0 }, 4);
            while bit > 0 {
                bit -= 1;
                let next = TREE[node][bits >> bit & 1];
                if next == LEAF | EOS as u16 {
                    step.flags = FAILS;
                    break;
                }
                node = next as usize;
                if next & LEAF != 0 {
                    step.byte = (next & 0xff) as u8;
                    step.flags |= EMITS;
                    node = 0;
                }
            }
            if step.flags & FAILS == 0 {
                step.node = node as u8;
                if may_end[node] {
                    step.flags |= MAY_END;
                }
            }
            steps[from][bits] = step;
            bits += 1;
        }
        from += 1;
    }
    steps
}

/// The nodes that up to seven ones lead to: the root, and those of a string's padding.
const fn padding() -> [bool; NODES] {
    let (mut may_end, mut node, mut count) = ([false; NODES], 0, 0);
    while count <= 7 {
        may_end[node] = true;
        node = TREE[node][1] as usize;
        count += 1;
    }
    may_end
}

/// Appends the text of a code. `None` if it holds EOS, or ends with anything but a few ones.
pub(super) fn decode(code: &[u8], out: &mut Vec<u8>) -> Option<()> {
    out.reserve(code.len() * 8 / 5);
    let (mut node, mut flags) = (0, MAY_END);
    for byte in code {
        for bits in [byte >> 4, byte & 0xf] {
            let step = STEPS[usize::from(node)][usize::from(bits)];
            if step.flags & EMITS != 0 {
                out.push(step.byte);
            }
            if step.flags & FAILS != 0 {
                return None;
            }
            (node, flags) = (step.node, step.flags);
        }
    }
    (flags & MAY_END != 0).then_some(())
}

/// Bytes that [`encode`] appends.
pub(super) fn encoded_length(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|byte| usize::from(LENGTHS[usize::from(*byte)])).sum();
    bits.div_ceil(8)
}

/// Appends the code of a text.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0_u64, 0);
    for &byte in text {
        let length = u32::from(LENGTHS[usize::from(byte)]);
        bits = bits << length | u64::from(CODES[usize::from(byte)]);
        count += length;
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        // The rest is filled with the first bits of EOS, which are ones.
        out.push((bits << (8 - count)) as u8 | 0xff >> count);
    }
}
