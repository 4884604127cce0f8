//! Rows of the documentation's tables.

use std::fmt::Write as _;

/// A row of a table.
pub(super) fn row(out: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|").replace('<', "&lt;")).collect();
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_ends_at_its_bar_only() {
        let mut out = String::new();
        row(&mut out, &["save|nosave", "<a>"]);
        assert_eq!(out, "| save\\|nosave | &lt;a> |\n");
    }
}
