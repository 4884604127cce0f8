//! Which files an append-only file consists of: `appendonly.aof.manifest`.

use std::fmt;

use crate::protocol::split_words;

/// Largest number of a file: the genuine server counts with 63 bits, and those of the files that follow must fit too.
pub const SEQ_MAX: u64 = i64::MAX as u64 / 2;

/// Longest line, its end included.
const LINE_MAX: usize = 1024;

/// One of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name in the folder.
    pub name: String,
    /// Its number among those of its kind: 1 to [`SEQ_MAX`].
    pub seq: u64,
}

/// The files of an append-only file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Everything up to some moment: the result of the last rewrite.
    pub base: Option<Part>,
    /// Files that are no longer needed, and that may be gone already; the latest stands in front.
    pub history: Vec<Part>,
    /// The files behind the base, in order.
    pub incrs: Vec<Part>,
}

/// A fault in a manifest, in the words of Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// Number and text of the line; none, where the file is empty.
    line: Option<(usize, String)>,
    what: &'static str,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((number, line)) = &self.line {
            write!(f, "Reading the manifest file, at line {number}\n>>> '{line}'\n")?;
        }
        f.write_str(self.what)
    }
}

impl std::error::Error for ManifestError {}

const INVALID: &str = "Invalid AOF manifest file format";

impl Manifest {
    /// The manifest that these bytes are.
    ///
    /// # Errors
    /// [`ManifestError`].
    pub fn parse(text: &[u8]) -> Result<Self, ManifestError> {
        if text.is_empty() {
            return Err(ManifestError { line: None, what: "Found an empty AOF manifest" });
        }
        let mut manifest = Self::default();
        for (number, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
            if line.starts_with(b"#") {
                continue;
            }
            manifest.add_line(line).map_err(|what| {
                let line = String::from_utf8_lossy(&line[..line.len().min(LINE_MAX)]).trim_end().to_owned();
                ManifestError { line: Some((number + 1, line)), what }
            })?;
        }
        Ok(manifest)
    }

    fn add_line(&mut self, line: &[u8]) -> Result<(), &'static str> {
        if line.len() > LINE_MAX || !line.ends_with(b"\n") {
            return Err("The AOF manifest file contains too long line");
        }
        let words = split_words(line.trim_ascii()).ok_or(INVALID)?;
        if words.len() < 6 || words.len() % 2 == 1 {
            return Err(INVALID);
        }
        let (mut name, mut seq, mut kind) = (None, None, None);
        // Other keys are those of later versions.
        for pair in words.chunks_exact(2) {
            match pair[0].to_ascii_lowercase().as_slice() {
                b"file" => name = Some(file_name(&pair[1])?),
                b"seq" => seq = std::str::from_utf8(&pair[1]).ok().and_then(|text| text.parse::<u64>().ok()),
                b"type" => kind = pair[1].first().copied(),
                _ => {}
            }
        }
        let (Some(name), Some(seq @ 1..=SEQ_MAX), Some(kind)) = (name, seq, kind) else { return Err(INVALID) };
        let part = Part { name, seq };
        match kind {
            b'b' if self.base.is_some() => return Err("Found duplicate base file information"),
            b'b' => self.base = Some(part),
            b'h' => self.history.push(part),
            b'i' if self.incrs.last().is_some_and(|last| seq <= last.seq) => {
                return Err("Found a non-monotonic sequence number");
            }
            b'i' => self.incrs.push(part),
            _ => return Err("Unknown AOF file type"),
        }
        Ok(())
    }

    /// The content of the file.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let kinds = [('b', self.base.as_slice()), ('h', &self.history), ('i', &self.incrs)];
        for (kind, parts) in kinds {
            for Part { name, seq } in parts {
                let plain = name.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'\\".contains(&byte));
                let name = if plain { name.clone() } else { quoted(name) };
                text.push_str(&format!("file {name} seq {seq} type {kind}\n"));
            }
        }
        text
    }

    /// The files that are read at the start, in order.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.base.iter().chain(&self.incrs)
    }

    /// Whether there is nothing to be read.
    pub fn is_empty(&self) -> bool {
        self.parts().next().is_none()
    }

    /// The number of the next base.
    pub fn next_base(&self) -> u64 {
        self.base.as_ref().map_or(0, |base| base.seq) + 1
    }

    /// The number of the next file behind it.
    pub fn next_incr(&self) -> u64 {
        let behind = |part: &&Part| part.name.contains(".incr.");
        let seqs = self.incrs.last().into_iter().chain(self.history.iter().filter(behind)).map(|incr| incr.seq);
        seqs.max().unwrap_or(0) + 1
    }

    /// Makes this the base, and files of what the last so many are the only ones behind it.
    pub fn rebase(&mut self, base: Part, kept: usize) {
        let kept = self.incrs.split_off(self.incrs.len() - kept);
        let past = self.incrs.drain(..).chain(self.base.replace(base));
        self.history.splice(..0, past);
        self.incrs = kept;
    }
}

