//! Files that are damaged: cut at every byte, and with every bit turned over.

use std::sync::Arc;

use super::super::load::load;
use super::life::{ask, base, held, instance, path, unit};
use crate::exec::core::Worker;
use crate::persistence::disk::Disk;
use crate::persistence::disk::simulated::SimulatedDisk;

const MANIFEST: &str = "appendonly.aof.manifest";
const BASE: [&str; 2] = ["appendonly.aof.1.base.aof", "appendonly.aof.1.base.rdb"];
const INCR: &str = "appendonly.aof.1.incr.aof";

/// Units of the base, and of the file behind it.
const BEFORE: u64 = 12;
const BEHIND: u64 = 4;

/// The counter and the list.
type Found = (u64, Vec<String>);

/// Files of a server that has ended well.
#[derive(Clone)]
struct Files {
    base: Vec<u8>,
    is_rdb: bool,
    incr: Vec<u8>,
    manifest: Vec<u8>,
}

impl Files {
    fn new(is_rdb: bool) -> Self {
        let name = BASE[usize::from(is_rdb)];
        let manifest = format!("file {name} seq 1 type b\nfile {INCR} seq 1 type i\n").into_bytes();
        let incr = (BEFORE + 1..=BEFORE + BEHIND).flat_map(unit).collect();
        Self { base: base(BEFORE, is_rdb), is_rdb, incr, manifest }
    }

    /// The findings of a server that starts with these files, and the last file afterwards.
    fn load(&self, flags: &[&str]) -> (Result<Found, String>, Vec<u8>) {
        let disk = SimulatedDisk::new(1);
        disk.put(&path(MANIFEST), &self.manifest);
        disk.put(&path(BASE[usize::from(self.is_rdb)]), &self.base);
        disk.put(&path(INCR), &self.incr);
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let instance = instance(flags);
        let loaded = load(Worker::of_loader(Arc::clone(&instance)), &shared).map_err(|error| error.to_string());
        (loaded.map(|_| ask(&instance)), disk.bytes(&path(INCR)))
    }
}

