//! Links of Markdown texts: `cargo xtask tidy` looks for their targets among the files, `cargo xtask book` in the book.

use std::path::{Component, Path, PathBuf};

/// A link or an image.
#[derive(Debug, PartialEq)]
pub(crate) struct Link<'a> {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The text between the parentheses.
    pub(crate) target: &'a str,
}

impl<'a> Link<'a> {
    /// Returns true if the target is not a file of this repository.
    pub(crate) fn is_outside(&self) -> bool {
        self.target.contains("://") || self.target.starts_with("mailto:")
    }

    /// The path from the root of the workspace, for a link in the file `from`; and the anchor, or nothing.
    pub(crate) fn resolve(&self, from: &str) -> (String, &'a str) {
        let (path, anchor) = self.target.split_once('#').unwrap_or((self.target, ""));
        if path.is_empty() {
            return (from.to_owned(), anchor);
        }
        let folder = Path::new(from).parent().unwrap_or_else(|| Path::new(""));
        (normalised(&folder.join(path)), anchor)
    }
}

/// The links of a text, without those in blocks of code.
pub(crate) fn links(text: &str) -> Vec<Link<'_>> {
    let (mut links, mut is_code) = (Vec::new(), false);
    for (number, line) in text.lines().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code {
            continue;
        }
        let targets = line.split("](").skip(1).filter_map(|part| part.split_once(')'));
        links.extend(targets.map(|(target, _)| Link { line: number + 1, target }));
    }
    links
}

/// A relative path without `.` and `..`.
fn normalised(path: &Path) -> String {
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                result.pop();
            }
            Component::Normal(name) => result.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    result.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_lines() {
        let text = "[a](b.md) ![c](d.png)\n```sh\n[e](f)\n```\n\n[g\nh](https://i#j)\n";
        let found: Vec<_> = links(text).into_iter().map(|link| (link.line, link.target)).collect();
        assert_eq!(found, [(1, "b.md"), (1, "d.png"), (7, "https://i#j")]);
        assert!(links(text)[2].is_outside());
    }

    #[test]
    fn targets_begin_at_the_root() {
        let check = |target: &str, path: &str, anchor: &str| {
            assert_eq!(Link { line: 1, target }.resolve("docs/redis/a.md"), (path.to_owned(), anchor), "{target}");
        };
        check("b.md", "docs/redis/b.md", "");
        check("../README.md#top", "docs/README.md", "top");
        check("../../deploy", "deploy", "");
        check("#top", "docs/redis/a.md", "top");
    }
}
