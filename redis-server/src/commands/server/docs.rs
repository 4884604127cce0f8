//! `COMMAND DOCS`: the purpose of commands, and their arguments.

#[path = "docs_table.rs"]
mod table;

use crate::command::Registry;
use crate::command::Row;
use crate::command::{Args, Command, Result};
use crate::exec::core::Ctx;
use crate::protocol::Reply;

/// One command's documentation.
struct Doc {
    /// Full name: `config|get`.
    name: &'static str,
    /// Version of Redis that brought it.
    since: &'static str,
    complexity: &'static str,
    summary: &'static str,
    /// The arguments in the notation of [`parse`].
    syntax: &'static str,
    /// Version since which other commands are preferred, or empty.
    until: &'static str,
}

/// An argument, or a group of them.
#[derive(Debug, Default, PartialEq)]
struct Arg<'a> {
    name: String,
    kind: &'static str,
    token: &'a str,
    optional: bool,
    multiple: bool,
    multiple_token: bool,
    arguments: Vec<Self>,
}

/// `COMMAND DOCS [command-name …]`
pub(super) fn docs(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (mark, registry) = (cx.reply.mark(), cx.instance().registry);
    let mut count = 0;
    let mut write = |row: &'static Row| {
        count += 1;
        document(cx.reply, registry, row);
    };
    if args.len() == 2 {
        registry.rows().iter().filter(|row| row.parent.is_none()).for_each(&mut write);
    } else {
        args.from(2).iter().filter_map(|name| registry.lookup_full(name)).for_each(&mut write);
    }
    cx.reply.map_at(mark, count);
    Ok(())
}

/// Writes a row's name and its documentation.
fn document(reply: &mut Reply, registry: &Registry, row: &'static Row) {
    let name = row.name();
    reply.bulk(name.as_bytes());
    let mark = reply.mark();
    let mut count = 0;
    let mut field = |reply: &mut Reply, name: &str, value: &str| {
        count += 1;
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    };
    let doc = table::DOCS.iter().find(|doc| doc.name == name);
    let summary = match doc {
        Some(doc) => doc.summary,
        None if row.command.name == "help" => "Lists the subcommands",
        None => "",
    };
    field(reply, "summary", summary);
    field(reply, "since", doc.map_or("5.0.0", |doc| doc.since));
    field(reply, "group", &row.group.replace('_', "-"));
    field(reply, "complexity", doc.map_or("O(1)", |doc| doc.complexity));
    if let Some(doc) = doc.filter(|doc| !doc.until.is_empty()) {
        field(reply, "deprecated_since", doc.until);
        count += 1;
        reply.bulk(b"doc_flags");
        reply.set(1);
        reply.simple("deprecated");
    }
    let arguments = doc.map(|doc| parse(doc.syntax)).unwrap_or_default();
    if !arguments.is_empty() {
        count += 1;
        reply.bulk(b"arguments");
        write_arguments(reply, &arguments, row.command, &mut 0);
    }
    if row.subcommands != 0 {
        count += 1;
        reply.bulk(b"subcommands");
        reply.map(usize::from(row.subcommands));
        registry.subcommands(row).iter().for_each(|row| document(reply, registry, row));
    }
    reply.map_at(mark, count);
}

/// Writes arguments; `keys` counts the keys so far: each has the next key specification.
fn write_arguments(reply: &mut Reply, arguments: &[Arg<'_>], command: &Command, keys: &mut usize) {
    reply.array(arguments.len());
    for argument in arguments {
        let mark = reply.mark();
        let mut count = 2;
        reply.bulk(b"name");
        reply.bulk(argument.name.as_bytes());
        reply.bulk(b"type");
        reply.bulk(argument.kind.as_bytes());
        if argument.kind == "key" && !command.keys.is_empty() {
            count += 1;
            reply.bulk(b"key_spec_index");
            reply.count((*keys).min(command.keys.len() - 1));
            *keys += 1;
        }
        if !argument.token.is_empty() {
            count += 1;
            reply.bulk(b"token");
            reply.bulk(argument.token.as_bytes());
        }
        let flags = [
            (argument.optional, "optional"),
            (argument.multiple, "multiple"),
            (argument.multiple_token, "multiple_token"),
        ];
        let flags = flags.iter().filter(|(set, _)| *set);
        if flags.clone().count() > 0 {
            count += 1;
            reply.bulk(b"flags");
            reply.set(flags.clone().count());
            flags.for_each(|(_, name)| reply.simple(name));
        }
        if !argument.arguments.is_empty() {
            count += 1;
            reply.bulk(b"arguments");
            write_arguments(reply, &argument.arguments, command, keys);
        }
        reply.map_at(mark, count);
    }
}

/// Reads the table's notation:
///
/// - `name` is a string; `name:k` a key, `:i` an integer, `:d` a double, `:p` a pattern, `:t` a Unix time;
/// - `WORD` stands for itself, and `WORD argument` is an argument behind a word;
/// - `name=(a|b)` is one of several, `name=<a b>` several in this order;
/// - `[argument]` may be missing, `argument...` may be repeated, `argument...+` with its word each time.
fn parse(syntax: &str) -> Vec<Arg<'_>> {
    let mut rest = syntax;
    sequence(&mut rest)
}

