//! The published comparisons measured again: `REPORT.md`, `docs/performance`, and a page with all figures below the target folder.
//!
//! The documents are written by hand, but for the parts between marks: every measured figure stands in one of these.
//!
//! `benches/scenarios/findings.toml` holds what was published and what is asked, the plans beside it, `F1.toml` and so on, say what is
//! run; `loadgen compare` runs it. All that is rendered comes from the records in `benches/record`.

mod answers;
mod details;
mod document;
mod estimate;
mod findings;
mod forest;
mod front;
mod markdown;
mod measured;
mod micro;
mod options;
mod page;
mod readme;
mod run;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use loadgen::output::html::standing_alone;

use crate::interrupt::Interrupt;
use document::{Block, Document};
use estimate::Span;
use findings::{Finding, Findings};
use measured::Measured;
pub(crate) use options::Options;

/// Measures, keeps the records and renders them.
///
/// # Errors
/// When something of ours cannot be built or written, or a finding has no results.
pub(crate) fn run(options: &Options) -> Result<()> {
    if let Some(raw) = &options.keep {
        run::keep_plan(raw)?;
    }
    if options.readme || options.keep.is_some() {
        return readme::write();
    }
    let (all, began) = (Findings::read()?, Instant::now());
    let mut result = Ok(());
    if options.micro {
        micro::keep()?;
    } else if !options.render {
        let interrupt = Interrupt::listen()?;
        result = run::findings(&chosen(&all, &options.only)?, options, &interrupt);
        if interrupt.came() {
            return result;
        }
    }
    // Findings with results are rendered, even if others failed.
    let rendering = Instant::now();
    render(&all)?;
    println!("rendered in {}, in all {}", Span(rendering.elapsed()), Span(began.elapsed()));
    result
}

fn chosen<'a>(all: &'a Findings, only: &[String]) -> Result<Vec<&'a Finding>> {
    if let Some(name) = only.iter().find(|name| !all.findings.iter().any(|finding| finding.id == **name)) {
        let ids: Vec<&str> = all.findings.iter().map(|finding| finding.id.as_str()).collect();
        bail!("there is no finding {name}, expected one of: {}", ids.join(", "));
    }
    Ok(all.findings.iter().filter(|finding| only.is_empty() || only.contains(&finding.id)).collect())
}

fn render(all: &Findings) -> Result<()> {
    let measured = all.findings.iter().map(Measured::read).collect::<Result<Vec<_>>>()?;
    let document = front::document(all, &measured, &micro::Causes::read()?);
    fs::create_dir_all(measured::folder())?;
    for (path, text) in files(&document)? {
        fs::write(path, text)?;
    }
    let page = xtask::workspace::target_dir().join("report/report.html");
    fs::create_dir_all(page.parent().unwrap_or_else(|| xtask::workspace::root()))?;
    fs::write(&page, page::render(&document))?;
    println!("written: REPORT.md, docs/performance, {}", page.display());
    Ok(())
}

/// The committed part of a report: REPORT.md and docs/performance with their parts, the figures that these show, and READMEs
/// with their tables.
fn files(document: &Document) -> Result<Vec<(PathBuf, String)>> {
    let figure = |block: &Block| match block {
        Block::Figure { name, svg } => Some((measured::folder().join(format!("{name}.svg")), standing_alone(svg))),
        Block::Heading(..)
        | Block::Text(_)
        | Block::Points(_)
        | Block::Links(_)
        | Block::Table(_)
        | Block::Code(_)
        | Block::Chart(_) => None,
    };
    let mut texts = readme::rendered()?;
    for part in &document.parts {
        readme::put(&mut texts, &part.file, part.name, &markdown::render(part))?;
    }
    Ok(document.parts.iter().flat_map(|part| &part.blocks).filter_map(figure).chain(texts).collect())
}
