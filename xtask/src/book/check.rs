//! The links of the book, looked up in the pages that mdBook has written.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::source::{Source, Target};
use crate::links::{Link, links};

/// Checks the links of all chapters; those that lead outside, by address, with the first place of each.
///
/// # Errors
/// With file and line of each link whose page, file, picture or anchor is not in the book.
pub(super) fn links_of(source: &Source, book: &Path) -> Result<BTreeMap<String, String>> {
    let (mut broken, mut outside) = (Vec::new(), BTreeMap::new());
    for (chapter, text) in &source.chapters {
        for link in links(text) {
            let place = format!("{chapter}:{}", link.line);
            if link.is_outside() {
                outside.entry(link.target.to_owned()).or_insert(place);
            } else if let Err(error) = check(source, book, chapter, &link) {
                broken.push(format!("{place}: link to `{}`: {error:#}", link.target));
            }
        }
        broken.extend(check_page(book, chapter)?);
    }
    if !broken.is_empty() {
        bail!("{}", broken.join("\n"));
    }
    Ok(outside)
}

/// Checks a link by its text, which has a line.
fn check(source: &Source, book: &Path, chapter: &str, link: &Link<'_>) -> Result<()> {
    let (path, anchor) = link.resolve(chapter);
    let page = match source.target(&path) {
        Target::Chapter => book.join(html(&path)),
        Target::File => book.join(&path),
        Target::Folder => book.join(&path).join("index.html"),
        Target::Nothing => bail!("{path} is neither a chapter nor a file"),
    };
    if !page.is_file() {
        bail!("{path} is not in the book");
    }
    if !anchor.is_empty() && !fs::read_to_string(&page)?.contains(&format!("id=\"{anchor}\"")) {
        bail!("{path} has no heading `{anchor}`");
    }
    Ok(())
}

/// Checks the links that mdBook has made of a chapter and put around it. Nothing may be loaded from outside: the book is read offline.
fn check_page(book: &Path, chapter: &str) -> Result<Vec<String>> {
    let name = html(chapter);
    let text = fs::read_to_string(book.join(&name)).with_context(|| format!("{chapter} has no page"))?;
    let mut broken = Vec::new();
    for (attribute, is_loaded) in [(" href=\"", false), (" src=\"", true)] {
        for target in text.split(attribute).skip(1).filter_map(|rest| rest.split('"').next()) {
            let link = Link { line: 0, target: target.split('?').next().unwrap_or_default() };
            let is_outside = link.is_outside() || target.starts_with("data:");
            let is_missing = !is_outside && !book.join(link.resolve(&name).0).is_file();
            if is_missing || is_loaded && target.contains("://") {
                broken.push(format!("{chapter}: its page {name} has a link to `{target}`"));
            }
        }
    }
    Ok(broken)
}

/// The page of a chapter.
fn html(chapter: &str) -> String {
    format!("{}.html", chapter.trim_end_matches(".md"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_broken_link_is_found() {
        let book = xtask::workspace::target_dir().join("tmp/book-check");
        fs::create_dir_all(book.join("docs")).unwrap();
        fs::write(book.join("docs/b.html"), "<h2 id=\"top\">Top</h2>").unwrap();
        fs::write(book.join("list.txt"), "").unwrap();
        let check = |text: &str, page: &str, expected: Option<&str>| {
            let source = Source::of(&[("docs/a.md", text), ("docs/b.md", "")], &["list.txt", "x.png"]);
            fs::write(book.join("docs/a.html"), page).unwrap();
            let error = links_of(&source, &book).err().map(|error| error.to_string());
            assert_eq!(error.as_deref(), expected, "{text}{page}");
        };
        check("[b](b.md#top) [l](../list.txt) [o](https://example.com)", "<a href=\"b.html#top\">", None);
        check("\n[b](b.md#end)", "", Some("docs/a.md:2: link to `b.md#end`: docs/b.md has no heading `end`"));
        check("[c](c.md)", "", Some("docs/a.md:1: link to `c.md`: docs/c.md is neither a chapter nor a file"));
        check("![x](../x.png)", "", Some("docs/a.md:1: link to `../x.png`: x.png is not in the book"));
        check("", "<a href=\"c.html\">", Some("docs/a.md: its page docs/a.html has a link to `c.html`"));
        let outside = "https://example.com/a.js";
        let loads = format!("docs/a.md: its page docs/a.html has a link to `{outside}`");
        check("", &format!("<script src=\"{outside}\">"), Some(&loads));
        fs::remove_dir_all(book).unwrap();
    }
}
