//! Transcript files: text to steps. The format is described in `tests/transcripts/README.md`.

/// One transcript.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) settings: Vec<(String, String)>,
    /// Genuine servers older than this are not asked.
    pub(crate) needs: Option<[u32; 2]>,
    /// The genuine server is one with RedisJSON and RedisBloom.
    pub(crate) modules: bool,
    pub(crate) steps: Vec<Step>,
}

/// A step, and its line.
#[derive(Debug)]
pub(crate) struct Step {
    /// Number of its line, from 1.
    pub(crate) line: usize,
    /// Number of the client.
    pub(crate) client: u8,
    pub(crate) action: Action,
    /// The lines of the reply.
    pub(crate) expected: Vec<String>,
    pub(crate) rules: Rules,
    /// Whether the client's next step is to receive what this one has not been answered yet.
    pub(crate) answered_later: bool,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    /// A command line, not yet unquoted: it may name what was learnt meanwhile.
    Command(String),
    /// Bytes as they are, quoted.
    Raw(String),
    /// Something comes without being asked for.
    Receive,
    /// All clients switch to RESP3, or back.
    Resp3(bool),
    /// The connection ends from our side.
    Close,
    /// The server has ended the connection.
    Closed,
}

/// How a reply is judged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) order: Order,
    pub(crate) any: bool,
    pub(crate) like: bool,
    pub(crate) silent: bool,
    pub(crate) wait: bool,
    pub(crate) name: Option<String>,
    /// Not asked of a genuine server older than this.
    pub(crate) since: Option<[u32; 2]>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Order {
    #[default]
    AsWritten,
    Any,
    AnyPairs,
}

impl Rules {
    /// Whether the reply is written by hand, not as one server happened to give it.
    pub(crate) fn is_special(&self) -> bool {
        self.order != Order::AsWritten
            || self.any
            || self.like
            || self.wait
            || self.name.is_some()
            || self.since.is_some()
    }
}

impl Script {
    /// # Errors
    /// Line and reason.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut script = Self::default();
        let mut rules = Rules::default();
        let mut open = false;
        for (index, text) in text.lines().enumerate() {
            let line = index + 1;
            let at = |reason: String| format!("{line}: {reason}");
            if text.is_empty() || text == "#" || text.starts_with("# ") {
                open = false;
            } else if let Some(directive) = text.strip_prefix('@') {
                open = false;
                let mut words = directive.split_whitespace();
                let name = words.next().unwrap_or_default();
                let rest: Vec<_> = words.collect();
                match script.standing_alone(name, &rest) {
                    Some(Ok((client, action))) => script.steps.push(step(line, client, action, &mut Rules::default())),
                    Some(Err(reason)) => return Err(at(reason)),
                    None if matches!(name, "config" | "needs" | "modules") => {}
                    None => rules.add(name, &rest).map_err(at)?,
                }
            } else if let Some((client, action)) = head(text) {
                script.steps.push(step(line, client, action, &mut rules));
                open = true;
            } else if let Some(step) = script.steps.last_mut().filter(|_| open) {
                step.expected.push(text.to_owned());
            } else {
                return Err(at("a reply without a command".into()));
            }
        }
        for at in 0..script.steps.len() {
            let (step, behind) = script.steps[at..].split_first_mut().expect("`at` is inside");
            let next = behind.iter().find(|next| next.client == step.client);
            step.answered_later = next.is_some_and(|next| next.action == Action::Receive);
        }
        Ok(script)
    }

    /// A directive that does not belong to a command.
    fn standing_alone(&mut self, name: &str, rest: &[&str]) -> Option<Result<(u8, Action), String>> {
        let client = |action| match rest {
            [number] if number.len() == 1 && ("1"..="9").contains(number) => Ok((number.as_bytes()[0] - b'0', action)),
            _ => Err(format!("@{name} wants the number of a client")),
        };
        match (name, rest) {
            ("resp3", []) => Some(Ok((1, Action::Resp3(true)))),
            ("resp2", []) => Some(Ok((1, Action::Resp3(false)))),
            ("close", _) => Some(client(Action::Close)),
            ("closed", _) => Some(client(Action::Closed)),
            ("config", [name, value @ ..]) if self.steps.is_empty() => {
                let value = value.join(" ");
                self.settings.push(((*name).to_owned(), value.trim_matches('"').to_owned()));
                None
            }
            ("needs", [text, _, ..]) if self.steps.is_empty() => match version(text) {
                Ok(version) => {
                    self.needs = Some(version);
                    None
                }
                Err(reason) => Some(Err(reason)),
            },
            ("modules", []) if self.steps.is_empty() => {
                self.modules = true;
                None
            }
            ("config", _) => Some(Err("@config wants name and value, before the first command".into())),
            _ => None,
        }
    }
}

