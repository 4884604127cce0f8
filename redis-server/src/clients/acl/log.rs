//! The denials that ACL LOG shows, and their counts for INFO.

use std::collections::VecDeque;

/// From where a call comes, as ACL LOG names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// A client.
    Toplevel,
    /// A transaction.
    Multi,
    /// A script.
    Lua,
}

impl Context {
    /// The word in ACL LOG.
    pub fn name(self) -> &'static str {
        match self {
            Self::Toplevel => "toplevel",
            Self::Multi => "multi",
            Self::Lua => "lua",
        }
    }
}

/// Entries among which a like one is looked for.
const LOOKED_AT: usize = 10;
/// Milliseconds after which a like event is one of its own.
const GROUPED_MS: u64 = 60_000;

/// Why something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The command.
    Command,
    /// A key.
    Key,
    /// A channel.
    Channel,
    /// A database.
    Database,
    /// A wrong password, or a user that is off.
    Auth,
    /// A certificate that names no user that is on.
    Certificate,
}

impl Reason {
    /// The word in ACL LOG.
    pub fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Key => "key",
            Self::Channel => "channel",
            Self::Database => "database",
            Self::Auth => "auth",
            Self::Certificate => "tls-cert",
        }
    }
}

/// Something that was refused, perhaps more than once.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Why.
    pub reason: Reason,
    /// From where it came.
    pub context: Context,
    /// The name of the command, key or channel, or the number of the database.
    pub object: Vec<u8>,
    /// The name of the user.
    pub user: Vec<u8>,
    /// The client's line of CLIENT LIST, at the last time.
    pub client: String,
    /// How often.
    pub count: u64,
    /// When it last happened, in milliseconds of Unix time.
    pub time: u64,
}

impl Entry {
    fn is_like(&self, other: &Self) -> bool {
        self.reason == other.reason
            && self.context == other.context
            && self.object == other.object
            && self.user == other.user
            && self.time.abs_diff(other.time) <= GROUPED_MS
    }
}

/// An entry of the log, with what tells it from others.
#[derive(Clone, Debug)]
pub struct Logged {
    /// The denied call.
    pub entry: Entry,
    /// The number of the entry, from 0 on.
    pub id: u64,
    /// When it first happened, in milliseconds of Unix time.
    pub created: u64,
}

/// The log.
#[derive(Debug, Default)]
pub struct Log {
    /// The latest first.
    entries: VecDeque<Logged>,
    /// The number of the next entry.
    next_id: u64,
    /// The number of denials, by reason.
    refused: [u64; Reason::Certificate as usize + 1],
}

impl Log {
    /// Adds an entry, or counts it with a like one; of all, `most` are kept.
    pub fn add(&mut self, entry: Entry, most: usize) {
        self.refused[entry.reason as usize] += entry.count;
        let like = self.entries.iter().take(LOOKED_AT).position(|known| known.entry.is_like(&entry));
        let logged = match like.and_then(|at| self.entries.remove(at)) {
            Some(known) => Logged { entry: Entry { count: entry.count + known.entry.count, ..entry }, ..known },
            None => {
                self.next_id += 1;
                Logged { id: self.next_id - 1, created: entry.time, entry }
            }
        };
        self.entries.push_front(logged);
        self.entries.truncate(most);
    }

    /// The latest entries.
    pub fn latest(&self, most: usize) -> Vec<Logged> {
        self.entries.iter().take(most).cloned().collect()
    }

    /// How much has been refused for this reason, whether or not it is shown.
    pub fn refused(&self, reason: Reason) -> u64 {
        self.refused[reason as usize]
    }

    /// Counts anew what is refused.
    pub fn reset_counts(&mut self) {
        self.refused = Default::default();
    }

    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_events_are_counted_together() {
        let mut log = Log::default();
        let event = |object: &str, time: u64| Entry {
            reason: Reason::Key,
            context: Context::Toplevel,
            object: object.into(),
            user: b"bob".to_vec(),
            client: String::new(),
            count: 1,
            time,
        };
        let counts = |log: &Log| {
            let logged = log.latest(9);
            logged.iter().map(|Logged { entry, .. }| (entry.object.clone(), entry.count)).collect::<Vec<_>>()
        };
        for (object, time) in [("a", 0), ("b", 1), ("a", 2)] {
            log.add(event(object, time), 3);
        }
        assert_eq!(counts(&log), [(b"a".to_vec(), 2), (b"b".to_vec(), 1)]);
        let told = log.latest(9).into_iter().map(|Logged { entry, id, created }| (id, created, entry.time));
        assert_eq!(told.collect::<Vec<_>>(), [(0, 0, 2), (1, 1, 1)]);
        log.add(event("a", GROUPED_MS + 3), 3);
        log.add(event("c", GROUPED_MS + 3), 3);
        assert_eq!(counts(&log), [(b"c".to_vec(), 1), (b"a".to_vec(), 1), (b"a".to_vec(), 2)]);
        log.clear();
        assert!(log.latest(9).is_empty());
        assert_eq!([log.refused(Reason::Key), log.refused(Reason::Auth)], [5, 0]);
        log.reset_counts();
        assert_eq!(log.refused(Reason::Key), 0);
    }
}
