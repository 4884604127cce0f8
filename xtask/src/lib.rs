//! What the commands of this workspace have in common: its folders and its cargo, child processes, replies of Redis' protocol.

pub mod process;
pub mod reply;
pub mod workspace;
