//! Random commands that lead values into their corners.

use std::collections::VecDeque;

use crate::support::Random;

/// Keys of each family.
pub(super) const KEYS: usize = 2;

/// Commands that work on values of one type.
pub(super) struct Family {
    /// The letter that its keys begin with.
    pub(super) letter: char,
    /// How often it is chosen, beside the others.
    pub(super) weight: usize,
    /// Templates: see [`Words`]; between ` / ` those that follow one another, with the same key for `k`. The mark in front says who
    /// runs it: see [`Knows`].
    lines: &'static [&'static str],
}

/// The commands that take part in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Knows {
    /// Those that Redis 7.0 has, and whose outcome is not random: they have no mark.
    Redis70,
    /// Those that Redis 8.0 and Valkey 9 have besides, with the mark `+`.
    Newer,
    /// All, with those that only our server has or whose outcome is random: they have the mark `~`.
    All,
}

impl Knows {
    fn has(self, line: &str) -> bool {
        match line.as_bytes()[0] {
            b'~' => self == Self::All,
            b'+' => self >= Self::Newer,
            _ => true,
        }
    }
}

/// Commands for every type.
const COMMON: &[&str] =
    &["DEL k", "PEXPIREAT k {deadline}", "~PEXPIREAT k {soon}", "PERSIST k", "RENAME k j", "COPY k j REPLACE"];
/// One command of so many is of [`COMMON`].
const COMMON_EACH: usize = 16;

