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
    /// Points, each a link to the finding's own document and what follows it.
    Links(Vec<Link>),
    /// An SVG element, which is a file of this name beside the records, too.
    Figure {
        name: String,
        svg: String,
    },
}

/// A linked name with a text.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) name: String,
    /// From the root of the workspace.
    pub(super) address: String,
    pub(super) text: String,
}

/// The report's first page.
pub(super) const REPORT: &str = "REPORT.md";

/// The text between two marks of a committed document.
pub(super) struct Part {
    /// The document, from the root of the workspace.
    pub(super) file: String,
    /// In its marks.
    pub(super) name: &'static str,
    /// Stands above the part on the page; the document has headings of its own.
    pub(super) heading: Option<String>,
    pub(super) blocks: Vec<Block>,
}

impl Part {
    /// A part of the first page.
    pub(super) fn of_report(name: &'static str, blocks: Vec<Block>) -> Self {
        Self { file: REPORT.to_owned(), name, heading: None, blocks }
    }
}

/// A whole report.
pub(super) struct Document {
    pub(super) title: String,
    /// In the order of the page.
    pub(super) parts: Vec<Part>,
    /// For the page only.
    pub(super) details: Vec<Block>,
}

/// A list of plain lines.
pub(super) fn points(lines: impl IntoIterator<Item = String>) -> Block {
    Block::Points(lines.into_iter().map(|line| (String::new(), line)).collect())
}
