//! Markdown to commands.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A fenced block of commands.
#[derive(Debug)]
pub(super) struct Block {
    /// Its file, from the root of the workspace.
    pub(super) readme: String,
    /// The line of the opening fence, from 1.
    pub(super) line: usize,
    pub(super) statements: Vec<Statement>,
}

/// The unit that a shell reads: a line, or several where one alone is not whole, such as a loop.
#[derive(Debug, PartialEq)]
pub(super) struct Statement {
    pub(super) line: usize,
    /// Without the comment behind it, if it is one line.
    pub(super) text: String,
    /// The output that the block shows; `None` where it shows nothing.
    pub(super) output: Option<String>,
}

impl Block {
    /// FILE:LINE.
    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.readme, self.line)
    }
}

/// All blocks of language `sh` or `console` in a Markdown text.
///
/// # Errors
/// When a block has a command that is not whole at its end.
pub(super) fn blocks(readme: &str, text: &str) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let inner: Vec<(usize, &str)> =
            lines.by_ref().take_while(|(_, line)| *line != "```").map(|(number, line)| (number + 1, line)).collect();
        let statements = match language {
            "sh" => typed(&inner),
            "console" => shown(&inner),
            _ => continue,
        };
        let statements = statements.with_context(|| format!("{readme}:{}", number + 1))?;
        blocks.push(Block { readme: readme.to_owned(), line: number + 1, statements });
    }
    Ok(blocks)
}

/// Every line is a command, or a part of one.
fn typed(lines: &[(usize, &str)]) -> Result<Vec<Statement>> {
    let mut statements = Vec::new();
    let mut unread = lines.iter();
    while let Some((line, first)) = unread.next() {
        if first.trim().is_empty() || first.starts_with('#') {
            continue;
        }
        let mut text = without_comment(first).to_owned();
        while !is_whole(&text)? {
            let Some((_, more)) = unread.next() else { bail!("line {line}: `{first}` is not a whole command") };
            text = format!("{text}\n{more}");
        }
        statements.push(Statement { line: *line, text, output: None });
    }
    Ok(statements)
}

/// A command stands behind `$ `, what it prints below it.
fn shown(lines: &[(usize, &str)]) -> Result<Vec<Statement>> {
    let mut statements: Vec<Statement> = Vec::new();
    for (line, text) in lines {
        if let Some(command) = text.strip_prefix("$ ") {
            statements.push(Statement { line: *line, text: without_comment(command).to_owned(), output: None });
            continue;
        }
        let Some(last) = statements.last_mut() else { bail!("line {line}: output of no command") };
        let output = last.output.get_or_insert_default();
        output.push_str(text);
        output.push('\n');
    }
    Ok(statements)
}

/// A comment stands behind three spaces at least, or two words that no command contains.
fn without_comment(line: &str) -> &str {
    let end = line.find("   # ").or_else(|| line.find("  # ")).unwrap_or(line.len());
    line[..end].trim_end()
}

/// Whether a shell would run it, and not wait for more.
fn is_whole(text: &str) -> Result<bool> {
    if text.ends_with('\\') {
        return Ok(false);
    }
    let mut shell = Command::new("bash");
    shell.arg("-n").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut shell = shell.spawn().context("cannot start bash")?;
    let mut input = shell.stdin.take().expect("it was asked for");
    // A shell that has seen enough may have ended.
    let _ = input.write_all(text.as_bytes());
    drop(input);
    Ok(shell.wait()?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(line: usize, text: &str, output: Option<&str>) -> Statement {
        Statement { line, text: text.to_owned(), output: output.map(str::to_owned) }
    }

    #[test]
    fn commands_of_blocks() {
        let text = "A\n```sh\nls   # all 'of' it\n\n# nothing\nfor n in 1 2; do\n  echo $n\ndone\na \\\n  b\n```\n```toml\nx = 1\n```\n\
                    ```console\n$ one 'a # b'\n1\n\n2\n$ two    # none\n```\n";
        let blocks = blocks("README.md", text).unwrap();
        let places: Vec<String> = blocks.iter().map(Block::place).collect();
        assert_eq!(places, ["README.md:2", "README.md:15"]);
        assert_eq!(
            blocks[0].statements,
            [
                statement(3, "ls", None),
                statement(6, "for n in 1 2; do\n  echo $n\ndone", None),
                statement(9, "a \\\n  b", None)
            ]
        );
        assert_eq!(blocks[1].statements, [statement(16, "one 'a # b'", Some("1\n\n2\n")), statement(20, "two", None)]);
    }

    #[test]
    fn incomplete_command_blocks_are_an_error() {
        for text in ["```sh\nfor n in 1 2; do\n```\n", "```console\nno command\n```\n"] {
            let error = format!("{:#}", blocks("README.md", text).unwrap_err());
            assert!(error.starts_with("README.md:1: line 2: "), "{error}");
        }
    }
}
