//! Which keys cost most, in processor time and in bytes from and to clients, while somebody wants to know (HOTKEYS).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many keys may be asked for.
pub const MAX_COUNT: u64 = 64;
/// How many are told where nothing else is said.
pub const COUNT: u64 = 10;
/// Keys whose costs are added up at the same time, of each metric, before those that cost least are forgotten; half of them stay.
const MAX_KEYS: usize = 4096;
/// Bytes that their names may have; longer names count together.
const MAX_NAMES: usize = 16 << 20;

/// The parameters of a HOTKEYS session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Whether processor time is.
    pub cpu: bool,
    /// Whether bytes are.
    pub net: bool,
    /// How many keys are told.
    pub count: usize,
    /// After how many milliseconds it ends by itself.
    pub duration_ms: Option<u64>,
    /// Of so many calls, one is looked at.
    pub sample: u64,
    /// The slots whose keys count, ascending; none stands for all.
    pub slots: Vec<u16>,
}

/// The resources that the process has used up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Processor time of its own, in milliseconds.
    pub user_ms: u64,
    /// Processor time of the kernel for it, in milliseconds.
    pub system_ms: u64,
    /// Bytes from and to clients.
    pub net_bytes: u64,
}

/// Sums over calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Of all calls.
    pub all: u64,
    /// Of those whose keys are in the slots that are wanted.
    pub selected: u64,
    /// Of those of them that were looked at.
    pub sampled: u64,
}

/// The results of a session so far.
#[derive(Clone, Debug)]
pub struct Report {
    /// The parameters of the session.
    pub wanted: Wanted,
    /// Whether it still goes on.
    pub is_active: bool,
    /// When it began, in milliseconds of Unix time.
    pub began: u64,
    /// How long it took so far, in milliseconds.
    pub duration_ms: u64,
    /// The resources that the process has used since the session began.
    pub used: Used,
    /// Nanoseconds.
    pub cpu: Sums,
    /// Bytes.
    pub net: Sums,
    /// Keys and their nanoseconds, the costliest first.
    pub by_cpu: Vec<(Vec<u8>, u64)>,
    /// Keys and their bytes, the costliest first.
    pub by_net: Vec<(Vec<u8>, u64)>,
}

/// Why something is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// It goes on.
    Active,
    /// It does not.
    Inactive,
}

/// The keys that cost most.
#[derive(Debug, Default)]
pub struct HotKeys {
    session: Mutex<Option<Session>>,
}

#[derive(Debug)]
struct Session {
    wanted: Wanted,
    began: u64,
    ended: Option<u64>,
    /// Up to the beginning; from the end on, in between.
    used: Used,
    cpu: (Sums, Top),
    net: (Sums, Top),
    random: u64,
}

impl HotKeys {
    fn lock(&self) -> MutexGuard<'_, Option<Session>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a session and drops the results of the last one.
    ///
    /// # Errors
    /// It goes on.
    pub fn start(&self, wanted: Wanted, now: u64, used: Used) -> Result<(), NotNow> {
        let mut session = self.lock();
        if session.as_ref().is_some_and(|session| session.is_running(now)) {
            return Err(NotNow::Active);
        }
        let [cpu, net] = <[(Sums, Top); 2]>::default();
        // Not zero, which no shift changes.
        *session = Some(Session { wanted, began: now, ended: None, used, cpu, net, random: now | 1 });
        Ok(())
    }

    /// Ends the session and keeps its results.
    ///
    /// # Errors
    /// It does not go on.
    pub fn stop(&self, now: u64, used: Used) -> Result<(), NotNow> {
        match self.lock().as_mut().filter(|session| session.is_running(now)) {
            Some(session) => {
                session.end(now, used);
                Ok(())
            }
            None => Err(NotNow::Inactive),
        }
    }

    /// Ends if its time is over, which is to be looked at now and then; whether it has.
    pub fn end_if_due(&self, now: u64, used: impl FnOnce() -> Used) -> bool {
        let mut session = self.lock();
        let Some(session) = session.as_mut().filter(|session| session.ended.is_none()) else { return false };
        let Some(due) = session.due().filter(|&due| due <= now) else { return false };
        session.end(due, used());
        true
    }

    /// Whether calls are to be told of.
    pub fn is_active(&self) -> bool {
        self.lock().as_ref().is_some_and(|session| session.ended.is_none())
    }

    /// Forgets what was found out.
    ///
    /// # Errors
    /// It goes on.
    pub fn reset(&self, now: u64) -> Result<(), NotNow> {
        let mut session = self.lock();
        if session.as_ref().is_some_and(|session| session.is_running(now)) {
            return Err(NotNow::Active);
        }
        *session = None;
        Ok(())
    }

    /// The results up to now.
    pub fn report(&self, now: u64, used: Used) -> Option<Report> {
        self.lock().as_ref().map(|session| session.report(now, used))
    }

