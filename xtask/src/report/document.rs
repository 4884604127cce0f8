//! A report as blocks, the same for Markdown and for the page.

use loadgen::compare::Table;

/// A part of the report.
#[derive(Clone, Debug)]
pub(super) enum Block {
    /// A heading of a level from 2 on.
    Heading(u8, String),
    Text(String),
    /// Emphasised words, and what follows them.
    Points(Vec<(String, String)>),
    Table(Table),
    Code(String),
    /// An SVG element, which only a page shows.
    Chart(String),
    /// An SVG element, which is a file of this name beside the records, too.
    Figure {
        name: String,
        svg: String,
    },
}

/// A whole report.
pub(super) struct Document {
    pub(super) title: String,
    pub(super) blocks: Vec<Block>,
    /// The part for the page only.
    pub(super) details: Vec<Block>,
}

/// A list of plain lines.
pub(super) fn points(lines: impl IntoIterator<Item = String>) -> Block {
    Block::Points(lines.into_iter().map(|line| (String::new(), line)).collect())
}