/// Arguments up to the end, or to what ends a group.
fn sequence<'a>(rest: &mut &'a str) -> Vec<Arg<'a>> {
    let mut arguments = Vec::new();
    loop {
        *rest = rest.trim_start_matches([' ', '|']);
        // Characters without a meaning end it, too: a test reads every row.
        if rest.is_empty() || rest.starts_with([')', '>', ']', '<', '(']) {
            return arguments;
        }
        arguments.push(argument(rest));
    }
}

fn argument<'a>(rest: &mut &'a str) -> Arg<'a> {
    if let Some(inside) = rest.strip_prefix('[') {
        *rest = inside;
        let inner = argument(rest);
        *rest = rest.strip_prefix(']').unwrap_or(rest);
        return repeated(Arg { optional: true, ..inner }, rest);
    }
    let word = take_word(rest);
    // Some words stand for one argument in the text and for several bytes here: `NO ONE`.
    let is_token = !word.is_empty() && !word.contains(|c: char| c.is_ascii_lowercase());
    if !is_token {
        return value(word, rest);
    }
    let ahead = rest.strip_prefix(' ').filter(|ahead| ahead.starts_with(|c: char| c.is_ascii_lowercase()));
    match ahead {
        Some(ahead) => {
            *rest = ahead;
            let word_of_value = take_word(rest);
            Arg { token: word, ..value(word_of_value, rest) }
        }
        None => repeated(Arg { name: word.to_lowercase(), kind: "pure-token", token: word, ..Arg::default() }, rest),
    }
}

/// An argument whose name and type are `word`, or whose group follows.
fn value<'a>(word: &'a str, rest: &mut &'a str) -> Arg<'a> {
    if let Some(group) = rest.strip_prefix('=') {
        let kind = if group.starts_with('(') { "oneof" } else { "block" };
        *rest = &group[1..];
        let arguments = sequence(rest);
        *rest = rest.get(1..).unwrap_or_default();
        return repeated(Arg { name: word.to_owned(), kind, arguments, ..Arg::default() }, rest);
    }
    let (name, kind) = match word.rsplit_once(':') {
        Some((name, "k")) => (name, "key"),
        Some((name, "i")) => (name, "integer"),
        Some((name, "d")) => (name, "double"),
        Some((name, "p")) => (name, "pattern"),
        Some((name, "t")) => (name, "unix-time"),
        _ => (word, "string"),
    };
    repeated(Arg { name: name.to_owned(), kind, ..Arg::default() }, rest)
}

fn repeated<'a>(argument: Arg<'a>, rest: &mut &'a str) -> Arg<'a> {
    let Some(behind) = rest.strip_prefix("...") else { return argument };
    let multiple_token = behind.starts_with('+');
    *rest = behind.strip_prefix('+').unwrap_or(behind);
    Arg { multiple: true, multiple_token, ..argument }
}

fn take_word<'a>(rest: &mut &'a str) -> &'a str {
    // The one word that has a meaning in the notation too.
    let from = usize::from(rest.starts_with("=|"));
    let end = rest[from..].find([' ', '|', '(', ')', '<', '>', '[', ']', '=']).map_or(rest.len(), |end| from + end);
    let end = rest.find("...").map_or(end, |dots| dots.min(end));
    let (word, behind) = rest.split_at(end);
    *rest = behind;
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::REGISTRY;

    /// The notation again, from what was understood.
    fn shown(argument: &Arg<'_>) -> String {
        let types = [("key", ":k"), ("integer", ":i"), ("double", ":d"), ("pattern", ":p"), ("unix-time", ":t")];
        let suffix = types.iter().find(|(kind, _)| *kind == argument.kind).map_or("", |(_, suffix)| suffix);
        let inner: Vec<String> = argument.arguments.iter().map(shown).collect();
        let mut text = match argument.kind {
            "pure-token" => String::new(),
            "oneof" => format!("{}=({})", argument.name, inner.join("|")),
            "block" => format!("{}=<{}>", argument.name, inner.join(" ")),
            _ => format!("{}{suffix}", argument.name),
        };
        if !argument.token.is_empty() {
            text = format!("{} {text}", argument.token).trim_end().to_owned();
        }
        if argument.multiple {
            text.push_str(if argument.multiple_token { "...+" } else { "..." });
        }
        if argument.optional { format!("[{text}]") } else { text }
    }

    #[test]
    fn every_syntax_is_understood() {
        for doc in table::DOCS {
            let again: Vec<String> = parse(doc.syntax).iter().map(shown).collect();
            // Dots inside and outside of brackets mean the same.
            let plain = |text: &str| text.replace("]...", "...]");
            assert_eq!(plain(&again.join(" ")), plain(doc.syntax), "{}", doc.name);
        }
    }

    #[test]
    fn every_command_is_documented() {
        for row in REGISTRY.rows() {
            let name = row.name();
            let known = row.command.name == "help" || table::DOCS.iter().any(|doc| doc.name == name);
            assert!(known, "{name} has no row in docs_table.rs");
        }
        assert!(table::DOCS.is_sorted_by_key(|doc| doc.name));
    }
}
