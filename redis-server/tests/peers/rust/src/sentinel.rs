//! A client behind a Sentinel, while primaries change, until there is a key `done`.

use std::thread;
use std::time::{Duration, Instant};

use redis::Commands;
use redis::sentinel::{SentinelClient, SentinelServerType};

/// Follows for two minutes at most. Returns the numbers of its turns and failures.
pub fn follow(port: &str) -> String {
    let end = Instant::now() + Duration::from_secs(120);
    let url = format!("redis://127.0.0.1:{port}");
    let mut sentinel = SentinelClient::build(vec![url], "first".to_owned(), None, SentinelServerType::Master).unwrap();
    let (mut turn, mut kept, mut failed) = (0_u64, 0, 0);
    loop {
        let mut life = || -> redis::RedisResult<()> {
            let mut r = sentinel.get_connection()?;
            r.set_read_timeout(Some(Duration::from_secs(2)))?;
            while !r.exists("done")? {
                assert!(Instant::now() < end, "there is no key done");
                let value = r.get::<_, Option<u64>>("rust")?.unwrap_or(0);
                assert!((kept..=turn).contains(&value), "a replica had {kept} of {turn}, and there is {value}");
                turn += 1;
                let mut pipeline = redis::pipe();
                let (replicas,): (u64,) =
                    pipeline.set("rust", turn).ignore().cmd("WAIT").arg(1).arg(1000).query(&mut r)?;
                if replicas >= 1 {
                    kept = turn;
                }
            }
            Ok(())
        };
        match life() {
            Ok(()) => return format!("{turn} turns, {failed} failed"),
            Err(error) => {
                assert!(Instant::now() < end, "{error}");
                failed += 1;
                thread::sleep(Duration::from_millis(50));
            }
        }
    }
}