    /// A call took so many nanoseconds; each of its keys has its slot beside it.
    pub fn took(&self, keys: &[(&[u8], u16)], nanos: u64, now: u64) {
        if let Some(session) = self.lock().as_mut().filter(|session| session.is_running(now)) {
            let is_wanted = session.wanted.cpu;
            session.add(|session| &mut session.cpu, is_wanted, keys, nanos);
        }
    }

    /// [`HotKeys::took`] of bytes, of its request and its reply.
    pub fn moved(&self, keys: &[(&[u8], u16)], bytes: u64, now: u64) {
        if let Some(session) = self.lock().as_mut().filter(|session| session.is_running(now)) {
            let is_wanted = session.wanted.net;
            session.add(|session| &mut session.net, is_wanted, keys, bytes);
        }
    }
}

impl Session {
    /// When it ends by itself.
    fn due(&self) -> Option<u64> {
        self.wanted.duration_ms.map(|duration| self.began.saturating_add(duration))
    }

    fn is_running(&self, now: u64) -> bool {
        self.ended.is_none() && self.due().is_none_or(|due| now < due)
    }

    fn end(&mut self, now: u64, used: Used) {
        self.ended = Some(now);
        self.used = used.since(self.used);
    }

    fn report(&self, now: u64, used: Used) -> Report {
        let is_active = self.is_running(now);
        let until = self.ended.or_else(|| self.due()).map_or(now, |end| end.min(now));
        Report {
            wanted: self.wanted.clone(),
            is_active,
            began: self.began,
            duration_ms: until.saturating_sub(self.began),
            used: if self.ended.is_some() { self.used } else { used.since(self.used) },
            cpu: self.cpu.0,
            net: self.net.0,
            by_cpu: self.cpu.1.highest(self.wanted.count),
            by_net: self.net.1.highest(self.wanted.count),
        }
    }

    /// Adds the cost of a call, of which each of its keys has the same share.
    fn add(
        &mut self,
        metric: impl Fn(&mut Self) -> &mut (Sums, Top),
        is_wanted: bool,
        keys: &[(&[u8], u16)],
        cost: u64,
    ) {
        metric(self).0.all += cost;
        let slots = &self.wanted.slots;
        let is_selected = |slot: &u16| slots.is_empty() || slots.binary_search(slot).is_ok();
        if !keys.iter().any(|(_, slot)| is_selected(slot)) {
            return;
        }
        let selected: Vec<&[u8]> = keys.iter().filter(|(_, slot)| is_selected(slot)).map(|(key, _)| *key).collect();
        metric(self).0.selected += cost;
        if !self.is_sampled() {
            return;
        }
        let (sums, top) = metric(self);
        sums.sampled += cost;
        if is_wanted {
            selected.iter().for_each(|key| top.add(key, cost / keys.len() as u64));
        }
    }

    /// Whether the next call is one of those that are looked at: at random, as clients have rhythms of their own.
    fn is_sampled(&mut self) -> bool {
        let random = &mut self.random;
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        self.wanted.sample <= 1 || random.is_multiple_of(self.wanted.sample)
    }
}

impl Used {
    fn since(self, before: Self) -> Self {
        Self {
            user_ms: self.user_ms.saturating_sub(before.user_ms),
            system_ms: self.system_ms.saturating_sub(before.system_ms),
            net_bytes: self.net_bytes.saturating_sub(before.net_bytes),
        }
    }
}

/// The costs of keys. Of more keys than it can have, those that have cost most so far: a key that costs much comes back soon, and has lost
/// little.
#[derive(Debug, Default)]
struct Top {
    costs: HashMap<Box<[u8]>, u64>,
    /// Bytes of their names.
    names: usize,
}

impl Top {
    fn add(&mut self, key: &[u8], cost: u64) {
        if let Some(sum) = self.costs.get_mut(key) {
            *sum += cost;
            return;
        }
        self.costs.insert(key.into(), cost);
        self.names += key.len();
        if self.costs.len() > MAX_KEYS || self.names > MAX_NAMES {
            self.forget();
        }
    }

    /// Forgets the half that has cost least, and more as long as the names of the others are too long.
    fn forget(&mut self) {
        let mut all: Vec<_> = self.costs.drain().collect();
        all.sort_unstable_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        all.truncate(all.len().div_ceil(2));
        self.names = 0;
        for (key, cost) in all {
            if self.names + key.len() <= MAX_NAMES / 2 {
                self.names += key.len();
                self.costs.insert(key, cost);
            }
        }
    }

