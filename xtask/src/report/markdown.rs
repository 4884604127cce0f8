//! A report in Markdown.

use loadgen::compare::markdown::{inline, table};

use super::document::{Block, Document};

/// The whole text.
pub(super) fn render(document: &Document) -> String {
    let mut text = format!("# {}\n", inline(&document.title));
    for block in &document.blocks {
        let part = match block {
            Block::Heading(level, words) => format!("{} {}\n", "#".repeat(usize::from(*level)), inline(words)),
            Block::Text(words) => format!("{}\n", inline(words)),
            Block::Points(points) => points.iter().map(point).collect(),
            Block::Table(lines) => table(lines),
            Block::Code(code) => format!("```text\n{code}\n```\n"),
            Block::Chart(_) => String::new(),
            Block::Figure { name, .. } => {
                format!("![Ratios of {name} with their intervals](benches/record/{name}.svg)\n")
            }
        };
        if !part.is_empty() {
            text.push('\n');
            text.push_str(&part);
        }
    }
    text
}

fn point((strong, rest): &(String, String)) -> String {
    match (strong.as_str(), inline(rest)) {
        ("", rest) => format!("- {rest}\n"),
        (strong, rest) => format!("- **{}** {rest}\n", inline(strong)),
    }
}
