//! The server's part of a crash report.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use crate::command::OwnedArgs;
use crate::config::settings;
use crate::exec::core::{Call, Ctx, Instance, Worker, resolve};
use crate::exec::run::invoke;
use crate::process;
use crate::protocol::Reply;

/// Sections of INFO that need no lock which the crashed thread may hold.
const SECTIONS: &[&str] =
    &["INFO", "server", "clients", "memory", "persistence", "stats", "replication", "cpu", "cluster", "keyspace"];

/// Has a crash leave a report in the log. The server goes without where that cannot be had, like the genuine one.
pub(super) fn leave_reports(instance: &Arc<Instance>) {
    process::enable_crash_reports(instance.config.is_on(settings::CRASH_LOG_ENABLED));
    let log = instance.config.string(settings::LOGFILE);
    let crashed = Arc::clone(instance);
    if let Err(error) =
        process::report_crashes(log.as_deref().map(Path::new), move |client, text| state(&crashed, client, text))
    {
        tracing::warn!("a crash will leave no report: {error}");
    }
}

/// Appends INFO, the clients and of them the one that the crashed thread has served, with the command that it sent last. Takes no
/// place among commands: the crashed thread may be alone with the data.
fn state(instance: &Arc<Instance>, client: u64, text: &mut Vec<u8>) {
    let worker = Worker::of_slow_calls(Arc::clone(instance), instance.stats.aside());
    let number = client.to_string();
    let parts: [(&str, &[&str]); 3] = [
        ("CURRENT CLIENT INFO", &["CLIENT", "LIST", "ID", &number]),
        ("INFO OUTPUT", SECTIONS),
        ("CLIENT LIST OUTPUT", &["CLIENT", "LIST"]),
    ];
    for (title, words) in parts {
        // A `Vec` takes any write.
        let _ = write!(text, "\n------ {title} ------\n");
        if words != parts[0].1 || client != 0 {
            text.extend_from_slice(&answer(&worker, words));
        }
    }
}

/// A command's reply, without the length in front of it.
fn answer(worker: &Worker, words: &[&str]) -> Vec<u8> {
    let mut args = OwnedArgs::default();
    words.iter().for_each(|word| args.push(word.as_bytes()));
    let Some(row) = resolve::find(&worker.instance, args.args()) else { return Vec::new() };
    let (mut reply, mut client) = (Reply::default(), worker.unconnected_client());
    let mut cx = Ctx::new(worker, worker.instance.database(0).lock_none(worker.now_ms()), &mut reply, &mut client);
    invoke::invoke(&mut cx, &Call { row, args: args.args() });
    drop(cx);
    let said = reply.to_vec();
    let line_end = said.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    said[line_end..].to_vec()
}