    fn highest(&self, count: usize) -> Vec<(Vec<u8>, u64)> {
        let mut all: Vec<_> = self.costs.iter().map(|(key, cost)| (key.to_vec(), *cost)).collect();
        all.sort_unstable_by(|(a, x), (b, y)| y.cmp(x).then_with(|| a.cmp(b)));
        all.truncate(count);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Wanted {
        Wanted { cpu: true, net: true, count: 2, duration_ms: None, sample: 1, slots: Vec::new() }
    }

    fn used(user_ms: u64) -> Used {
        Used { user_ms, system_ms: 2 * user_ms, net_bytes: 3 * user_ms }
    }

    fn started(wanted: Wanted) -> HotKeys {
        let hot = HotKeys::default();
        hot.start(wanted, 1000, used(10)).expect("nothing goes on");
        hot
    }

    #[test]
    fn the_costliest_keys_are_told_until_it_ends() {
        let hot = started(wanted());
        for (keys, nanos, bytes) in [
            (&[(&b"a"[..], 0)][..], 5, 1),
            (&[(&b"b"[..], 0)][..], 9, 2),
            (&[(&b"a"[..], 0), (&b"c"[..], 0)][..], 10, 90),
            (&[][..], 100, 7),
        ] {
            hot.took(keys, nanos, 1001);
            hot.moved(keys, bytes, 1001);
        }
        let report = hot.report(1500, used(14)).unwrap();
        assert_eq!((report.is_active, report.began, report.duration_ms), (true, 1000, 500));
        assert_eq!(report.used, used(4));
        assert_eq!(report.by_cpu, [(b"a".to_vec(), 10), (b"b".to_vec(), 9)]);
        assert_eq!(report.by_net, [(b"a".to_vec(), 46), (b"c".to_vec(), 45)]);
        assert_eq!(report.cpu, Sums { all: 124, selected: 24, sampled: 24 });
        assert_eq!(report.net, Sums { all: 100, selected: 93, sampled: 93 });
        assert_eq!((hot.start(wanted(), 1600, used(14)), hot.reset(1600)), (Err(NotNow::Active), Err(NotNow::Active)));
        hot.stop(1700, used(15)).unwrap();
        hot.took(&[(b"b", 0)], 100, 1701);
        let report = hot.report(9999, used(99)).unwrap();
        assert_eq!((report.is_active, report.duration_ms, report.used, report.cpu.all), (false, 700, used(5), 124));
        assert_eq!((hot.stop(1800, used(15)), hot.reset(1800)), (Err(NotNow::Inactive), Ok(())));
        assert!(hot.report(1900, used(15)).is_none());
    }

    #[test]
    fn it_ends_by_itself() {
        let hot = started(Wanted { duration_ms: Some(50), ..wanted() });
        assert!(!hot.end_if_due(1049, || used(11)));
        hot.took(&[(b"a", 0)], 1, 1049);
        hot.took(&[(b"a", 0)], 1, 1050);
        let report = hot.report(1050, used(12)).unwrap();
        assert_eq!((report.is_active, report.duration_ms, report.cpu.all), (false, 50, 1));
        assert!(hot.is_active() && hot.end_if_due(1050, || used(12)) && !hot.is_active());
        assert_eq!(hot.report(2000, used(99)).unwrap().used, used(2));
    }

    #[test]
    fn only_what_is_wanted_counts() {
        let hot = started(Wanted { net: false, slots: vec![3, 9], ..wanted() });
        for slot in 0..10 {
            hot.took(&[(&[slot], slot.into())], 1, 1001);
            hot.moved(&[(&[slot], slot.into())], 1, 1001);
        }
        let report = hot.report(1001, used(10)).unwrap();
        assert_eq!((report.by_cpu.len(), report.by_net.len()), (2, 0));
        assert_eq!(report.cpu, Sums { all: 10, selected: 2, sampled: 2 });

        let hot = started(Wanted { sample: 10, ..wanted() });
        (0..10_000).for_each(|_| hot.took(&[(b"a", 0)], 1, 1001));
        let sums = hot.report(1001, used(10)).unwrap().cpu;
        assert_eq!((sums.all, sums.selected), (10_000, 10_000));
        assert!((800..1200).contains(&sums.sampled), "{sums:?}");
    }

    #[test]
    fn a_hot_key_is_found_among_more_than_are_kept() {
        let mut top = Top::default();
        for number in 0..10 * MAX_KEYS {
            top.add(number.to_string().as_bytes(), 1);
            top.add(if number % 2 == 0 { b"hot" } else { b"hotter" }, 1 + number as u64 % 2);
            assert!(top.costs.len() <= MAX_KEYS && top.names <= MAX_NAMES);
        }
        let half = 5 * MAX_KEYS as u64;
        assert_eq!(top.highest(2), [(b"hotter".to_vec(), 2 * half), (b"hot".to_vec(), half)]);
        let mut top = Top::default();
        for number in 0..40_u8 {
            top.add(&vec![number; MAX_NAMES / 16], u64::from(number) + 1);
            assert!(top.names <= MAX_NAMES);
        }
        assert_eq!(top.highest(1)[0].1, 40);
    }
}
