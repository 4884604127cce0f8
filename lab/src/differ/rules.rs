//! The parts of a reply that Redis leaves open, and the comparison of the rest.

use xtask::reply::Reply;

/// The open part of a command's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    /// Nothing.
    Nothing,
    /// Nothing, but what the command would be with other arguments cannot be foreseen.
    Fixed,
    /// The order of the elements.
    Order,
    /// The order of pairs that follow each other in one list.
    Pairs,
    /// The order of what a SCAN has found: elements, or pairs.
    Scan(usize),
    /// The order of what sorts as equal. The reply is groups of so many elements, whose first is what is sorted by.
    Ties(usize),
    /// Which of those that are equally far away come first, and so which of them COUNT lets through. The reply is lists whose
    /// second element is the distance.
    Nearest,
    /// A compact sorted set that SORT has read is none any more in Redis.
    Encoding,
    /// The order of what ZSCAN has found, and how scores are written, which tells the one from the other too.
    Scores,
    /// For times: integers may be this far from each other (milliseconds, mostly).
    Time,
    /// The order of what SORT does not sort after all, and so what LIMIT lets through and where the values of GET stand.
    Unsorted,
    /// The order of the elements; with fewer arguments they would be chosen at random.
    Drained,
    /// Which elements there are, but not how many.
    Random,
    /// Everything but the type of the reply; errors are compared.
    Content,
}

/// How far times may be from each other: servers run one after the other, and machines hesitate.
const TOLERANCE: i64 = 20_000;

impl Open {
    /// Whether a spoilt command still has a reply that can be foreseen.
    pub(super) fn may_be_spoilt(self) -> bool {
        // A SCAN that loses its COUNT says how far it came.
        match self {
            Self::Nothing | Self::Order | Self::Ties(..2) | Self::Encoding | Self::Time | Self::Content => true,
            Self::Ties(2..) | Self::Fixed | Self::Scan(_) | Self::Scores | Self::Pairs => false,
            Self::Nearest | Self::Unsorted | Self::Drained | Self::Random => false,
        }
    }

    /// Whether the two replies are the same as far as they must be.
    pub(super) fn agree(self, ours: &Reply, genuine: &Reply) -> bool {
        if ours == genuine {
            return true;
        }
        // Errors say what they say.
        if matches!(ours, Reply::Plain(b'-', _)) || matches!(genuine, Reply::Plain(b'-', _)) {
            return false;
        }
        match self {
            Self::Nothing | Self::Fixed => false,
            Self::Order | Self::Drained => ours.sorted(1) == genuine.sorted(1),
            Self::Pairs => ours.sorted(2) == genuine.sorted(2),
            Self::Scan(width) => match (ours.elements(), genuine.elements()) {
                ([cursor, found], [other, expected]) => {
                    cursor == other && found.sorted(width) == expected.sorted(width)
                }
                _ => false,
            },
            Self::Ties(width) => {
                let weight = |group: &[Reply]| match &group[0] {
                    Reply::Bulk(text) => Reply::Bulk(text.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()),
                    other => other.clone(),
                };
                same_but_for_ties(ours, genuine, width, weight)
            }
            Self::Nearest => {
                let distance = |group: &[Reply]| group[0].elements().get(1).unwrap_or(&group[0]).clone();
                same_but_for_ties(ours, genuine, 1, distance)
            }
            Self::Unsorted => {
                matches!((ours, genuine), (Reply::List(..), Reply::List(..)))
                    && ours.elements().len() == genuine.elements().len()
            }
            Self::Scores => Self::Scan(2).agree(&scores_in_one_form(ours), &scores_in_one_form(genuine)),
            Self::Encoding => ours.is_bulk("listpack") && genuine.is_bulk("skiplist"),
            Self::Time => near(ours, genuine),
            Self::Random => same_shape(ours, genuine),
            Self::Content => std::mem::discriminant(ours) == std::mem::discriminant(genuine),
        }
    }
}

fn near(ours: &Reply, genuine: &Reply) -> bool {
    match (ours, genuine) {
        (Reply::List(kind, a), Reply::List(other, b)) => {
            kind == other && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| near(a, b))
        }
        _ => match (ours.int(), genuine.int()) {
            // -1 and -2 have a meaning of their own.
            (Some(a), Some(b)) if a >= 0 && b >= 0 => a.abs_diff(b) <= TOLERANCE as u64,
            _ => ours == genuine,
        },
    }
}

