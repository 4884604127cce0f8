//! The files on a disk that fails, forgets, hangs, or has been damaged.

mod crashes;
mod damage;
mod faults;
mod life;
mod panics;
mod waits;