/// `9.0`
fn version(text: &str) -> Result<[u32; 2], String> {
    let parts: Vec<_> = text.split('.').map(str::parse).collect();
    let [Ok(major), Ok(minor)] = parts[..] else { return Err(format!("{text} is no version")) };
    Ok([major, minor])
}

fn step(line: usize, client: u8, action: Action, rules: &mut Rules) -> Step {
    Step { line, client, action, expected: Vec::new(), rules: std::mem::take(rules), answered_later: false }
}

impl Rules {
    fn add(&mut self, name: &str, rest: &[&str]) -> Result<(), String> {
        match (name, rest) {
            ("unordered", []) => self.order = Order::Any,
            ("unordered", ["pairs"]) => self.order = Order::AnyPairs,
            ("any", []) => self.any = true,
            ("like", []) => self.like = true,
            ("silent", []) => self.silent = true,
            ("wait", []) => self.wait = true,
            ("let", [name]) => self.name = Some((*name).to_owned()),
            ("only-ours", [_, ..]) => self.since = Some([u32::MAX, 0]),
            ("since", [version, ..]) => {
                self.since = Some(self::version(version)?);
            }
            _ => return Err(format!("@{name} {}: no such directive", rest.join(" "))),
        }
        Ok(())
    }
}

/// `> command`, `2> command`, `2<`, `! "bytes"`.
fn head(text: &str) -> Option<(u8, Action)> {
    let (client, rest) = match text.as_bytes() {
        [digit @ b'1'..=b'9', b'>' | b'<' | b'!', ..] => (digit - b'0', &text[1..]),
        _ => (1, text),
    };
    if rest == "<" {
        return Some((client, Action::Receive));
    }
    if let Some(command) = rest.strip_prefix("> ") {
        return Some((client, Action::Command(command.to_owned())));
    }
    rest.strip_prefix("! ").map(|bytes| (client, Action::Raw(bytes.to_owned())))
}

/// The words of a command line with redis-cli's quoting.
///
/// # Errors
/// A quote is not closed, or an escape is not one.
pub(crate) fn words(line: &str) -> Result<Vec<Vec<u8>>, String> {
    let (inline, _) = redis_server::protocol::split_inline(format!("{line}\n").as_bytes())
        .map_err(|_| format!("unbalanced quotes: {line}"))?
        .ok_or("a line end inside of a command")?;
    let word = |span: &redis_server::protocol::Span| inline.bytes[span.start as usize..][..span.len as usize].to_vec();
    Ok(inline.spans.iter().map(word).collect())
}

/// Puts in what stands for something else: `%{x*100}`, `%{name}`.
pub(crate) fn expand(text: &str, learnt: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("%{") {
        let (inside, behind) = after.split_once('}').ok_or("%{ without }")?;
        out += before;
        match inside.rsplit_once('*').and_then(|(text, count)| Some((text, count.parse::<usize>().ok()?))) {
            Some((text, count)) => out += &text.repeat(count),
            None => out += &learnt(inside).ok_or_else(|| format!("%{{{inside}}} is not known here"))?,
        }
        rest = behind;
    }
    Ok(out + rest)
}

#[test]
fn a_script_is_read() {
    let text = "# c\n@config databases 4\n> SET a 'b c'\nOK\n\n@unordered pairs\n2> KEYS *\n1) \"a\"\n2<\n@close 2\n! \"x\\n\"\n";
    let script = Script::parse(text).unwrap();
    assert_eq!(script.settings, [("databases".to_owned(), "4".to_owned())]);
    let steps: Vec<_> =
        script.steps.iter().map(|s| (s.line, s.client, &s.action, s.expected.len(), s.rules.order)).collect();
    assert_eq!(
        steps,
        [
            (3, 1, &Action::Command("SET a 'b c'".into()), 1, Order::AsWritten),
            (7, 2, &Action::Command("KEYS *".into()), 1, Order::AnyPairs),
            (9, 2, &Action::Receive, 0, Order::AsWritten),
            (10, 2, &Action::Close, 0, Order::AsWritten),
            (11, 1, &Action::Raw("\"x\\n\"".into()), 0, Order::AsWritten),
        ]
    );
    assert!(Script::parse("> A\n\nOK").is_err());
    assert!(Script::parse("@nonsense\n> A").is_err());
    assert_eq!(expand("a%{x*3}%{id}", &|name| (name == "id").then(|| "7".into())).unwrap(), "axxx7");
}
