//! The files that a run writes. They are opened before it begins, so that no result is lost to a wrong path.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{csv, hdr_log, html, json};
use crate::objective::Verdict;
use crate::record::Outcome;

/// Which files are wanted.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    /// The result with its full histograms; `-` is the standard output.
    pub json: Option<PathBuf>,
    /// One line per second.
    pub csv: Option<PathBuf>,
    /// A page with plots.
    pub html: Option<PathBuf>,
    /// An HdrHistogram interval log.
    pub hdr: Option<PathBuf>,
}

/// Open files that wait for a result.
#[derive(Debug)]
pub struct Files {
    files: Vec<(Kind, PathBuf, File)>,
    json_to_stdout: bool,
    began: SystemTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Json,
    Csv,
    Html,
    Hdr,
}

impl Files {
    /// Opens all files; what they held stays until there is a result.
    ///
    /// # Errors
    /// Names the option and the file that cannot be written.
    pub fn open(outputs: &Outputs) -> Result<Self, String> {
        let wanted = [
            (Kind::Json, "--json", &outputs.json),
            (Kind::Csv, "--csv", &outputs.csv),
            (Kind::Html, "--html", &outputs.html),
            (Kind::Hdr, "--hdr", &outputs.hdr),
        ];
        let mut files = Vec::new();
        let mut json_to_stdout = false;
        for (kind, option, path) in wanted {
            let Some(path) = path else { continue };
            if kind == Kind::Json && path == Path::new("-") {
                json_to_stdout = true;
                continue;
            }
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
            let file = file.map_err(|error| {
                format!("{option} is `{}`, expected a file that can be written ({error})", path.display())
            })?;
            files.push((kind, path.clone(), file));
        }
        Ok(Self { files, json_to_stdout, began: SystemTime::now() })
    }

    /// Whether the standard output is taken by the JSON result.
    #[must_use]
    pub fn json_to_stdout(&self) -> bool {
        self.json_to_stdout
    }

    /// Writes a result everywhere, also where one file fails.
    ///
    /// # Errors
    /// Names the files that could not be written.
    pub fn write(&mut self, outcome: &Outcome, verdicts: &[Verdict]) -> Result<(), String> {
        let mut errors = Vec::new();
        if self.json_to_stdout
            && let Err(error) = io::stdout().write_all(json(outcome, verdicts).as_bytes())
        {
            errors.push(format!("standard output: {error}"));
        }
        for (kind, path, file) in &mut self.files {
            let content = match kind {
                Kind::Json => json(outcome, verdicts).into_bytes(),
                Kind::Csv => csv(outcome).into_bytes(),
                Kind::Html => html::run_page(outcome).into_bytes(),
                Kind::Hdr => hdr_log(outcome, self.began),
            };
            // A device such as /dev/stdout or a pipe cannot be cut.
            let cut = if file.metadata().is_ok_and(|data| data.is_file()) { file.set_len(0) } else { Ok(()) };
            if let Err(error) = cut.and_then(|()| file.write_all(&content)) {
                errors.push(format!("{}: {error}", path.display()));
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::made_up;

    #[test]
    fn files_are_checked_before_and_written_after() {
        let folder = std::env::temp_dir().join(format!("loadgen-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("timeline.csv");
        std::fs::write(&path, "old, and longer than what follows ".repeat(1000)).unwrap();
        let outputs = Outputs { csv: Some(path.clone()), json: Some(folder.join("result.json")), ..Outputs::default() };
        let outcome = made_up::outcome();
        Files::open(&outputs).unwrap().write(&outcome, &[]).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), csv(&outcome));
        assert!(folder.join("result.json").exists());

        let missing = folder.join("missing/result.json");
        let outputs = Outputs { json: Some(missing.clone()), ..Outputs::default() };
        let error = Files::open(&outputs).unwrap_err();
        let expected = format!("--json is `{}`, expected a file that can be written (", missing.display());
        assert!(error.starts_with(&expected), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
