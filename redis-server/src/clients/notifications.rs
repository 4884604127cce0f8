//! Keyspace notifications (<https://redis.io/docs/latest/develop/use/keyspace-notifications/>): events of keys, published as
//! `notify-keyspace-events` says.

use crate::clients::output_limit::post;
use crate::clients::pubsub::{Kind, PubSub};
use crate::config::{Config, event_bit, settings};
use crate::keyspace::Happening;

/// `K`: by key.
const KEYSPACE: i64 = event_bit(b'K');
/// `E`: by event.
const KEYEVENT: i64 = event_bit(b'E');

/// A keyspace event, with the class that `notify-keyspace-events` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    name: &'static str,
    /// The bit of its class.
    class: i64,
}

impl Event {
    /// The name that subscribers get.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

macro_rules! events {
    ($($class:literal { $($id:ident $name:literal,)* })*) => {
        impl Event {
            $($(
                #[doc = concat!("`", $name, "`")]
                pub const $id: Self = Self { name: $name, class: event_bit($class) };
            )*)*
        }
        #[cfg(test)]
        const ALL: &[Event] = &[$($(Event::$id,)*)*];
    };
}

events! {
    b'g' {
        COPY_TO "copy_to", DEL "del", EXPIRE "expire", MOVE_FROM "move_from", MOVE_TO "move_to", PERSIST "persist",
        RENAME_FROM "rename_from", RENAME_TO "rename_to", RESTORE "restore",
    }
    b'$' {
        APPEND "append", INCRBY "incrby", INCRBYFLOAT "incrbyfloat", PFADD "pfadd", SET "set", SETBIT "setbit",
        SETRANGE "setrange",
    }
    b'l' {
        LINSERT "linsert", LPOP "lpop", LPUSH "lpush", LREM "lrem", LSET "lset", LTRIM "ltrim", RPOP "rpop",
        RPUSH "rpush", SORTSTORE "sortstore",
    }
    b's' {
        SADD "sadd", SDIFFSTORE "sdiffstore", SINTERSTORE "sinterstore", SPOP "spop", SREM "srem",
        SUNIONSTORE "sunionstore",
    }
    b'h' {
        HDEL "hdel", HEXPIRE "hexpire", HEXPIRED "hexpired", HINCRBY "hincrby", HINCRBYFLOAT "hincrbyfloat",
        HPERSIST "hpersist", HSET "hset",
    }
    b'z' {
        GEORADIUSSTORE "georadiusstore", GEOSEARCHSTORE "geosearchstore", ZADD "zadd", ZDIFFSTORE "zdiffstore",
        ZINCR "zincr", ZINTERSTORE "zinterstore", ZPOPMAX "zpopmax", ZPOPMIN "zpopmin", ZRANGESTORE "zrangestore",
        ZREM "zrem", ZREMRANGEBYLEX "zremrangebylex", ZREMRANGEBYRANK "zremrangebyrank",
        ZREMRANGEBYSCORE "zremrangebyscore", ZUNIONSTORE "zunionstore",
    }
    b't' {
        XADD "xadd", XCFGSET "xcfgset", XDEL "xdel", XGROUP_CREATE "xgroup-create", XGROUP_CREATECONSUMER "xgroup-createconsumer",
        XGROUP_DELCONSUMER "xgroup-delconsumer", XGROUP_DESTROY "xgroup-destroy", XGROUP_SETID "xgroup-setid",
        XSETID "xsetid", XTRIM "xtrim",
    }
    b'd' {
        JSON_ARRAPPEND "json.arrappend", JSON_ARRINSERT "json.arrinsert", JSON_ARRPOP "json.arrpop",
        JSON_ARRTRIM "json.arrtrim", JSON_CLEAR "json.clear", JSON_DEL "json.del", JSON_MERGE "json.merge",
        JSON_MSET "json.mset", JSON_NUMINCRBY "json.numincrby", JSON_NUMMULTBY "json.nummultby", JSON_SET "json.set",
        JSON_STRAPPEND "json.strappend", JSON_TOGGLE "json.toggle",
    }
    b'x' { EXPIRED "expired", }
    b'e' { EVICTED "evicted", }
    b'm' { KEYMISS "keymiss", }
    b'n' { NEW "new", }
}

/// Whether anything is told at all.
#[inline]
pub fn is_on(config: &Config) -> bool {
    config.int(settings::NOTIFY_KEYSPACE_EVENTS) & (KEYSPACE | KEYEVENT) != 0
}

/// Tells what has happened to a key of database `db`, if the configuration wants it told.
#[cold]
pub fn tell(config: &Config, pubsub: &PubSub, db: usize, key: &[u8], event: Event) {
    let wanted = config.int(settings::NOTIFY_KEYSPACE_EVENTS);
    if wanted & event.class == 0 {
        return;
    }
    let publish = |channel: &[u8], text: &[u8]| {
        pubsub.publish(Kind::Channel, channel, text, |to, message| {
            post(config, to, message.encoded(to.is_resp3()).clone());
        });
    };
    if wanted & KEYSPACE != 0 {
        publish(&[format!("__keyspace@{db}__:").as_bytes(), key].concat(), event.name.as_bytes());
    }
    if wanted & KEYEVENT != 0 {
        publish(format!("__keyevent@{db}__:{}", event.name).as_bytes(), key);
    }
}

/// The event that tells of what a database does of its own accord, if one does.
pub fn event_of(happening: Happening<'_>) -> Option<Event> {
    match happening {
        Happening::Expired => Some(Event::EXPIRED),
        Happening::Evicted => Some(Event::EVICTED),
        Happening::Missed => Some(Event::KEYMISS),
        Happening::Added => Some(Event::NEW),
        Happening::FieldsExpired { .. } => Some(Event::HEXPIRED),
        Happening::Gone { .. } | Happening::Met => None,
    }
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
            ("h", "hset hdel hincrby hexpire hexpired hpersist"),
            ("z", "zadd zincr zrem zrangestore zpopmin georadiusstore geosearchstore"),
            ("t", "xadd xdel xtrim xsetid xgroup-create xgroup-createconsumer"),
            ("d", "json.set json.del json.arrpop json.numincrby json.merge"),
            ("g", "del expire persist rename_from move_to copy_to restore"),
            ("x", "expired"),
            ("e", "evicted"),
            ("m", "keymiss"),
            ("n", "new"),
        ];
        for (letter, events) in table {
            for name in events.split(' ') {
                let event = ALL.iter().find(|event| event.name == name).unwrap();
                assert_eq!(event.class, event_bit(letter.as_bytes()[0]), "{name}");
            }
        }
        assert!(ALL.iter().all(|event| event.class != 0));
    }
}
