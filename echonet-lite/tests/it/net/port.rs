//! Port 3610 for one test at a time, whatever process it is in.

use std::fs::File;

/// Holds the port until it is dropped.
pub(super) struct Port3610 {
    _file: File,
}

/// Waits until no other test uses port 3610 of this machine.
pub(super) fn port_3610() -> Port3610 {
    let path = std::env::temp_dir().join("echonet-lite-port-3610.lock");
    let file = File::create(path).expect("the temporary directory can be written to");
    file.lock().expect("a file can be locked");
    Port3610 { _file: file }
}
