//! Workers that stay on a processor of their own.
//!
//! Two busy workers never share a processor then while another one idles, which the kernel's balancing lets happen for some
//! milliseconds now and then.

#[cfg(target_os = "linux")]
pub(crate) use linux::Home;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::Home;

#[cfg(target_os = "linux")]
mod linux {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    use tracing::warn;

    /// A worker's processor, and all that this process may use.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Home {
        own: CpuSet,
        allowed: CpuSet,
    }

    impl Home {
        /// The home of one of so many workers; none unless there are as many as this thread may use processors. With
        /// fewer, the kernel should choose; with more, they share.
        pub(crate) fn of(worker: usize, workers: usize) -> Option<Self> {
            let allowed = sched_getaffinity(None).ok()?;
            let mut places = (0..CpuSet::MAX_CPU).filter(|&place| allowed.is_set(place));
            let place = places.nth(worker).filter(|_| allowed.count() as usize == workers)?;
            let mut own = CpuSet::new();
            own.set(place);
            Some(Self { own, allowed })
        }

        /// Binds the calling thread.
        pub(crate) fn enter(&self) {
            if let Err(error) = sched_setaffinity(None, &self.own) {
                warn!("a worker is not bound to its processor: {error}");
            }
        }

        /// Sets the calling thread free: threads inherit the home of the one that starts them.
        pub(crate) fn leave(&self) {
            if let Err(error) = sched_setaffinity(None, &self.allowed) {
                warn!("a thread stays bound to a worker's processor: {error}");
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn processors() -> usize {
            sched_getaffinity(None).unwrap().count() as usize
        }

        #[test]
        fn each_worker_has_a_processor_of_its_own() {
            let all = processors();
            let homes: Vec<Home> = (0..all).map(|worker| Home::of(worker, all).unwrap()).collect();
            let mut together = CpuSet::new();
            for home in homes {
                assert_eq!(home.own.count(), 1);
                (0..CpuSet::MAX_CPU).filter(|&place| home.own.is_set(place)).for_each(|place| together.set(place));
            }
            assert_eq!(together, sched_getaffinity(None).unwrap());
        }

        #[test]
        fn workers_stay_unpinned_unless_counts_match() {
            let all = processors();
            assert!(Home::of(0, all + 1).is_none());
            assert!(Home::of(all, all).is_none());
        }

        #[test]
        fn a_thread_enters_and_leaves() {
            let all = processors();
            std::thread::spawn(move || {
                let home = Home::of(all - 1, all).unwrap();
                home.enter();
                assert_eq!(processors(), 1);
                home.leave();
                assert_eq!(processors(), all);
            })
            .join()
            .unwrap();
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    /// Other systems have no pinning.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Home {}

    impl Home {
        pub(crate) fn of(_worker: usize, _workers: usize) -> Option<Self> {
            None
        }

        pub(crate) fn enter(&self) {
            match *self {}
        }

        pub(crate) fn leave(&self) {
            match *self {}
        }
    }
}
