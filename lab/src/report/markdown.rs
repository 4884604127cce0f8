//! Parts of a report in Markdown.

use loadgen::compare::markdown::{inline, table};

use super::document::{Block, Part};

/// The text between the marks of a part.
pub(super) fn render(part: &Part) -> String {
    let root = "../".repeat(part.file.matches('/').count());
    let texts: Vec<String> =
        part.blocks.iter().map(|block| text(block, &root)).filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

/// A block of a document that reaches the workspace by `root`.
fn text(block: &Block, root: &str) -> String {
    match block {
        Block::Heading(level, words) => format!("{} {}\n", "#".repeat(usize::from(*level)), inline(words)),
        Block::Text(words) => format!("{}\n", inline(words)),
        Block::Points(points) => points.iter().map(point).collect(),
        Block::Links(links) => links
            .iter()
            .map(|link| format!("- [{}]({root}{}): {}\n", inline(&link.name), link.address, inline(&link.text)))
            .collect(),
        Block::Table(lines) => table(lines),
        Block::Code(code) => format!("```text\n{code}\n```\n"),
        Block::Chart(_) => String::new(),
        Block::Figure { name, .. } => {
            format!("![Ratios of {name} with their intervals]({root}benches/record/{name}.svg)\n")
        }
    }
}

fn point((strong, rest): &(String, String)) -> String {
    match (strong.as_str(), inline(rest)) {
        ("", rest) => format!("- {rest}\n"),
        (strong, rest) => format!("- **{}** {rest}\n", inline(strong)),
    }
}
