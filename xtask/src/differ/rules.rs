//! What Redis leaves open of a reply, and comparing the rest.

use super::reply::Reply;

/// What is open of a command's reply.
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
    /// What is said of times: integers may be this far from each other (milliseconds, mostly).
    Time,
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
        !matches!(self, Self::Random | Self::Fixed | Self::Scan(_))
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
            Self::Order => ours.sorted(1) == genuine.sorted(1),
            Self::Pairs => ours.sorted(2) == genuine.sorted(2),
            Self::Scan(width) => match (ours.elements(), genuine.elements()) {
                ([cursor, found], [other, expected]) => {
                    cursor == other && found.sorted(width) == expected.sorted(width)
                }
                _ => false,
            },
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
}

impl Follower {
    /// Whether the replies to this command agree.
    pub(super) fn agree(&mut self, words: &[Vec<u8>], open: Open, ours: &Reply, genuine: &Reply) -> bool {
        let is = |name: &str| words[0].eq_ignore_ascii_case(name.as_bytes());
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
        check(Open::Time, ":1000\r\n", ":1003\r\n", true);
        check(Open::Time, ":-1\r\n", ":5\r\n", false);
        check(Open::Random, "*1\r\n$1\r\na\r\n", "*1\r\n$1\r\nb\r\n", true);
        check(Open::Random, "*1\r\n$1\r\na\r\n", "*0\r\n", false);
        check(Open::Content, "-ERR a\r\n", "-ERR b\r\n", false);
    }

    #[test]
    fn what_is_open_of_queued_commands_is_open_in_exec() {
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
