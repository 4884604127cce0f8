//! Lines of the log in the form in which Redis writes them, which its operators and their tools read.

use std::fmt;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The letter of the process' role.
static ROLE: AtomicU8 = AtomicU8::new(b'M');

/// In logs of Redis' form ([`LogFormat::Redis`](crate::LogFormat::Redis)) the process has this role from now on: `M`, a master, until
/// something else is said, or `S`, a replica.
pub fn set_log_role(role: char) {
    ROLE.store(u8::try_from(role).unwrap_or(b'?'), Relaxed);
}

/// `4711:M 01 Jan 2026 10:00:00.000 * text`: process, role, local time, severity.
pub(crate) struct RedisLine;

impl<S, N> FormatEvent<S, N> for RedisLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, cx: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let severity = match *event.metadata().level() {
            Level::ERROR | Level::WARN => '#',
            Level::INFO => '*',
            Level::DEBUG => '-',
            Level::TRACE => '.',
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = local(now.as_secs());
        write!(
            writer,
            "{}:{} {:02} {} {} {:02}:{:02}:{:02}.{:03} {severity} ",
            std::process::id(),
            char::from(ROLE.load(Relaxed)),
            time.tm_mday,
            MONTHS.get(time.tm_mon as usize).copied().unwrap_or_default(),
            time.tm_year + 1900,
            time.tm_hour,
            time.tm_min,
            time.tm_sec,
            now.subsec_millis(),
        )?;
        cx.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// Unix time as the machine's calendar and clocks have it.
#[allow(unsafe_code, reason = "std knows no time zones")]
fn local(seconds: u64) -> libc::tm {
    let seconds = seconds as libc::time_t;
    // SAFETY: all fields of `tm` are numbers, and a pointer that may be null: zeros are valid.
    let mut time: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid for the call, which writes nothing but `time`. No thread changes the environment's TZ, which
    // `localtime_r` reads.
    unsafe { libc::localtime_r(&raw const seconds, &raw mut time) };
    time
}
