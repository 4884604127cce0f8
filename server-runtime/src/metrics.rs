//! Figures for Prometheus: counters, gauges and histograms, and the text format they are read in (version 0.0.4).

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The figures of one server. Clones share them.
///
/// ```
/// let registry = server_runtime::metrics::Registry::default();
/// let hits = registry.counter("cache_requests_total", "Look-ups in the cache.", &[("result", "hit")]);
/// hits.add(2);
/// registry.collect(|out| out.push_str("up 1\n"));
/// let text = registry.render();
/// assert!(text.contains("# TYPE cache_requests_total counter\ncache_requests_total{result=\"hit\"} 2\n"));
/// assert!(text.ends_with("up 1\n"));
/// ```
#[derive(Clone, Default)]
pub struct Registry(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    families: Vec<Family>,
    collectors: Vec<Collector>,
}

type Collector = Arc<dyn Fn(&mut String) + Send + Sync>;

/// All series of one name.
struct Family {
    name: String,
    help: String,
    kind: &'static str,
    series: Vec<(Labels, Value)>,
}

type Labels = Vec<(String, String)>;

fn borrowed(labels: &Labels) -> Vec<(&str, &str)> {
    labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

#[derive(Clone)]
enum Value {
    Counter(Counter),
    Gauge(Gauge),
    Histogram(Histogram),
}

impl Registry {
    /// A counter with this name and these labels; the same one every time that it is asked for.
    ///
    /// # Panics
    /// As [`Registry::histogram`].
    pub fn counter(&self, name: &str, help: &str, labels: &[(&str, &str)]) -> Counter {
        match self.series(name, help, "counter", labels, || Value::Counter(Counter::default())) {
            Value::Counter(counter) => counter,
            Value::Gauge(_) | Value::Histogram(_) => unreachable!("a family has one kind"),
        }
    }

    /// A gauge with this name and these labels; the same one every time that it is asked for.
    ///
    /// # Panics
    /// As [`Registry::histogram`].
    pub fn gauge(&self, name: &str, help: &str, labels: &[(&str, &str)]) -> Gauge {
        match self.series(name, help, "gauge", labels, || Value::Gauge(Gauge::default())) {
            Value::Gauge(gauge) => gauge,
            Value::Counter(_) | Value::Histogram(_) => unreachable!("a family has one kind"),
        }
    }

    /// A histogram with this name and these labels; the same one every time that it is asked for.
    /// `bounds` are the upper ends of its buckets, ascending; the last bucket, up to infinity, comes by itself.
    ///
    /// # Panics
    /// When the name is in use for another kind, or is no Prometheus name: both are slips of the program.
    pub fn histogram(&self, name: &str, help: &str, labels: &[(&str, &str)], bounds: &[f64]) -> Histogram {
        match self.series(name, help, "histogram", labels, || Value::Histogram(Histogram::new(bounds))) {
            Value::Histogram(histogram) => histogram,
            Value::Counter(_) | Value::Gauge(_) => unreachable!("a family has one kind"),
        }
    }

    /// Lets `collector` add lines of its own whenever the figures are read; it ends each with a line feed.
    /// [`family`] and [`sample`] write them.
    pub fn collect(&self, collector: impl Fn(&mut String) + Send + Sync + 'static) {
        self.inner().collectors.push(Arc::new(collector));
    }

    /// All figures as text.
    pub fn render(&self) -> String {
        let mut out = String::with_capacity(4096);
        let inner = self.inner();
        for Family { name, help, kind, series } in &inner.families {
            family(&mut out, name, help, kind);
            for (labels, value) in series {
                let labels = &borrowed(labels);
                match value {
                    Value::Counter(counter) => sample(&mut out, name, labels, counter.value() as f64),
                    Value::Gauge(gauge) => sample(&mut out, name, labels, gauge.value() as f64),
                    Value::Histogram(histogram) => histogram.render(&mut out, name, labels),
                }
            }
        }
        // Collectors run outside the lock, so that they may use the registry.
        let collectors = inner.collectors.clone();
        drop(inner);
        collectors.iter().for_each(|collect| collect(&mut out));
        out
    }

    fn series(
        &self,
        name: &str,
        help: &str,
        kind: &'static str,
        labels: &[(&str, &str)],
        make: impl FnOnce() -> Value,
    ) -> Value {
        assert!(is_name(name) && labels.iter().all(|(key, _)| is_name(key)), "{name} and its labels are metric names");
        let labels: Labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let mut inner = self.inner();
        let at = inner.families.iter().position(|family| family.name == name).unwrap_or_else(|| {
            let family = Family { name: name.to_owned(), help: help.to_owned(), kind, series: Vec::new() };
            inner.families.push(family);
            inner.families.len() - 1
        });
        let family = &mut inner.families[at];
        assert_eq!(family.kind, kind, "{name} is of one kind");
        if let Some((_, value)) = family.series.iter().find(|(known, _)| *known == labels) {
            return value.clone();
        }
        let value = make();
        family.series.push((labels, value.clone()));
        value
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Pushes to the lists are whole or absent, so a panic elsewhere does no harm here.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.inner();
        let names: Vec<_> = inner.families.iter().map(|family| &family.name).collect();
        f.debug_struct("Registry").field("families", &names).field("collectors", &inner.collectors.len()).finish()
    }
}

/// `[a-zA-Z_:][a-zA-Z0-9_:]*`, the names of the data model.
fn is_name(name: &str) -> bool {
    let is_start = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || byte == b':';
    name.bytes().next().is_some_and(is_start) && name.bytes().all(|byte| is_start(byte) || byte.is_ascii_digit())
}

/// A number that only grows. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Counter(Arc<AtomicU64>);

impl Counter {
    /// One more.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// `count` more.
    #[inline]
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    /// The count.
    pub fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A number that goes up and down. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Gauge(Arc<AtomicI64>);

impl Gauge {
    /// Sets it.
    #[inline]
    pub fn set(&self, value: i64) {
        self.0.store(value, Relaxed);
    }

    /// Changes it by `difference`.
    #[inline]
    pub fn add(&self, difference: i64) {
        self.0.fetch_add(difference, Relaxed);
    }

    /// The number.
    pub fn value(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

/// How values spread over buckets. Clones share it.
#[derive(Clone, Debug)]
pub struct Histogram(Arc<Buckets>);

#[derive(Debug)]
struct Buckets {
    bounds: Vec<f64>,
    /// One count for each bound and one for what is above them all.
    counts: Vec<AtomicU64>,
    /// The sum of all values, as the bits of an `f64`.
    sum: AtomicU64,
}

impl Histogram {
    /// Bounds for the time that a request takes, in seconds: 50 µs to 10 s.
    pub const SECONDS: &[f64] = &[
        0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
        10.0,
    ];

    fn new(bounds: &[f64]) -> Self {
        debug_assert!(bounds.is_sorted(), "bounds ascend");
        let counts = std::iter::repeat_with(AtomicU64::default).take(bounds.len() + 1).collect();
        Self(Arc::new(Buckets { bounds: bounds.to_vec(), counts, sum: AtomicU64::new(0f64.to_bits()) }))
    }

    /// Counts one value.
    pub fn observe(&self, value: f64) {
        let bucket = self.0.bounds.partition_point(|bound| *bound < value);
        self.0.counts[bucket].fetch_add(1, Relaxed);
        let add = |bits| Some((f64::from_bits(bits) + value).to_bits());
        // `add` never says no, so the update always succeeds.
        let _ = self.0.sum.fetch_update(Relaxed, Relaxed, add);
    }

    fn render(&self, out: &mut String, name: &str, labels: &[(&str, &str)]) {
        let bucket = format!("{name}_bucket");
        let bounds = self.0.bounds.iter().copied().chain([f64::INFINITY]);
        let mut total = 0;
        for (bound, count) in bounds.zip(&self.0.counts) {
            total += count.load(Relaxed);
            let bound = number(bound);
            sample(out, &bucket, &[labels, &[("le", &bound)]].concat(), total as f64);
        }
        sample(out, &format!("{name}_sum"), labels, f64::from_bits(self.0.sum.load(Relaxed)));
        sample(out, &format!("{name}_count"), labels, total as f64);
    }
}

/// Writes the two lines that introduce a name: its meaning, and its kind (`counter`, `gauge`, `histogram`, `untyped`).
pub fn family(out: &mut String, name: &str, help: &str, kind: &str) {
    let help = help.replace('\\', r"\\").replace('\n', r"\n");
    write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n").expect("a String takes everything");
}

/// Writes one value.
pub fn sample(out: &mut String, name: &str, labels: &[(&str, &str)], value: f64) {
    out.push_str(name);
    for (at, (key, label)) in labels.iter().enumerate() {
        let label = label.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
        let open = if at == 0 { '{' } else { ',' };
        write!(out, "{open}{key}=\"{label}\"").expect("a String takes everything");
    }
    if !labels.is_empty() {
        out.push('}');
    }
    out.push(' ');
    out.push_str(&number(value));
    out.push('\n');
}

fn number(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_format() {
        let registry = Registry::default();
        registry.counter("a_total", "With \\ and\nbreak.", &[]).add(3);
        registry.gauge("g", "Gauge.", &[("x", "q\"\\\n"), ("y", "")]).add(-7);
        registry.counter("a_total", "", &[]).increment();
        let histogram = registry.histogram("h", "Histogram.", &[("k", "v")], &[1.0, 2.5]);
        [0.5, 1.0, 2.0, 9.0].iter().for_each(|value| histogram.observe(*value));
        let nested = registry.clone();
        registry.collect(move |out| sample(out, "own", &[], nested.counter("a_total", "", &[]).value() as f64));
        assert_eq!(
            registry.render(),
            "# HELP a_total With \\\\ and\\nbreak.\n# TYPE a_total counter\na_total 4\n\
             # HELP g Gauge.\n# TYPE g gauge\ng{x=\"q\\\"\\\\\\n\",y=\"\"} -7\n\
             # HELP h Histogram.\n# TYPE h histogram\n\
             h_bucket{k=\"v\",le=\"1\"} 2\nh_bucket{k=\"v\",le=\"2.5\"} 3\nh_bucket{k=\"v\",le=\"+Inf\"} 4\n\
             h_sum{k=\"v\"} 12.5\nh_count{k=\"v\"} 4\nown 4\n"
        );
    }

    #[test]
    fn names() {
        fn check(name: &str, good: bool) {
            assert_eq!(is_name(name), good, "{name}");
        }
        check("a_total", true);
        check("_:9", true);
        check("", false);
        check("9a", false);
        check("a-b", false);
    }
}
