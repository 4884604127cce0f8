use super::*;
use crate::config::Launch;
use crate::persistence::rdb::testing::{damage, sample};
use crate::persistence::rdb::{self, WriteOptions, Writer};
use crate::runtime::embedded::Session;
use crate::types::testing::Rng;

fn instance(workers: usize) -> Arc<Instance> {
    let flags = ["--workers", &workers.to_string(), "--enable-debug-command", "yes"];
    let (config, _) = Config::load(&Launch::from_flags(&flags).unwrap(), std::iter::empty()).unwrap();
    Arc::new(Instance::new(Arc::new(config), &crate::commands::TABLE))
}

/// The result of a file: its digest, or its fault. `threads`: in the order of the file, or on so many threads.
fn loaded(path: &Path, threads: Option<usize>) -> String {
    let instance = instance(threads.unwrap_or(1));
    let worker = Worker::new(Arc::clone(&instance));
    let result = match threads {
        Some(_) => load_alone(&worker, &RealDisk, path, true).map(drop),
        None => {
            let mut views: Vec<_> =
                instance.databases().iter().map(|db| db.lock_all(Access::Write, now_ms())).collect();
            let (mut client, mut reply) = (worker.unconnected_client(), Reply::default());
            let mut cx = Ctx::new(&worker, instance.database(0).lock_none(now_ms()), &mut reply, &mut client);
            load(&mut cx, views.iter_mut().collect(), path, Merge::Refuse).map(drop)
        }
    };
    match result {
        Ok(()) => {
            let mut session = Session::new(std::rc::Rc::new(worker));
            session.receive(b"*2\r\n$5\r\nDEBUG\r\n$6\r\nDIGEST\r\n*1\r\n$6\r\nDBSIZE\r\n");
            String::from_utf8(session.transmit().to_vec()).unwrap()
        }
        Err(error) => error.to_string(),
    }
}

/// The same, however it is loaded.
fn check(name: &str, bytes: &[u8]) -> String {
    let path = std::env::temp_dir().join(format!("redis-server-load-{name}-{}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let expected = loaded(&path, None);
    for threads in [1, 4] {
        assert_eq!(loaded(&path, Some(threads)), expected, "{name} on {threads} threads");
    }
    std::fs::remove_file(path).unwrap();
    expected
}

const OPTIONS: WriteOptions =
    WriteOptions { compress: true, checksum: true, fork: rdb::Fork::Redis, fields_expire: false };

#[test]
fn a_file_is_the_same_on_any_number_of_threads() {
    let whole = sample(OPTIONS);
    assert!(check("whole", &whole).starts_with('+'));
    let mut rng = Rng::new(31);
    let (mut sound, mut faults) = (0, std::collections::HashSet::new());
    for at in 0..250 {
        // The checksum would tell of each.
        let mut damaged = if at % 3 == 0 { whole[..rng.below(whole.len())].to_vec() } else { damage(&whole, &mut rng) };
        if at % 3 == 2 {
            let len = damaged.len();
            damaged[len.saturating_sub(8)..].fill(0);
        }
        let said = check("damaged", &damaged);
        if said.starts_with('+') {
            sound += 1;
        } else {
            faults.insert(said);
        }
    }
    assert!(sound > 5 && faults.len() > 30, "{sound} sound, {} kinds of faults", faults.len());
}

/// Many records, of which these are keys that were there; in two databases.
fn with_repetitions(repeated: &[usize], damaged: Option<usize>) -> Vec<u8> {
    const KEYS: usize = 30_000;
    let mut writer = Writer::new(Vec::new(), WriteOptions { checksum: false, ..WriteOptions::default() });
    let value = |text: &'static [u8]| {
        crate::keyspace::ValueRef::Str(crate::keyspace::StrRef::Bytes { bytes: text, raw: false })
    };
    for database in 0..2 {
        writer.database(database, KEYS, 0);
        for key in 0..KEYS {
            let number = if database == 1 && repeated.contains(&key) { key / 2 } else { key };
            writer.record(format!("key:{number:09}").as_bytes(), value(b"some value"), None, rdb::Access::Untold);
        }
    }
    let mut file = writer.finish().unwrap();
    if let Some(at) = damaged {
        // No type.
        let key = format!("key:{at:09}").into_bytes();
        let record = file.windows(key.len()).rposition(|window| window == key).unwrap();
        file[record - 2] = 99;
    }
    file
}

#[test]
fn of_several_repetitions_the_first_is_told() {
    let said = check("repetitions", &with_repetitions(&[29_000, 7_000, 7_001, 15_000], None));
    assert!(said.ends_with("the key key:000003500 is there twice"), "{said}");
    assert!(check("no-repetition", &with_repetitions(&[], None)).ends_with(":30000\r\n"));
    let behind = check("repetition-behind-a-fault", &with_repetitions(&[29_000, 20_000], Some(5_000)));
    assert!(behind.ends_with("99 announces no value"), "{behind}");
    let in_front = check("repetition-in-front-of-a-fault", &with_repetitions(&[5_000], Some(5_100)));
    assert!(in_front.ends_with("is there twice"), "{in_front}");
}