pub(super) const FAMILIES: &[Family] = &[
    Family {
        letter: 's',
        weight: 3,
        lines: &[
            "SET k {e}",
            "SET k {int}",
            "SET k {e} PXAT {deadline}",
            "APPEND k {e}",
            "SETRANGE k {n} {e}",
            "SETRANGE k 20000 {e}",
            "INCRBY k {int}",
            "DECRBY k {int}",
            "INCRBYFLOAT k 0.1",
            "SETBIT k {n} 1",
            "BITFIELD k SET i64 0 {int}",
            "GETDEL k",
            "GETEX k PXAT {deadline}",
            "BITOP NOT k j",
        ],
    },
    Family {
        letter: 'p',
        weight: 1,
        lines: &[
            "PFADD k {e} {e}",
            "PFADD k",
            "PFADD k {members}",
            "PFADD k {fresh} {fresh} {fresh}",
            "DEL k",
            "PFMERGE k j",
            "~PFDEBUG TODENSE k",
            "~PFCOUNT k",
        ],
    },
    Family {
        letter: 'l',
        weight: 3,
        lines: &[
            "RPUSH k {e}",
            "LPUSH k {e} {int} {e}",
            "LPUSH k {members}",
            "RPUSH k {huge}",
            "LPOP k",
            "RPOP k {n}",
            "LREM k 1 {e}",
            "LSET k 0 {e}",
            "LINSERT k BEFORE {e} {int}",
            "LTRIM k 1 -1",
            "LTRIM k -1 -1",
            "LTRIM k 0 {n}",
            "LMOVE k j LEFT RIGHT",
            "RPUSH k {int} {int}",
        ],
    },
    Family {
        letter: 'e',
        weight: 3,
        lines: &[
            "SADD k {int}",
            "SADD k {int} {int} {int}",
            "SADD k {ints}",
            "SADD k {e}",
            "SADD k {members}",
            "SREM k {int} {e}",
            "SREM k {members}",
            "~SPOP k",
            "SPOP k 600",
            "SMOVE k j {int}",
            "SUNIONSTORE k k j",
            "SINTERSTORE k k j",
            "SDIFFSTORE k j k",
        ],
    },
    Family {
        letter: 'h',
        weight: 4,
        lines: &[
            "HSET k {e} {e}",
            "HSET k {field} {int}",
            // Two empty words.
            "HSET k  ",
            "HSET k {pairs}",
            "HSET k {field} {huge}",
            "DEL k / HSET k f {limit}",
            "HDEL k {field} {e}",
            "HDEL k {names}",
            "HINCRBY k {field} {int}",
            "HINCRBYFLOAT k {field} 0.1",
            "+HPEXPIREAT k {deadline} FIELDS 1 {field}",
            "+HPEXPIREAT k {deadline} FIELDS 2 {field} {field}",
            "~HPEXPIREAT k {soon} FIELDS 1 {field}",
            "~HPEXPIREAT k {soon} FIELDS 8 m0 m1 m2 m3 m4 m5 m6 m7",
            "+HPEXPIREAT k 1 FIELDS 1 {field}",
            "+HPERSIST k FIELDS 2 {field} {field}",
            "+HSETEX k PXAT {deadline} FIELDS 1 {field} {e}",
            "~HSETEX k PXAT {soon} FIELDS 1 only {e}",
            "+HGETEX k PERSIST FIELDS 1 {field}",
            "+HGETDEL k FIELDS 1 {field}",
        ],
    },
    Family {
        letter: 'z',
        weight: 3,
        lines: &[
            "ZADD k {score} {e}",
            "ZADD k {score} {field} {score} {field}",
            "ZADD k {scored}",
            "ZINCRBY k {score} {field}",
            "ZREM k {field} {e}",
            "ZREM k {names}",
            "ZPOPMIN k",
            "ZPOPMAX k {n}",
            "ZREMRANGEBYRANK k 0 0",
            "ZREMRANGEBYRANK k 1 -1",
            "ZUNIONSTORE k 2 k j",
            "ZRANGESTORE k j 0 {n}",
        ],
    },
    Family {
        letter: 'x',
        weight: 8,
        lines: &[
            "XADD k {next} f v / XADD k {next} f v / XADD k {next} f v / XADD k {next} f v",
            "XADD k {next} f v / XADD k {next} f v / XDEL k {last} / XTRIM k MINID {last}",
            "DEL k / XADD k {next} f v / XADD k {next} f v / XADD k {next} f v / XADD k {next} f v / XDEL k {last} / XADD k {next} f v / XTRIM k MINID {last-1}",
            "XADD k {next} f v / XGROUP CREATE k g 0 / XCLAIM k g ann 0 {last} TIME {time} RETRYCOUNT {count} FORCE JUSTID",
            "~DEL k / XADD k IDMP ann 1 * f v / XADD k IDMP bob 2 * f v / XADD k IDMP ann 1 * f v / DEL k",
            "XADD k {next} f {e}",
            "XADD k {next} {e} {e} {e} {e}",
            "XADD k {next} f v f v",
            "XADD k MAXLEN = {n} {next} f v",
            "XADD k MINID = {id} {next} f v",
            "XADD k MAXLEN ~ {n} LIMIT {n} {next} f v",
            "XADD k {edge} f v",
            "XADD k 0-* f v",
            "XDEL k {id}",
            "XDEL k {id} {id}",
            "XDEL k {last}",
            "XDEL k {last}",
            "XDEL k {last}",
            "XTRIM k MINID {id}",
            "XTRIM k MINID {last}",
            "XTRIM k MINID {last}",
            "XTRIM k MINID {last}",
            "XTRIM k MINID {beyond}",
            "XTRIM k MINID ~ {id}",
            "XTRIM k MAXLEN {n}",
            "XTRIM k MAXLEN 0",
            "XTRIM k MAXLEN ~ {n}",
            "XSETID k {id}",
            "XSETID k {beyond}",
            "XSETID k {beyond} ENTRIESADDED {count} MAXDELETEDID {id}",
            "XSETID k {edge} ENTRIESADDED {count} MAXDELETEDID 0-0",
            "XSETID k 1-1",
            "XGROUP CREATE k {g} {id} MKSTREAM",
            "XGROUP CREATE k {g} $ MKSTREAM",
            "XGROUP CREATE k {g} 0 ENTRIESREAD {read}",
            "XGROUP SETID k {g} {id}",
            "XGROUP SETID k {g} {beyond} ENTRIESREAD {read}",
            "XGROUP DESTROY k {g}",
            "XGROUP CREATECONSUMER k {g} {c}",
            "XGROUP DELCONSUMER k {g} {c}",
            "XREADGROUP GROUP {g} {c} COUNT {n} STREAMS k >",
            "XREADGROUP GROUP {g} {c} NOACK STREAMS k >",
            "XREADGROUP GROUP {g} {c} STREAMS k {id}",
            "XACK k {g} {id} {id}",
            "XCLAIM k {g} {c} 0 {id} FORCE",
            "XCLAIM k {g} {c} 0 {id} {id} TIME {time} RETRYCOUNT {count} FORCE JUSTID",
            "XCLAIM k {g} {c} 0 {id} LASTID {beyond}",
            "XAUTOCLAIM k {g} {c} 0 0 COUNT {n}",
            "~XIDMPRECORD k {c} {n} {id}",
            "~XIDMPRECORD k {c} {e} {id}",
            "~XCFGSET k IDMP-DURATION 50 IDMP-MAXSIZE 4",
            "~XDELEX k DELREF IDS 1 {id}",
            "~XDELEX k ACKED IDS 1 {id}",
            "~XACKDEL k {g} ACKED IDS 1 {id}",
        ],
    },
    Family {
        letter: 'j',
        weight: 3,
        lines: &[
            "~JSON.SET k $ {doc}",
            "~JSON.SET k {path} {doc}",
            "~JSON.DEL k {path}",
            "~JSON.MERGE k {path} {doc}",
            "~JSON.ARRAPPEND k {path} {doc}",
            "~JSON.ARRINSERT k {path} 0 {doc} {doc}",
            "~JSON.ARRPOP k {path}",
            "~JSON.ARRTRIM k {path} 1 -1",
            "~JSON.NUMINCRBY k {path} {number}",
            "~JSON.NUMMULTBY k {path} {number}",
            "~JSON.STRAPPEND k {path} \"é\"",
            "~JSON.TOGGLE k {path}",
            "~JSON.CLEAR k {path}",
        ],
    },
    Family {
        letter: 'b',
        weight: 1,
        lines: &[
            "~BF.ADD k {e}",
            "~BF.MADD k {members}",
            "~BF.MADD k {fresh} {fresh} {fresh}",
            "~BF.RESERVE k 0.01 1 EXPANSION 1",
            "~BF.RESERVE k 0.0001 {n} EXPANSION 3",
            "~BF.RESERVE k 0.9 3 NONSCALING",
            "~BF.RESERVE k 0.5 8 NONSCALING",
            "~BF.INSERT k CAPACITY 4 ITEMS {e} {fresh}",
        ],
    },
    Family {
        letter: 'v',
        weight: 2,
        lines: &[
            "~VADD k VALUES 2 {x} {x} {e} M 4",
            "~VADD k VALUES 2 {x} {x} {int} M 4 SETATTR {doc}",
            "~VADD k VALUES 2 {x} {x} 127 M 4",
            "~VADD k VALUES 2 {x} {x}  M 4",
            "~VADD k VALUES 2 {x} {x} {fresh} M 4 / VADD k VALUES 2 {x} {x} {fresh} M 4 / VADD k VALUES 2 {x} {x} {fresh} M 4",
            "~DEL k / VADD k VALUES 3 {x} {x} {x} {field} NOQUANT",
            "~VADD k VALUES 3 {x} {x} {x} {field} NOQUANT",
            "~DEL k / VADD k VALUES 2 {x} {x} {e} M 70 BIN",
            "~VADD k VALUES 2 {x} {x} {field} M 70 BIN SETATTR {doc}",
            "~DEL k / VADD k REDUCE 2 VALUES 3 {x} {x} {x} {field}",
            "~VADD k REDUCE 2 VALUES 3 {x} {x} {x} {field} EF 1",
            "~VSETATTR k {field} {doc}",
            "~VSETATTR k {field} {e}",
            "~VREM k {field}",
            "~VREM k {e}",
        ],
    },
];