fn file_name(bytes: &[u8]) -> Result<String, &'static str> {
    let name = String::from_utf8(bytes.to_vec()).map_err(|_| INVALID)?;
    if name.is_empty() {
        return Err(INVALID);
    }
    if name.contains('/') || name == "." || name == ".." {
        return Err("File can't be a path, just a filename");
    }
    Ok(name)
}

/// A name in quotes, as it is read back.
fn quoted(name: &str) -> String {
    let mut text = String::from("\"");
    for byte in name.bytes() {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            0x07 => text.push_str("\\a"),
            0x08 => text.push_str("\\b"),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, error: &str) {
        let error_of = Manifest::parse(text.as_bytes()).unwrap_err();
        assert!(error_of.to_string().ends_with(error), "{text}: {error_of}");
    }

    #[test]
    fn malformed_manifests_are_refused() {
        let incr = "file a.1.incr.aof seq 1 type i\n";
        check("", "Found an empty AOF manifest");
        check("\n", INVALID);
        check(&format!("{incr}\n{incr}"), INVALID);
        check("file a.1.incr.aof seq 1\n", INVALID);
        check("file a.1.incr.aof seq 1 type i newkey\n", INVALID);
        check("file a seq 0 type b\n", INVALID);
        check("file a seq x type b\n", INVALID);
        check("file a seq 18446744073709551615 type b\n", INVALID);
        check("file \"a seq 1 type b\n", INVALID);
        check("seq 1 type i other more\n", INVALID);
        check("file a.1.incr.aof seq 1 type i", "The AOF manifest file contains too long line");
        check(&format!("file {} seq 1 type b\n", "x".repeat(1024)), "The AOF manifest file contains too long line");
        check("file x/a seq 1 type b\n", "File can't be a path, just a filename");
        check("file .. seq 1 type b\n", "File can't be a path, just a filename");
        check("file a seq 1 type b\nfile b seq 2 type b\n", "Found duplicate base file information");
        check("file a seq 2 type i\nfile b seq 1 type i\n", "Found a non-monotonic sequence number");
        check("file a seq 1 type x\n", "Unknown AOF file type");
        let error = Manifest::parse(format!("{incr}junk\n").as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), format!("Reading the manifest file, at line 2\n>>> 'junk'\n{INVALID}"));
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let part = |name: &str, seq| Part { name: name.into(), seq };
        let manifest = Manifest {
            base: Some(part("a file.2.base.rdb", 2)),
            history: vec![part("a \"file\\.1.base.aof", 1), part("täglich.4.incr.aof", 4)],
            incrs: vec![part("a.5.incr.aof", 5), part("a.7.incr.aof", 7)],
        };
        assert_eq!(Manifest::parse(manifest.to_text().as_bytes()).unwrap(), manifest);
        assert_eq!((manifest.next_base(), manifest.next_incr()), (3, 8));
        let text = "# a comment\nFILE a.1.incr.aof startoffset 0 SEQ 1 endoffset 99 TYPE i\n";
        let read = Manifest::parse(text.as_bytes()).unwrap();
        assert_eq!(read.to_text(), "file a.1.incr.aof seq 1 type i\n");
    }

    #[test]
    fn a_new_base_makes_history_of_what_it_replaces() {
        let mut manifest = Manifest::parse(
            b"file b.1 seq 1 type b\nfile i.1 seq 1 type i\nfile i.2 seq 2 type i\nfile i.3 seq 3 type i\n",
        )
        .unwrap();
        manifest.rebase(Part { name: "b.2".into(), seq: 2 }, 1);
        let expected = "file b.2 seq 2 type b\nfile i.1 seq 1 type h\nfile i.2 seq 2 type h\nfile b.1 seq 1 type h\nfile i.3 seq 3 type i\n";
        assert_eq!(manifest.to_text(), expected);
    }
}
