//! Shared by the commands of xtask and lab: the workspace and its cargo, child processes, replies of Redis' protocol. Also the list of
//! lab's commands.

pub mod lab;
pub mod process;
pub mod reply;
pub mod workspace;