const ELEMENTS: &[&str] = &["", "a", "b", "c", "0", "-0", "007", "+7", "é", "1.0", "\0\r\n", " "];
/// Around the ends of what is packed in fewer bytes, and around the ends of 64 bits.
const INTEGERS: &[&str] = &[
    "0",
    "-1",
    "12",
    "13",
    "127",
    "128",
    "-128",
    "-129",
    "4095",
    "4096",
    "-4097",
    "32767",
    "32768",
    "-32769",
    "8388607",
    "8388608",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
];
const SCORES: &[&str] = &[
    "0",
    "-0",
    "1",
    "inf",
    "-inf",
    "0.1",
    "-1.5",
    "5e-324",
    "1.7976931348623157e308",
    "9007199254740993",
    "-9223372036854775808",
    "1e17",
];
const DOCUMENTS: &[&str] = &[
    "{}",
    "[]",
    "null",
    "true",
    "0",
    "-0",
    "-0.0",
    "18446744073709551615",
    "-9223372036854775808",
    "1e308",
    "5e-324",
    "0.1",
    "1e2",
    "\"\"",
    "\"a\\u0000\\n\\\"\\\\\"",
    "\"\\ud83d\\ude00\"",
    "{\"\":{\"a\":[{}]}}",
    "{\"a\":1,\"a\":2,\"b\":{\"a\":[1,2,[3]]}}",
    "[[[[[[[[]]]]]]]]",
];
const PATHS: &[&str] = &["$", "$", "$.a", "$.b", "$..a", "$[0]", "$[-1]", "$..*", "$.b.a", "$[\"\"]", "$..[0]"];

