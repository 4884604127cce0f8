//! Which of several servers has what: a cluster's map, which is learnt while a run goes on.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use crate::clock::Nanos;

/// The most servers of a map: Redis recommends a thousand nodes at most.
const MOST_SERVERS: usize = 4096;

/// No server has it.
const NOBODY: u32 = u32::MAX;

/// A map of parts, such as hash slots, to servers. A run's threads share it; a thread that learns a change applies it for all.
#[derive(Debug)]
pub struct Routes {
    /// By part: the number of its server.
    owners: Box<[AtomicU32]>,
    /// By number; none is ever taken out, so that numbers stay.
    servers: RwLock<Vec<SocketAddr>>,
    changes: AtomicU64,
    news: Mutex<News>,
    told: Condvar,
}

/// The state that the asking thread waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct News {
    /// Something does not fit the map.
    is_stale: bool,
    /// The run is over.
    is_over: bool,
}

/// A request on its way to one of several servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// The time from which it is accounted.
    pub intended: Nanos,
    /// Its operation's number.
    pub operation: u32,
    /// The key that it is about.
    pub key: u64,
    /// How often servers have sent it on.
    pub redirects: u8,
    /// Whether the next server must be told that it was sent there (ASKING).
    pub asking: bool,
    /// The request itself.
    pub bytes: Vec<u8>,
}

impl Routes {
    /// So many parts, without owners.
    #[must_use]
    pub fn new(parts: usize) -> Self {
        Self {
            owners: (0..parts).map(|_| AtomicU32::new(NOBODY)).collect(),
            servers: RwLock::default(),
            changes: AtomicU64::new(0),
            news: Mutex::default(),
            told: Condvar::new(),
        }
    }

    /// The number of the server that has a part.
    #[must_use]
    pub fn owner(&self, part: usize) -> Option<usize> {
        let owner = self.owners.get(part)?.load(Ordering::Relaxed);
        (owner != NOBODY).then_some(owner as usize)
    }

    /// Records the owner of a part.
    pub fn learn(&self, part: usize, server: usize) {
        let Some(owner) = self.owners.get(part) else { return };
        let before = owner.swap(server as u32, Ordering::Relaxed);
        self.changes.fetch_add(u64::from(before != NOBODY && before != server as u32), Ordering::Relaxed);
    }

    /// How many servers are known, those among them that have nothing.
    #[must_use]
    pub fn servers(&self) -> usize {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Where a server is.
    #[must_use]
    pub fn address(&self, server: usize) -> Option<SocketAddr> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).get(server).copied()
    }

    /// The number of the server at an address, a new one if need be; nothing where there are too many.
    pub fn number(&self, address: SocketAddr) -> Option<usize> {
        let known = |servers: &[SocketAddr]| servers.iter().position(|known| *known == address);
        if let Some(number) = known(&self.servers.read().unwrap_or_else(PoisonError::into_inner)) {
            return Some(number);
        }
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have been faster.
        if let Some(number) = known(&servers) {
            return Some(number);
        }
        let number = servers.len();
        (number < MOST_SERVERS).then(|| {
            servers.push(address);
            number
        })
    }

    /// Whether a server has any part.
    #[must_use]
    pub fn owns(&self, server: usize) -> bool {
        self.owners.iter().any(|owner| owner.load(Ordering::Relaxed) == server as u32)
    }

    /// The addresses of all servers that have a part.
    #[must_use]
    pub fn owners(&self) -> Vec<SocketAddr> {
        (0..self.servers()).filter(|server| self.owns(*server)).filter_map(|server| self.address(server)).collect()
    }

    /// How many parts have changed their server so far.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Says that the map does not fit: the thread in `wait` asks for it anew.
    pub fn distrust(&self) {
        let mut news = self.news();
        if !news.is_stale {
            news.is_stale = true;
            self.told.notify_all();
        }
    }

    /// A run begins: nothing is known to be wrong.
    pub(crate) fn begin(&self) {
        *self.news() = News::default();
    }

    /// The run is over: no thread waits any more.
    pub(crate) fn end(&self) {
        self.news().is_over = true;
        self.told.notify_all();
    }

    /// Waits until the map is distrusted. False when the run is over.
    pub(crate) fn wait(&self) -> bool {
        let waiting = |news: &mut News| !news.is_stale && !news.is_over;
        let mut news = self.told.wait_while(self.news(), waiting).unwrap_or_else(PoisonError::into_inner);
        news.is_stale = false;
        !news.is_over
    }

    /// Waits so long, less if the run is over.
    pub(crate) fn pause(&self, length: Duration) {
        let waited = self.told.wait_timeout_while(self.news(), length, |news| !news.is_over);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_learnt_part_by_part() {
        let routes = Routes::new(4);
        let [first, second] = [1, 2].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        assert_eq!((routes.owner(0), routes.number(first), routes.number(second)), (None, Some(0), Some(1)));
        assert_eq!((routes.number(first), routes.servers(), routes.address(1)), (Some(0), 2, Some(second)));
        assert!(!routes.owns(0));
        routes.learn(0, 0);
        routes.learn(3, 1);
        routes.learn(3, 1);
        assert_eq!((routes.owner(0), routes.owner(3), routes.owner(9), routes.changes()), (Some(0), Some(1), None, 0));
        assert_eq!(routes.owners(), [first, second]);
        routes.learn(3, 0);
        routes.learn(9, 0);
        assert_eq!((routes.owns(1), routes.owners(), routes.changes()), (false, vec![first], 1));
    }

    #[test]
    fn wait_returns_on_distrust_and_at_the_end() {
        let routes = Routes::new(1);
        routes.distrust();
        routes.distrust();
        assert!(routes.wait());
        routes.end();
        assert!(!routes.wait());
        routes.pause(Duration::from_secs(3600));
        routes.begin();
        routes.distrust();
        assert!(routes.wait());
    }

    #[test]
    fn servers_are_not_learnt_without_end() {
        let routes = Routes::new(1);
        for number in 0..MOST_SERVERS as u32 {
            assert_eq!(routes.number(SocketAddr::from((number.to_be_bytes(), 1))), Some(number as usize));
        }
        assert_eq!(routes.number(SocketAddr::from(([255; 4], 1))), None);
    }
}
