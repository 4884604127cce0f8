//! The process' title, which `ps` and `top` show: `set-proc-title` and `proc-title-template`.
#![allow(unsafe_code, reason = "the kernel shows the bytes where the process' arguments stood at its start")]

use std::env;
use std::fs;
use std::sync::{Mutex, PoisonError};

use crate::config::title::{NAMES, expand};
use crate::config::{Config, settings};

/// The memory that the kernel shows as the process' arguments: from the first of them to the end of its environment.
#[derive(Debug)]
pub struct Title {
    /// The address and length of that memory. It is the kernel's map of the process that names it, and nothing else uses it.
    place: Mutex<(usize, usize)>,
    /// The name under which the program was started.
    program: String,
}

impl Title {
    /// Takes that memory over: arguments and environment are not to be read there any more, so the environment moves. `None` where
    /// the kernel does not say where it is.
    ///
    /// The process must have one thread, and have read its arguments: they are gone.
    pub fn take() -> Option<Self> {
        let program = env::args_os().next()?.to_string_lossy().into_owned();
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // Behind the program's name, which may hold anything, field 3 follows; 48 to 51 are the bounds of arguments and environment.
        let fields: Vec<usize> = stat
            .rsplit_once(')')?
            .1
            .split_whitespace()
            .skip(45)
            .take(4)
            .map(|text| text.parse().unwrap_or(0))
            .collect();
        let [begin, arguments_end, environment_begin, end] = fields[..] else { return None };
        if begin == 0 || begin >= end || arguments_end != environment_begin {
            return None;
        }
        for (name, value) in env::vars_os() {
            // SAFETY: the process has one thread, which reads no environment meanwhile. A variable that is set anew has memory of
            // its own.
            unsafe { env::set_var(name, value) };
        }
        Some(Self { place: Mutex::new((begin, end - begin)), program })
    }

    /// Shows what `proc-title-template` makes of the configuration.
    pub fn refresh(&self, config: &Config) {
        let text = |setting| config.string(setting).unwrap_or_default();
        let (port, tls_port) = (config.int(settings::PORT), config.int(settings::TLS_PORT));
        let address = config
            .words(settings::BIND)
            .first()
            .map_or_else(|| "*".to_owned(), |address| String::from_utf8_lossy(address).into_owned());
        let listens = match if port == 0 { tls_port } else { port } {
            0 => text(settings::UNIXSOCKET),
            port => format!("{address}:{port}"),
        };
        let mode = if config.is_on(settings::CLUSTER_ENABLED) { "[cluster]" } else { "" };
        let file = config.file().map_or_else(String::new, |path| path.display().to_string());
        let values = [
            self.program.clone(),
            listens,
            mode.to_owned(),
            port.to_string(),
            tls_port.to_string(),
            text(settings::UNIXSOCKET),
            file,
        ];
        let named: Vec<_> = NAMES.into_iter().zip(values).collect();
        if let Some(title) = expand(&text(settings::PROC_TITLE_TEMPLATE), &named) {
            self.show(&title);
        }
    }

    /// Shows a title, as far as there is room for it.
    fn show(&self, title: &str) {
        let place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let (begin, len) = *place;
        let title = &title.as_bytes()[..title.len().min(len - 1)];
        // SAFETY: this memory is the process' own, writable from its start to its end, and nobody else's since `take`; the lock keeps
        // other threads from it.
        let all = unsafe { std::slice::from_raw_parts_mut(begin as *mut u8, len) };
        all[..title.len()].copy_from_slice(title);
        // A last byte that is not zero would make the kernel look for the end elsewhere.
        all[title.len()..].fill(0);
    }
}
