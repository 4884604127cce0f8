//! All that a server has, to be compared with what it has later, or another one has.

use anyhow::Result;
use xtask::reply::{Reply, short};

use super::pair::{Connection, words};

/// Removes what expires within an hour: it would be there before, and not be there afterwards.
const SETTLE: &str = "for db = 0, 15 do redis.call('SELECT', db) \
                      for _, key in ipairs(redis.call('KEYS', '*')) do \
                        local left = redis.call('PTTL', key) \
                        if left >= 0 and left < 3600000 then redis.call('DEL', key) end \
                      end end";

/// State that the digest does not see: when keys expire, and the state of streams beside their entries. Not how long ago something was.
const HIDDEN: &str = "local all = {} \
                      for db = 0, 15 do redis.call('SELECT', db) \
                      for _, key in ipairs(redis.call('KEYS', '*')) do \
                        local about = {db, key, redis.call('PEXPIRETIME', key)} \
                        local function add(values) for _, value in ipairs(values) do table.insert(about, tostring(value)) end end \
                        if redis.call('TYPE', key).ok == 'stream' then \
                          local info = redis.call('XINFO', 'STREAM', key) \
                          for i = 1, #info, 2 do \
                            if info[i] == 'last-generated-id' or info[i] == 'max-deleted-entry-id' or info[i] == 'entries-added' \
                            then add({info[i + 1]}) end \
                          end \
                          for _, group in ipairs(redis.call('XINFO', 'GROUPS', key)) do \
                            for i = 2, #group, 2 do add({group[i]}) end \
                            for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', key, group[2])) do \
                              add({consumer[2], consumer[4]}) end \
                            for _, pending in ipairs(redis.call('XPENDING', key, group[2], '-', '+', 1000)) do \
                              add({pending[1], pending[2], pending[4]}) end \
                          end \
                        end \
                        table.insert(all, table.concat(about, ' ')) \
                      end end \
                      table.sort(all) return all";

/// All that a server has, in three replies: the digest, what it does not see, and the function libraries.
#[derive(PartialEq, Eq)]
pub(super) struct State(pub(super) [Reply; 3]);

/// The command that leaves nothing that expires while states are compared.
pub(super) fn settle() -> Vec<Vec<u8>> {
    [&b"EVAL"[..], SETTLE.as_bytes(), b"0"].map(<[u8]>::to_vec).to_vec()
}

impl State {
    /// Of the server behind a connection.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) fn of(connection: &mut Connection) -> Result<Self> {
        let hidden = [&b"EVAL"[..], HIDDEN.as_bytes(), b"0"].map(<[u8]>::to_vec).to_vec();
        let functions = connection.ask(&words("FUNCTION LIST WITHCODE"))?.sorted(1);
        Ok(Self([connection.ask(&words("DEBUG DIGEST"))?, connection.ask(&hidden)?, functions]))
    }

    /// The first thing that is not the same.
    pub(super) fn differs(&self, other: &Self) -> Option<String> {
        if self == other {
            return None;
        }
        let (ours, others) = (self.0[1].elements(), other.0[1].elements());
        let lines = ours.iter().filter(|line| !others.contains(line)).map(|line| ("before", line));
        let mut lines = lines.chain(others.iter().filter(|line| !ours.contains(line)).map(|line| ("afterwards", line)));
        Some(match lines.next() {
            Some((when, Reply::Bulk(line))) => format!("{when} there is {}", short(line)),
            Some((when, line)) => format!("{when} there is\n{}", line.show()),
            None if self.0[0] != other.0[0] => "the digest".to_owned(),
            None => "the function libraries".to_owned(),
        })
    }
}