/// Puts random words in the places of templates: `k` and `j` are keys of the family, `{…}` is a word of that sort, or several.
pub(super) struct Words {
    pub(super) random: Random,
    /// Elements at which a collection leaves its compact form.
    pub(super) limit: usize,
    pub(super) knows: Knows,
    /// A number that grows: ids of entries follow it.
    clock: u64,
    /// The next commands: a template, and its `k`.
    queued: VecDeque<(&'static str, String)>,
}

/// A command, and what it does.
pub(super) struct Command {
    pub(super) words: Vec<Vec<u8>>,
    /// The keys whose values it may change.
    pub(super) keys: Vec<String>,
    /// Whether a deadline is over in a moment.
    pub(super) ends_soon: bool,
}

impl Words {
    pub(super) fn new(seed: u64, limit: usize, knows: Knows) -> Self {
        Self { random: Random::new(seed * 2 + 1), limit, knows, clock: 1, queued: VecDeque::new() }
    }

    fn pick(&mut self, of: &[&'static str]) -> &'static str {
        of[self.random.below(of.len())]
    }

    /// A random command; `now` in milliseconds of Unix time.
    pub(super) fn command(&mut self, now: u64) -> Command {
        if let Some((line, key)) = self.queued.pop_front() {
            return self.filled(line, &key, now);
        }
        loop {
            let mut at = self.random.below(FAMILIES.iter().map(|family| family.weight).sum());
            let family = FAMILIES.iter().find(|family| {
                let is_it = at < family.weight;
                at = at.saturating_sub(family.weight);
                is_it
            });
            let family = family.expect("the weights add up");
            if !family.lines.iter().any(|line| self.knows.has(line)) {
                continue;
            }
            let lines = if self.random.below(COMMON_EACH) == 0 { COMMON } else { family.lines };
            let line = self.pick(lines);
            if self.knows.has(line) {
                let key = format!("{}{}", family.letter, self.random.below(KEYS));
                let mut lines = line.trim_start_matches(['~', '+']).split(" / ");
                let first = lines.next().unwrap_or_default();
                self.queued.extend(lines.map(|line| (line, key.clone())));
                return self.filled(first, &key, now);
            }
        }
    }

    fn filled(&mut self, line: &str, key: &str, now: u64) -> Command {
        let mut command = Command { words: Vec::new(), keys: Vec::new(), ends_soon: line.contains("{soon}") };
        self.clock += u64::from(line.contains("{next}"));
        for word in line.split(' ') {
            match word {
                "k" | "j" => {
                    let key = match word {
                        "k" => key.to_owned(),
                        _ => format!("{}{}", &key[..1], self.random.below(KEYS)),
                    };
                    command.words.push(key.clone().into_bytes());
                    if !command.keys.contains(&key) {
                        command.keys.push(key);
                    }
                }
                _ if word.starts_with('{') => self.fill(word, now, &mut command.words),
                _ => command.words.push(word.into()),
            }
        }
        command
    }

    fn fill(&mut self, sort: &str, now: u64, words: &mut Vec<Vec<u8>>) {
        let one = match sort {
            "{members}" | "{names}" | "{ints}" | "{pairs}" | "{scored}" => return self.many(sort, words),
            "{e}" => return words.push(self.element()),
            // The longest value of a listpack.
            "{limit}" => return words.push(vec![b'x'; 64]),
            "{huge}" => return words.push(vec![b'y'; 8170 + self.random.below(40)]),
            "{int}" => self.pick(INTEGERS).to_owned(),
            "{score}" => self.pick(SCORES).to_owned(),
            "{doc}" => self.document(),
            "{path}" => self.pick(PATHS).to_owned(),
            "{number}" => self.pick(&["1", "0", "-1", "0.5", "1e300", "9223372036854775807"]).to_owned(),
            "{x}" => self.pick(&["0", "1", "-1", "0.5", "-2.25", "1e30", "inf"]).to_owned(),
            "{n}" => self.random.below(7).to_string(),
            "{field}" => format!("m{}", self.random.below(8)),
            "{fresh}" => self.random.below(1 << 20).to_string(),
            "{deadline}" => self.pick(&["1999999999999", "9999999999999", "70368744177663"]).to_owned(),
            "{soon}" => (now + 1).to_string(),
            "{g}" => self.pick(&["g", "h", ""]).to_owned(),
            "{c}" => self.pick(&["ann", "bob", "c"]).to_owned(),
            "{time}" => self.pick(&["0", "1", "1600000000000"]).to_owned(),
            // A count above the largest number wraps to a negative one in the genuine server.
            "{count}" => self
                .pick(if self.knows == Knows::All {
                    &["0", "1", "5", "100", "9223372036854775807"]
                } else {
                    &["0", "5", "100"]
                })
                .to_owned(),
            "{read}" => self
                .pick(if self.knows == Knows::All {
                    &["-1", "0", "1", "9223372036854775807"]
                } else {
                    &["-1", "0", "1"]
                })
                .to_owned(),
            id => self.id(id),
        };
        words.push(one.into_bytes());
    }

    fn element(&mut self) -> Vec<u8> {
        let longest = [15, 16, 17, 44, 45, 63, 64, 65];
        match self.random.below(8) {
            0 => vec![b'x'; longest[self.random.below(longest.len())]],
            1 => vec![0xff, 0xfe, 0],
            2 => self.pick(INTEGERS).into(),
            _ => self.pick(ELEMENTS).into(),
        }
    }

    fn document(&mut self) -> String {
        match self.random.below(16) {
            // As deep as may be, or one less.
            0 => {
                let depth = 127 + self.random.below(2);
                ["[".repeat(depth), "]".repeat(depth)].concat()
            }
            // Around the largest that a short head tells.
            1 => format!("\"{}\"", "x".repeat(250 + self.random.below(10))),
            2 => format!("[{}]", vec!["1"; 120 + self.random.below(12)].join(",")),
            _ => self.pick(DOCUMENTS).to_owned(),
        }
    }

    /// About as many as stay compact.
    fn many(&mut self, sort: &str, words: &mut Vec<Vec<u8>>) {
        let count = (self.limit + self.random.below(3)).saturating_sub(1);
        for n in 0..count {
            let name = if sort == "{ints}" { (n * 3).to_string() } else { format!("m{n}") };
            match sort {
                "{pairs}" => words.extend([name.into_bytes(), n.to_string().into_bytes()]),
                "{scored}" => words.extend([n.to_string().into_bytes(), name.into_bytes()]),
                _ => words.push(name.into_bytes()),
            }
        }
    }

    /// Ids, three to a millisecond.
    fn id(&mut self, sort: &str) -> String {
        let at = |clock: u64| format!("{}-{}", 1 + clock / 3, clock % 3);
        match sort {
            "{next}" => at(self.clock),
            "{last}" => at(self.clock),
            "{last-1}" => at(self.clock.saturating_sub(1)),
            "{beyond}" => at(self.clock + 1 + self.random.below(4) as u64),
            "{id}" => at(self.clock.saturating_sub(self.random.below(40) as u64)),
            "{edge}" => self
                .pick(&[
                    "0-1",
                    "18446744073709551615-18446744073709551615",
                    "18446744073709551615-18446744073709551614",
                    "18446744073709551614-18446744073709551615",
                    "9223372036854775807-9223372036854775807",
                ])
                .to_owned(),
            other => panic!("no sort of words is called {other}"),
        }
    }
}
