//! The copy of the chapters that mdBook reads, and of the files that they link to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use xtask::process::run_quietly;

use crate::links::links;

const SUMMARY: &str = "docs/SUMMARY.md";

/// The chapters, and the files around them.
pub(super) struct Source {
    root: PathBuf,
    /// The summary, with paths from the root.
    summary: String,
    /// Chapters by path, with their text.
    pub(super) chapters: BTreeMap<String, String>,
    /// All files of the repository.
    files: BTreeSet<String>,
}

/// The place that a link in a chapter leads to.
pub(super) enum Target {
    Chapter,
    File,
    Folder,
    Nothing,
}

impl Source {
    /// # Errors
    /// When a file cannot be read, or a document of `docs/` is no chapter.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut list = Command::new("git");
        list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
        let names = run_quietly(&mut list)?;
        let files: BTreeSet<String> = names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let read = |path: &str| fs::read_to_string(root.join(path)).with_context(|| path.to_owned());
        let text = read(SUMMARY)?;
        let (mut summary, mut chapters) = (text.clone(), BTreeMap::new());
        for link in links(&text) {
            let (path, _) = link.resolve(SUMMARY);
            summary = summary.replace(&format!("]({})", link.target), &format!("](/{path})"));
            chapters.insert(path.clone(), read(&path).with_context(|| format!("{SUMMARY}:{}", link.line))?);
        }
        let summary = summary.replace("](/", "](");
        let is_document = |path: &&String| path.starts_with("docs/") && path.ends_with(".md") && *path != SUMMARY;
        if let Some(lost) = files.iter().filter(is_document).find(|path| !chapters.contains_key(*path)) {
            bail!("{SUMMARY}: {lost} is no chapter of the book");
        }
        Ok(Self { root: root.to_owned(), summary, chapters, files })
    }

    /// Chapters with their text, and other files.
    #[cfg(test)]
    pub(super) fn of(chapters: &[(&str, &str)], files: &[&str]) -> Self {
        let chapters = chapters.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let files = files.iter().map(|path| (*path).to_owned()).collect();
        Self { root: PathBuf::new(), summary: String::new(), chapters, files }
    }

    /// The kind of a path from the root of the repository.
    pub(super) fn target(&self, path: &str) -> Target {
        if self.chapters.contains_key(path) {
            Target::Chapter
        } else if self.files.contains(path) && !path.ends_with(".md") {
            Target::File
        } else if self.inside(path).next().is_some() {
            Target::Folder
        } else {
            Target::Nothing
        }
    }

    /// The files of a folder.
    fn inside(&self, folder: &str) -> impl Iterator<Item = &String> {
        let folder = format!("{folder}/");
        self.files.iter().filter(move |file| file.starts_with(&folder))
    }

    /// Writes the copy. A folder that a chapter links to gets a page with its files, which a browser without a server would list.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        let copy = folder.join("src");
        fs::create_dir_all(&copy)?;
        for file in ["book.toml", "book.css"] {
            fs::copy(self.root.join("docs").join(file), folder.join(file)).with_context(|| file.to_owned())?;
        }
        fs::write(copy.join("SUMMARY.md"), &self.summary)?;
        for (path, text) in &self.chapters {
            let mut chapter = text.clone();
            for link in links(text).iter().filter(|link| !link.is_outside()) {
                let (target, _) = link.resolve(path);
                match self.target(&target) {
                    Target::File => self.copy(&target, &copy)?,
                    Target::Folder => {
                        let page = format!("]({}/index.html)", link.target.trim_end_matches('/'));
                        chapter = chapter.replace(&format!("]({})", link.target), &page);
                        self.copy_folder(&target, &copy)?;
                    }
                    Target::Chapter | Target::Nothing => {}
                }
            }
            put(&copy.join(path), &chapter)?;
        }
        Ok(())
    }

    fn copy_folder(&self, folder: &str, copy: &Path) -> Result<()> {
        let mut page =
            format!("<!doctype html>\n<meta charset=\"utf-8\">\n<title>{folder}</title>\n<h1>{folder}</h1>\n");
        for file in self.inside(folder) {
            let name = &file[folder.len() + 1..];
            // A chapter is a page; mdBook would not copy the text of another document.
            let shown = if self.chapters.contains_key(file) { name.replace(".md", ".html") } else { name.to_owned() };
            if shown.ends_with(".md") {
                continue;
            }
            let _ = writeln!(page, "<p><a href=\"{shown}\">{name}</a></p>");
            if !self.chapters.contains_key(file) {
                self.copy(file, copy)?;
            }
        }
        put(&copy.join(folder).join("index.html"), &page)
    }

    fn copy(&self, file: &str, copy: &Path) -> Result<()> {
        let to = copy.join(file);
        fs::create_dir_all(to.parent().expect("it stands in the copy"))?;
        fs::copy(self.root.join(file), &to).with_context(|| file.to_owned())?;
        Ok(())
    }
}

fn put(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().expect("it stands in the copy"))?;
    fs::write(path, text).with_context(|| path.display().to_string())
}
