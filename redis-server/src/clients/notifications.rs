//! Keyspace notifications (<https://redis.io/docs/latest/develop/use/keyspace-notifications/>): what happens to keys,
//! told to subscribers as `notify-keyspace-events` says.

use crate::clients::pubsub::{self, Kind, PubSub};
use crate::config::{Config, event_bit, settings};
use crate::keyspace::Happening;

/// `K`: by key.
const KEYSPACE: i64 = event_bit(b'K');
/// `E`: by event.
const KEYEVENT: i64 = event_bit(b'E');

/// Whether anything is told at all.
#[inline]
pub fn is_on(config: &Config) -> bool {
    config.int(settings::NOTIFY_KEYSPACE_EVENTS) & (KEYSPACE | KEYEVENT) != 0
}

/// Tells what has happened to a key of database `db`, if the configuration wants it told.
#[cold]
pub fn tell(config: &Config, pubsub: &PubSub, db: usize, key: &[u8], event: &str) {
    let wanted = config.int(settings::NOTIFY_KEYSPACE_EVENTS);
    if wanted & class(event) == 0 {
        return;
    }
    let publish = |channel: &[u8], text: &[u8]| {
        pubsub.publish(Kind::Channel, channel, text, |to, message| {
            pubsub::post(config, to, message.encoded(to.is_resp3()).clone());
        });
    };
    if wanted & KEYSPACE != 0 {
        publish(&[format!("__keyspace@{db}__:").as_bytes(), key].concat(), event.as_bytes());
    }
    if wanted & KEYEVENT != 0 {
        publish(format!("__keyevent@{db}__:{event}").as_bytes(), key);
    }
}

/// The event that tells of what a database does of its own accord, if one does.
pub fn event_of(happening: Happening) -> Option<&'static str> {
    match happening {
        Happening::Expired => Some("expired"),
        Happening::Evicted => Some("evicted"),
        Happening::Missed => Some("keymiss"),
        Happening::Added => Some("new"),
        Happening::Gone => None,
    }
}

/// The bit of the class that an event belongs to.
fn class(event: &str) -> i64 {
    event_bit(match event {
        "expired" => b'x',
        "evicted" => b'e',
        "keymiss" => b'm',
        "new" => b'n',
        "set" | "setrange" | "setbit" | "append" | "incrby" | "incrbyfloat" | "pfadd" => b'$',
        "sadd" | "srem" | "spop" | "sinterstore" | "sunionstore" | "sdiffstore" => b's',
        "rpush" | "rpop" | "sortstore" => b'l',
        "georadiusstore" | "geosearchstore" => b'z',
        // No general event begins with one of these letters.
        _ => match event.as_bytes() {
            [letter @ (b'l' | b'h' | b'z'), ..] => *letter,
            [b'x', ..] => b't',
            _ => b'g',
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_its_class() {
        let table = [
            ("$", "set append incrbyfloat setbit pfadd"),
            ("l", "lpush rpush lpop rpop linsert lset lrem ltrim sortstore"),
            ("s", "sadd srem spop sinterstore"),
            ("h", "hset hdel hincrby"),
            ("z", "zadd zincr zrem zrangestore zpopmin georadiusstore geosearchstore"),
            ("t", "xadd xdel xtrim xsetid xgroup-create xgroup-createconsumer"),
            ("g", "del expire persist rename_from move_to copy_to restore"),
            ("x", "expired"),
            ("m", "keymiss"),
            ("n", "new"),
        ];
        for (letter, events) in table {
            for event in events.split(' ') {
                assert_eq!(class(event), event_bit(letter.as_bytes()[0]), "{event}");
            }
        }
    }
}