/// Whether two sorted results, in groups of `width` elements, are the same but for the order of groups with the same weight.
/// Which of those is let through by a limit is open too, so all of the first and last ones count as equal.
fn same_but_for_ties(ours: &Reply, genuine: &Reply, width: usize, weight: impl Fn(&[Reply]) -> Reply) -> bool {
    let weights = |reply: &Reply| reply.elements().chunks(width).map(&weight).collect::<Vec<_>>();
    let (order, expected) = (weights(ours), weights(genuine));
    if order != expected || ours.elements().len() != genuine.elements().len() {
        return false;
    }
    let mut at = 0;
    order.chunk_by(|one, next| one == next).all(|run| {
        let groups = |reply: &Reply| {
            let run = &reply.elements()[at * width..(at + run.len()) * width];
            let mut groups: Vec<_> = run.chunks(width).map(<[_]>::to_vec).collect();
            groups.sort();
            groups
        };
        let is_cut = width == 1 && (at == 0 || at + run.len() == order.len());
        let same = is_cut || groups(ours) == groups(genuine);
        at += run.len();
        same
    })
}

/// A reply to ZSCAN, with every score written as Rust does.
fn scores_in_one_form(reply: &Reply) -> Reply {
    let in_one_form = |(at, element): (usize, &Reply)| match element {
        Reply::Bulk(text) if at % 2 == 1 => match std::str::from_utf8(text).map(str::parse::<f64>) {
            Ok(Ok(score)) => Reply::Bulk(score.to_string().into_bytes()),
            _ => element.clone(),
        },
        _ => element.clone(),
    };
    let [cursor, Reply::List(kind, found)] = reply.elements() else { return reply.clone() };
    Reply::List(b'*', vec![cursor.clone(), Reply::List(*kind, found.iter().enumerate().map(in_one_form).collect())])
}

fn same_shape(ours: &Reply, genuine: &Reply) -> bool {
    match (ours, genuine) {
        (Reply::List(kind, a), Reply::List(other, b)) => {
            kind == other && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_shape(a, b))
        }
        _ => std::mem::discriminant(ours) == std::mem::discriminant(genuine),
    }
}

/// Follows a connection's transactions, because the replies of queued commands come with EXEC.
#[derive(Default)]
pub(super) struct Follower {
    queued: Option<Vec<Open>>,
    /// Whether there was a SORT.
    has_sorted: bool,
}

impl Follower {
    /// Whether the replies to this command agree.
    pub(super) fn agree(&mut self, words: &[Vec<u8>], open: Open, ours: &Reply, genuine: &Reply) -> bool {
        let is = |name: &str| words[0].eq_ignore_ascii_case(name.as_bytes());
        self.has_sorted |= is("SORT") || is("SORT_RO");
        let open = match open {
            Open::Encoding if !self.has_sorted => Open::Nothing,
            Open::Scores if !self.has_sorted => Open::Scan(2),
            Open::Nothing if (is("SORT") || is("SORT_RO")) && keeps_order(words) => Open::Unsorted,
            open => open,
        };
        if let Some(queued) = &mut self.queued {
            if genuine.is_status("QUEUED") {
                queued.push(open);
                return ours == genuine;
            }
            if is("EXEC") {
                let queued = self.queued.take().unwrap_or_default();
                return agree_one_by_one(&queued, ours, genuine);
            }
            if is("DISCARD") || is("RESET") {
                self.queued = None;
            }
            return ours == genuine;
        }
        if is("MULTI") && genuine.is_status("OK") {
            self.queued = Some(Vec::new());
        }
        open.agree(ours, genuine)
    }
}

/// Whether a SORT is told to sort by a constant.
fn keeps_order(words: &[Vec<u8>]) -> bool {
    let by = words.iter().rposition(|word| word.eq_ignore_ascii_case(b"BY"));
    by.and_then(|at| words.get(at + 1)).is_some_and(|pattern| !pattern.contains(&b'*'))
}