/// The same bytes with each bit turned over in its turn.
fn turned(bytes: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> {
    (0..bytes.len() * 8).map(|bit| {
        let mut turned = bytes.to_vec();
        turned[bit / 8] ^= 1 << (bit % 8);
        (bit, turned)
    })
}

fn all(last: u64) -> Found {
    (last, (1..=last).map(|number| number.to_string()).collect())
}

#[test]
fn undamaged_files() {
    for is_rdb in [false, true] {
        assert_eq!(Files::new(is_rdb).load(&[]).0.unwrap(), all(BEFORE + BEHIND));
    }
}

/// An incomplete last unit is cut off behind the last whole one, if the server may.
#[test]
fn a_last_file_that_ends_early() {
    let files = Files::new(true);
    let mut ends = vec![0];
    (BEFORE + 1..=BEFORE + BEHIND).for_each(|number| ends.push(ends.last().unwrap() + unit(number).len()));
    for len in 0..=files.incr.len() {
        let cut = Files { incr: files.incr[..len].to_vec(), ..files.clone() };
        let whole = ends.iter().filter(|&&end| end <= len).count() - 1;
        let (loaded, left) = cut.load(&[]);
        assert_eq!(loaded.unwrap(), all(BEFORE + whole as u64), "{len}");
        assert_eq!(left, files.incr[..ends[whole]], "{len}");
        let (refused, left) = cut.load(&["--aof-load-truncated", "no"]);
        assert_eq!(refused.is_err(), ends[whole] != len, "{len}");
        assert_eq!(left, cut.incr, "{len}: nothing is cut off");
        if let Err(error) = refused {
            assert!(error.starts_with("Unexpected end of file reading the append only file"), "{error}");
        }
    }
}

/// A base that is a snapshot has a checksum: none is taken for whole that is not.
#[test]
fn a_damaged_snapshot_in_front() {
    let files = Files::new(true);
    let cut = (0..files.base.len()).map(|len| (len, files.base[..len].to_vec()));
    for (place, base) in cut.chain(turned(&files.base)) {
        let (loaded, left) = Files { base, ..files.clone() }.load(&[]);
        assert!(loaded.is_err(), "{place}: {loaded:?}");
        assert_eq!(left, files.incr, "{place}: what follows is not touched");
    }
}

/// A base of commands has no checksum: a cut between two of them goes unnoticed, as in the genuine server.
#[test]
fn damaged_commands_in_front() {
    let files = Files::new(false);
    let mut refused = 0;
    for len in 0..files.base.len() {
        let (loaded, left) = Files { base: files.base[..len].to_vec(), ..files.clone() }.load(&[]);
        let is_between = len == 0 || files.base[..len].ends_with(b"\r\n") && files.base[len] == b'*';
        assert_eq!(loaded.is_err(), !is_between, "{len}: {loaded:?}");
        assert_eq!(left, files.incr, "{len}: what follows is not touched");
        refused += usize::from(loaded.is_err());
    }
    assert!(refused > 400);
}

/// No flipped bit causes a panic. The commands before it are there, or the server does not start.
#[test]
fn bits_of_commands_that_are_turned_over() {
    let files = Files::new(true);
    let (mut refused, mut short) = (0, 0);
    for (bit, incr) in turned(&files.incr) {
        match (Files { incr, ..files.clone() }).load(&[]).0 {
            Err(error) => {
                refused += 1;
                assert!(error.contains(INCR) && error.contains("offset"), "{bit}: {error}");
            }
            Ok((_, list)) => {
                // Units begin where the one before ends: as many as stand in front of the bit.
                let before = BEFORE as usize + (bit / 8) / unit(BEFORE + 1).len();
                let expected = all(before as u64).1;
                let has_list = list.starts_with(&expected);
                assert!(has_list || list.is_empty(), "{bit}: {list:?}");
                short += usize::from(list.len() < (BEFORE + BEHIND) as usize);
            }
        }
    }
    println!("of {} bits {refused} were refused, {short} cost units", files.incr.len() * 8);
    assert!(refused > files.incr.len());
}

#[test]
fn a_damaged_manifest() {
    let files = Files::new(true);
    let first = files.manifest.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    for len in 0..files.manifest.len() {
        let (loaded, _) = Files { manifest: files.manifest[..len].to_vec(), ..files.clone() }.load(&[]);
        // The server does not notice a missing line; a manifest without lines is none.
        assert_eq!(loaded.is_err(), len != first, "{len}: {loaded:?}");
    }
    let mut refused = 0;
    for (bit, manifest) in turned(&files.manifest) {
        let (loaded, left) = Files { manifest, ..files.clone() }.load(&[]);
        refused += usize::from(loaded.is_err());
        assert_eq!(left, files.incr, "{bit}: nothing is touched");
    }
    // A number of a file may be another one.
    assert!(refused > files.manifest.len() * 7, "{refused}");
}

/// Both tell where a file is damaged, and neither finds fault with one that is not.
#[test]
fn a_file_that_is_refused_is_found_damaged() {
    use crate::persistence::aof::check;
    for is_rdb in [false, true] {
        let files = Files::new(is_rdb);
        let sources = [("base", &files.base), ("incr", &files.incr), ("manifest", &files.manifest)];
        for (which, bytes) in sources {
            for len in 0..=bytes.len() {
                let mut cut = files.clone();
                let part = bytes[..len].to_vec();
                match which {
                    "base" => cut.base = part,
                    "incr" => cut.incr = part,
                    _ => cut.manifest = part,
                }
                let disk = SimulatedDisk::new(1);
                disk.put(&path(MANIFEST), &cut.manifest);
                disk.put(&path(BASE[usize::from(is_rdb)]), &cut.base);
                disk.put(&path(INCR), &cut.incr);
                let found = check(&disk, &path(MANIFEST));
                let is_sound = matches!(found, Ok((_, None)));
                let (loaded, _) = cut.load(&["--aof-load-truncated", "no"]);
                assert_eq!(is_sound, loaded.is_ok(), "{which} cut at {len}: {found:?}, {loaded:?}");
            }
        }
    }
    assert_eq!(held(&instance(&[])), 0);
}
