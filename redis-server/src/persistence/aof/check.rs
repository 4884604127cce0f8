//! Whether files are sound, and what can be kept of them: `redis-server --check` and `--fix`.

use std::fmt;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::log::read_whole;
use super::manifest::Manifest;
use super::reader::{ReadFault, Reader};
use crate::persistence::disk::{Disk, Open, folder_of};
use crate::persistence::rdb;

/// The contents of a file, or of all files that a manifest names.
#[derive(Debug, Default)]
pub struct Contents {
    /// Files.
    pub files: usize,
    /// Commands, those of transactions included.
    pub commands: u64,
    /// Keys in front of the commands, where the first file begins with a snapshot.
    pub keys: Option<u64>,
}

/// Where the damage is, and what stands in front of it.
#[derive(Debug)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// The cause, with its place in the file.
    pub cause: String,
    /// The length of the intact part; a repair cuts off the rest of the file. None: nothing can be kept, or files follow.
    pub keeps: Option<u64>,
    /// Bytes of the file.
    pub len: u64,
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, commands, keys } = self;
        write!(f, "files {files}, commands {commands}")?;
        keys.map_or(Ok(()), |keys| write!(f, ", behind a snapshot of keys {keys}"))
    }
}

/// Reads a file, or all that a manifest names. Second is the first damage, if there is any.
///
/// # Errors
/// If the files cannot be read at all.
pub fn check(disk: &dyn Disk, path: &Path) -> Result<(Contents, Option<Damage>), String> {
    let mut contents = Contents::default();
    if path.extension().is_none_or(|extension| extension != "manifest") {
        let damage = check_file(disk, path, &mut contents).map_err(|error| format!("{}: {error}", path.display()))?;
        return Ok((contents, damage));
    }
    let text = read_whole(disk, path).map_err(|error| format!("{}: {error}", path.display()))?;
    let manifest = Manifest::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let paths: Vec<_> = manifest.parts().map(|part| folder_of(path).join(&part.name)).collect();
    for (number, path) in paths.iter().enumerate() {
        let damage = check_file(disk, path, &mut contents).map_err(|error| format!("{}: {error}", path.display()))?;
        if let Some(mut damage) = damage {
            if paths[number + 1..].iter().any(|path| disk.len(path).is_ok_and(|len| len > 0)) {
                damage.keeps = None;
                damage.cause.push_str("; files follow that would have nothing to build on");
            }
            return Ok((contents, Some(damage)));
        }
    }
    Ok((contents, None))
}

/// Cuts the damage off.
///
/// # Errors
/// The disk's.
pub fn fix(disk: &dyn Disk, damage: &Damage) -> io::Result<()> {
    let Some(keeps) = damage.keeps else { return Ok(()) };
    let file = disk.open(&damage.path, Open::Append)?;
    file.truncate(keeps)?;
    file.sync()
}

fn check_file(disk: &dyn Disk, path: &Path, contents: &mut Contents) -> io::Result<Option<Damage>> {
    let len = disk.len(path)?;
    let mut source = disk.read(path)?;
    let mut head = Vec::new();
    source.by_ref().take(6).read_to_end(&mut head)?;
    contents.files += 1;
    if len == 0 && path.extension().is_some_and(|extension| extension == "rdb") {
        return Ok(Some(Damage { path: path.to_owned(), cause: "it is empty".to_owned(), keeps: None, len }));
    }
    let mut begin = 0;
    if head.starts_with(b"REDIS") || head == b"VALKEY" {
        let (snapshot, error) = rdb::check(disk, path);
        if let Some(error) = error {
            let cause = error.to_string();
            return Ok(Some(Damage { path: path.to_owned(), cause, keeps: None, len }));
        }
        contents.keys = Some(snapshot.keys);
        begin = snapshot.end;
    }
    let mut source = disk.read(path)?;
    io::copy(&mut source.by_ref().take(begin), &mut io::sink())?;
    let (whole, fault) = commands(&mut Reader::new(source, begin), contents);
    Ok(match fault {
        None => None,
        Some(ReadFault::Io(error)) => return Err(error),
        Some(fault) => Some(Damage { path: path.to_owned(), cause: fault.to_string(), keeps: Some(whole), len }),
    })
}

/// Reads commands to their end. Where the last whole unit ends, and what is wrong behind it.
fn commands<R: io::Read>(reader: &mut Reader<R>, contents: &mut Contents) -> (u64, Option<ReadFault>) {
    let mut multi = None;
    loop {
        let batch = match reader.next_batch() {
            Ok(Some(batch)) => batch,
            Ok(None) => {
                let fault = multi.map(|begin| ReadFault::Format(begin, "a transaction without its EXEC".to_owned()));
                return (multi.unwrap_or_else(|| reader.offset()), fault);
            }
            Err(fault) => return (multi.unwrap_or_else(|| reader.offset()), Some(fault)),
        };
        let (mut first, mut begin) = (0, batch.begin);
        for &(last, end) in batch.ends {
            let name = batch.spans[first];
            let name = &batch.bytes[name.start as usize..(name.start + name.len) as usize];
            let offset = batch.offset + begin as u64;
            if name.eq_ignore_ascii_case(b"multi") {
                if multi.is_some() {
                    let fault = ReadFault::Format(offset, "a transaction within another one".to_owned());
                    return (multi.unwrap_or(offset), Some(fault));
                }
                multi = Some(offset);
            } else if name.eq_ignore_ascii_case(b"exec") && multi.take().is_none() {
                return (offset, Some(ReadFault::Format(offset, "an EXEC without its MULTI".to_owned())));
            }
            contents.commands += 1;
            (first, begin) = (last, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_keeps_whole_units_before_a_fault() {
        const SET: &str = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n";
        const MULTI: &str = "*1\r\n$5\r\nMULTI\r\n";
        const EXEC: &str = "*1\r\n$4\r\nEXEC\r\n";
        let check = |pieces: &[&str], keeps: u64, cause: &str| {
            let text = pieces.concat();
            let (whole, fault) = commands(&mut Reader::new(text.as_bytes(), 0), &mut Contents::default());
            let fault = fault.map(|fault| fault.to_string()).unwrap_or_default();
            assert_eq!(whole, keeps, "{text}: {fault}");
            assert!(fault.contains(cause) && fault.is_empty() == cause.is_empty(), "{fault}");
        };
        let set = SET.len() as u64;
        check(&[SET, MULTI, SET, EXEC, "#TS:1\r\n"], set * 2 + 15 + 14 + 7, "");
        check(&[SET, MULTI, SET], set, "offset 27: a transaction without its EXEC");
        check(&[SET, MULTI, SET, "*1\r\n$4\r\nEX"], set, "the file ends in this command");
        check(&[SET, "*2\r\n"], set, "offset 27: the file ends");
        check(&[SET, EXEC], set, "offset 27: an EXEC without its MULTI");
        check(&[SET, MULTI, MULTI], set, "offset 42: a transaction within another one");
        check(&[SET, "junk"], set, "offset 27: expected '*', got 'j'");
    }
}