fn agree_one_by_one(queued: &[Open], ours: &Reply, genuine: &Reply) -> bool {
    let (Reply::List(b'*', ours), Reply::List(b'*', genuine)) = (ours, genuine) else { return ours == genuine };
    let agree = |((ours, genuine), open): ((&Reply, &Reply), &Open)| open.agree(ours, genuine);
    ours.len() == genuine.len() && ours.len() == queued.len() && ours.iter().zip(genuine).zip(queued).all(agree)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(bytes: &str) -> Reply {
        Reply::read(&mut bytes.as_bytes()).unwrap()
    }

    #[test]
    fn only_what_is_open_may_differ() {
        let check = |open: Open, ours: &str, genuine: &str, expected: bool| {
            assert_eq!(open.agree(&reply(ours), &reply(genuine)), expected, "{open:?} {ours:?} {genuine:?}");
        };
        check(Open::Nothing, ":1\r\n", ":2\r\n", false);
        check(Open::Order, "*2\r\n:1\r\n:2\r\n", "*2\r\n:2\r\n:1\r\n", true);
        check(Open::Order, "*2\r\n:1\r\n:2\r\n", "~2\r\n:2\r\n:1\r\n", false);
        check(Open::Pairs, "*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n", "*4\r\n:3\r\n:4\r\n:1\r\n:2\r\n", true);
        check(Open::Pairs, "*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n", "*4\r\n:3\r\n:2\r\n:1\r\n:4\r\n", false);
        check(Open::Ties(1), "*2\r\n$1\r\na\r\n$1\r\nb\r\n", "*2\r\n$1\r\nb\r\n$1\r\na\r\n", false);
        check(Open::Ties(1), "*2\r\n$0\r\n\r\n$1\r\n\0\r\n", "*2\r\n$1\r\n\0\r\n$0\r\n\r\n", true);
        check(Open::Ties(2), "*4\r\n:1\r\n:2\r\n:1\r\n:3\r\n", "*4\r\n:1\r\n:3\r\n:1\r\n:2\r\n", true);
        check(Open::Ties(2), "*4\r\n:1\r\n:2\r\n:1\r\n:3\r\n", "*4\r\n:1\r\n:3\r\n:1\r\n:3\r\n", false);
        let near = "*2\r\n*2\r\n+a\r\n:1\r\n*2\r\n+b\r\n:2\r\n";
        check(Open::Nearest, near, "*2\r\n*2\r\n+a\r\n:1\r\n*2\r\n+c\r\n:2\r\n", true);
        check(Open::Nearest, near, "*2\r\n*2\r\n+a\r\n:1\r\n*2\r\n+b\r\n:3\r\n", false);
        let pair = |score: &str| format!("*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n${}\r\n{score}\r\n", score.len());
        check(Open::Scores, &pair("1e+17"), &pair("100000000000000000"), true);
        check(Open::Scores, &pair("1e+17"), &pair("200000000000000000"), false);
        check(Open::Time, ":1000\r\n", ":1003\r\n", true);
        check(Open::Time, ":-1\r\n", ":5\r\n", false);
        check(Open::Random, "*1\r\n$1\r\na\r\n", "*1\r\n$1\r\nb\r\n", true);
        check(Open::Random, "*1\r\n$1\r\na\r\n", "*0\r\n", false);
        check(Open::Content, "-ERR a\r\n", "-ERR b\r\n", false);
    }

    #[test]
    fn tolerances_of_queued_commands_apply_in_exec() {
        let mut follower = Follower::default();
        let mut agree = |name: &str, open: Open, ours: &str, genuine: &str| {
            follower.agree(&[name.as_bytes().to_vec()], open, &reply(ours), &reply(genuine))
        };
        assert!(agree("multi", Open::Nothing, "+OK\r\n", "+OK\r\n"));
        assert!(agree("KEYS", Open::Order, "+QUEUED\r\n", "+QUEUED\r\n"));
        assert!(agree("EXEC", Open::Nothing, "*1\r\n*2\r\n:1\r\n:2\r\n", "*1\r\n*2\r\n:2\r\n:1\r\n"));
        assert!(!agree("EXEC", Open::Nothing, "*1\r\n*2\r\n:1\r\n:2\r\n", "*1\r\n*2\r\n:2\r\n:1\r\n"));
    }
}
