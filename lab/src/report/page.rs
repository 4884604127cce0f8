//! A report as a page that needs nothing but itself.

use loadgen::compare::TEXTS;
use loadgen::output::html;
use loadgen::output::svg::escape;

use super::document::{Block, Document, Link, Part};

/// The whole page.
pub(super) fn render(document: &Document) -> String {
    let parts: String = document.parts.iter().map(part).collect();
    let details: String = document.details.iter().map(block).collect();
    html::page(&document.title, &(parts + &details))
}

fn part(part: &Part) -> String {
    let heading = part.heading.iter().map(|words| block(&Block::Heading(2, words.clone())));
    heading.chain(part.blocks.iter().map(block)).collect()
}

fn block(block: &Block) -> String {
    match block {
        Block::Heading(level, words) => {
            format!("<h{level} id=\"{}\">{}</h{level}>\n", anchor(words), escape(words))
        }
        Block::Text(words) => format!("<p>{}</p>\n", escape(words)),
        Block::Points(points) => {
            let points: String = points.iter().map(point).collect();
            format!("<ul>\n{points}</ul>\n")
        }
        Block::Links(links) => {
            let points: String = links.iter().map(link).collect();
            format!("<ul>\n{points}</ul>\n")
        }
        Block::Table(table) => html::table(&table.header, &table.rows, &TEXTS),
        Block::Code(code) => format!("<pre>{}</pre>\n", escape(code)),
        Block::Chart(svg) | Block::Figure { svg, .. } => format!("<div class=\"wide\">\n{svg}</div>\n"),
    }
}

/// A heading's name in links: its letters and digits.
fn anchor(words: &str) -> String {
    let words = words.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

fn link(link: &Link) -> String {
    point(&(format!("{}:", link.name), link.text.clone()))
}

fn point((strong, rest): &(String, String)) -> String {
    let rest = escape(rest);
    match strong.as_str() {
        "" => format!("<li>{rest}</li>\n"),
        strong => format!("<li><b>{}</b> {rest}</li>\n", escape(strong)),
    }
}
