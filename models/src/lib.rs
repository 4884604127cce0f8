//! Synchronisation of redis-server, server-runtime and http2 that is written by hand, under a scheduler that tries orders of its steps.
//!
//! The code is the product's own, with other locks and threads (`build.rs`). Its other dependencies stand here, as small as can be. A
//! thread that nobody wakes is found as a deadlock: here no time passes. Steps are those of one processor after the other, so weaker orders
//! of memory are not tried.
//!
//! `cargo test --manifest-path models/Cargo.toml`; `cargo xtask ci` runs it.
#![allow(dead_code, unused_imports, reason = "of what the product has, a model uses a part")]

pub mod atomic_waker;
pub mod event_loop;
pub mod notify;
#[cfg(test)]
mod park;

/// The product's `clients`.
pub mod clients {
    /// A client as far as others wake it and leave messages.
    pub mod client {
        use bytes::Bytes;
        use shuttle::sync::atomic::{AtomicBool, AtomicU32, Ordering};
        use shuttle::sync::{Mutex, MutexGuard};

        use crate::atomic_waker::AtomicWaker;

        /// The part of a client that other threads see.
        #[derive(Debug, Default)]
        pub struct ClientShared {
            flags: AtomicU32,
            mailbox: Mutex<Mailbox>,
            has_mail: AtomicBool,
            waker: AtomicWaker,
        }

        include!(concat!(env!("OUT_DIR"), "/client.rs"));

        #[cfg(test)]
        mod tests;
    }
}

/// The product's `keyspace`.
pub mod keyspace {
    /// How a key is used.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Access {
        /// It is read.
        Read,
        /// It is changed.
        Write,
    }

    /// The turns of readers and writers.
    pub mod queue {
        include!(concat!(env!("OUT_DIR"), "/queue.rs"));

        #[cfg(test)]
        mod tests;
    }
}

/// server-runtime's `counters`.
pub mod counters {
    include!(concat!(env!("OUT_DIR"), "/counters.rs"));

    #[cfg(test)]
    mod tests;
}

/// http2's `reason`.
pub mod reason {
    /// Why a stream ends.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Reason(pub u32);
}

/// http2's `shared`, as far as handlers take bodies on other threads than the connection's.
pub mod shared {
    include!(concat!(env!("OUT_DIR"), "/pipe.rs"));

    #[cfg(test)]
    mod tests;
}

/// The product's `journal`.
pub mod journal {
    mod draft {
        include!(concat!(env!("OUT_DIR"), "/draft.rs"));
    }
    mod stream {
        include!(concat!(env!("OUT_DIR"), "/stream.rs"));
    }

    include!(concat!(env!("OUT_DIR"), "/journal.rs"));

    #[cfg(test)]
    mod tests;
}

/// The product's `protocol`.
pub mod protocol {
    include!(concat!(env!("OUT_DIR"), "/encode.rs"));
}

/// The product's `types`.
pub mod types {
    /// Bytes that do not grow.
    pub type SmallBytes = Box<[u8]>;
}

/// The product's `exec`.
pub mod exec {
    /// The execution gate.
    pub mod gate {
        mod exclusive {
            include!(concat!(env!("OUT_DIR"), "/exclusive.rs"));

            #[cfg(test)]
            mod tests;
        }

        mod marks {
            include!(concat!(env!("OUT_DIR"), "/marks.rs"));
        }

        /// Only threads that follow a primary, or want to be alone with its stream too, know of units.
        mod units {
            /// The pause between two units.
            #[derive(Debug, Default)]
            pub struct Units;
        }

        pub use exclusive::*;
        pub use marks::*;
        pub use units::Units;
    }

    /// The state that all workers share.
    pub mod core {
        use shuttle::sync::Arc;

        use crate::exec::gate::Exclusive;

        /// The requests among workers.
        pub mod workers {
            include!(concat!(env!("OUT_DIR"), "/workers.rs"));

            #[cfg(test)]
            mod tests;
        }

        /// The shared state.
        #[derive(Debug, Default)]
        pub struct Instance {
            /// The exclusive access.
            pub exclusive: Arc<Exclusive>,
        }
    }

    /// The clients that wait for the disk.
    pub mod aof {
        mod lock {
            include!(concat!(env!("OUT_DIR"), "/lock.rs"));
        }

        mod waiters {
            include!(concat!(env!("OUT_DIR"), "/waiters.rs"));
        }

        #[cfg(test)]
        mod tests;
    }
}
