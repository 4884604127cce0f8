//! Which worker should have which connections.
//!
//! A worker costs least per request when it is busy: every time it wakes up, it finds more to do. So connections gather
//! on as few workers as can carry them, and spread over more as soon as those are busy and there is a processor to
//! spare. Where no processor is free, another thread would only take turns with those that run. Nor does it help where
//! most of the work is [done by one worker at a time](crate::Service::serial_nanos).

use std::fs;
use std::time::{Duration, Instant};

use tokio::time::MissedTickBehavior;

use crate::counters::{Counters, Order};
use crate::event_loop::Work;

/// Time between two looks: long enough to see a load, short enough that nobody waits for a second worker.
const PERIOD: Duration = Duration::from_millis(100);
/// Busy for this share of the time, a worker gets no new connections while another has less to do.
const FULL: f64 = 0.75;
/// Busy for this share of the time, a worker gives connections away.
const CROWDED: f64 = 0.9;
/// Processors that must be free for that, of all that the machine has.
const SPARE: f64 = 0.3;
/// Processors that must be free for that where workers now and then wait for each other: less would not make up for it.
const SPARE_FOR_SERIAL: f64 = 1.0;
/// Share of all work that only one worker can do at a time, from which on workers now and then wait for each other.
const PARTLY_SERIAL: f64 = 0.1;
/// The same, from which on two do hardly more than one.
const MOSTLY_SERIAL: f64 = 0.5;
/// Difference of load below which moving connections is not worth it.
const UNEVEN: f64 = 0.25;
/// Two workers with less than this together gather on one: far from [`CROWDED`], so that they do not part again.
const SPARSE: f64 = 0.6;
/// Looks in a row that must agree before connections spread: 0.2 s.
const LOOKS_TO_SPREAD: u32 = 2;
/// Looks in a row that must agree before connections gather: 1 s.
const LOOKS_TO_GATHER: u32 = 10;
/// Load below which a worker has nothing to give away.
const NOTHING: f64 = 0.001;

/// The results of the last checks.
#[derive(Debug, Default)]
pub(crate) struct Balance {
    crowded: u32,
    sparse: u32,
}

impl Balance {
    /// Evaluates one sample. `loads` has the share of time that each worker was busy, and `settled` says which workers have pinned
    /// connections. `serial` is the share of all work that only one worker can do at a time, and `spare` the number of idle processors.
    pub(crate) fn look(&mut self, loads: &[f64], settled: &[bool], serial: f64, spare: f64) -> Vec<Order> {
        let mut by_load: Vec<usize> = (0..loads.len()).collect();
        by_load.sort_by(|a, b| loads[*b].total_cmp(&loads[*a]));
        let spread = spread(loads, &by_load, serial, spare);
        let gather = gather(loads, settled);
        self.crowded = if spread.is_empty() { 0 } else { self.crowded + 1 };
        self.sparse = if gather.is_none() { 0 } else { self.sparse + 1 };
        if self.crowded >= LOOKS_TO_SPREAD {
            *self = Self::default();
            return spread;
        }
        // Goes on look by look: connections that were quiet may come to life later.
        gather.filter(|_| self.sparse >= LOOKS_TO_GATHER).into_iter().collect()
    }
}

/// Pairs the busiest workers with the least busy ones, as far as there are processors for them and it helps.
fn spread(loads: &[f64], by_load: &[usize], serial: f64, mut spare: f64) -> Vec<Order> {
    let mut orders = Vec::new();
    let needed = match serial {
        MOSTLY_SERIAL.. => return orders,
        PARTLY_SERIAL.. => SPARE_FOR_SERIAL,
        _ => SPARE,
    };
    for (&from, &to) in by_load.iter().zip(by_load.iter().rev()).take(loads.len() / 2) {
        let difference = loads[from] - loads[to];
        if loads[from] < CROWDED || difference < UNEVEN || spare < needed {
            break;
        }
        orders.push(Order { from, to, share: difference / 2.0 / loads[from] });
        spare -= 1.0;
    }
    orders
}

/// Empties the last worker that has anything to do into the first that can carry its load too, but none where nobody stays into one
/// where somebody does.
fn gather(loads: &[f64], settled: &[bool]) -> Option<Order> {
    let from = loads.iter().rposition(|load| *load > NOTHING)?;
    let can_carry = |to: &usize| loads[*to] + loads[from] < SPARSE && (settled[from] || !settled[*to]);
    let to = (0..from).find(can_carry)?;
    Some(Order { from, to, share: 1.0 })
}

/// The worker for new connections that can move. It is the first worker that is not full, preferably one without pinned connections. If all
/// are full, it is the least busy one. If most of the work runs on one worker at a time, it is the busiest one.
pub(crate) fn home(loads: &[f64], settled: &[bool], serial: f64) -> usize {
    let by_load = |a: &usize, b: &usize| loads[*a].total_cmp(&loads[*b]);
    let all = 0..loads.len();
    if serial >= MOSTLY_SERIAL {
        return all.max_by(by_load).unwrap_or(0);
    }
    let with_room = all.clone().filter(|worker| loads[*worker] < FULL);
    with_room.min_by_key(|worker| settled[*worker]).or_else(|| all.min_by(by_load)).unwrap_or(0)
}

/// Looks for ever.
pub(crate) async fn watch(counters: &Counters, work: &[Work], serial_nanos: impl Fn() -> u64) {
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut balance = Balance::default();
    let mut before: Vec<Duration> = work.iter().map(Work::busy).collect();
    let mut serial_before = serial_nanos();
    let mut processors = Processors::default();
    let mut at = Instant::now();
    loop {
        ticks.tick().await;
        let elapsed = at.elapsed().as_secs_f64();
        at = Instant::now();
        let now: Vec<Duration> = work.iter().map(Work::busy).collect();
        let loads = now.iter().zip(&before).map(|(now, before)| now.saturating_sub(*before).as_secs_f64() / elapsed);
        let loads: Vec<f64> = loads.collect();
        before = now;
        let serial_now = serial_nanos();
        let serial_load = serial_now.saturating_sub(serial_before) as f64 / 1e9 / elapsed;
        serial_before = serial_now;
        let serial = serial_load / loads.iter().sum::<f64>().max(NOTHING);
        let settled = counters.settled();
        counters.set_home(home(&loads, &settled, serial));
        // The system's figures are asked for only when somebody wants another processor.
        let spare =
            if loads.iter().any(|load| *load >= CROWDED) { processors.spare(elapsed) } else { processors.forget() };
        for order in balance.look(&loads, &settled, serial, spare) {
            counters.order(order);
        }
    }
}

/// The machine's processors, by what the system counts of them.
#[derive(Debug, Default)]
struct Processors {
    /// Time without work of all processors together at the last look, in [`TICKS_PER_SECOND`].
    idle: Option<u64>,
}

/// The unit of `/proc/stat` on every architecture (`USER_HZ`, proc(5)).
const TICKS_PER_SECOND: f64 = 100.0;

impl Processors {
    /// How many had nothing to do in the last `seconds`: 0 at the first look, any number where the system does not tell.
    fn spare(&mut self, seconds: f64) -> f64 {
        let Some(idle) = idle_ticks() else { return f64::INFINITY };
        let before = self.idle.replace(idle);
        before.map_or(0.0, |before| idle.saturating_sub(before) as f64 / TICKS_PER_SECOND / seconds)
    }

    /// Starts afresh, as the figure is not in use.
    fn forget(&mut self) -> f64 {
        self.idle = None;
        0.0
    }
}

/// The fourth figure of the first line of `/proc/stat`: `cpu  user nice system idle …`.
fn idle_ticks() -> Option<u64> {
    fs::read_to_string("/proc/stat").ok()?.lines().next()?.split_ascii_whitespace().nth(4)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Orders after as many looks as any decision takes, where nobody stays.
    fn settled(loads: &[f64], serial: f64, spare: f64) -> Vec<Order> {
        decided(loads, &vec![false; loads.len()], serial, spare)
    }

    fn decided(loads: &[f64], settled: &[bool], serial: f64, spare: f64) -> Vec<Order> {
        let mut balance = Balance::default();
        (0..LOOKS_TO_GATHER)
            .map(|_| balance.look(loads, settled, serial, spare))
            .find(|orders| !orders.is_empty())
            .unwrap_or_default()
    }

    fn order(from: usize, to: usize, share: f64) -> Order {
        Order { from, to, share }
    }

    #[test]
    fn orders() {
        let check =
            |loads: &[f64], spare, expected: &[Order]| assert_eq!(settled(loads, 0.0, spare), expected, "{loads:?}");
        // One worker carries it all, or there is no processor for another.
        check(&[0.7, 0.0], 1.0, &[]);
        check(&[1.0, 0.0], 0.1, &[]);
        check(&[0.0, 0.0], 2.0, &[]);
        // A busy one shares with an idle one, as many pairs as there are processors.
        check(&[1.0, 0.0], 1.0, &[order(0, 1, 0.5)]);
        check(&[0.5, 1.0], 1.0, &[order(1, 0, 0.25)]);
        check(&[1.0, 0.95, 0.0, 0.0], 1.0, &[order(0, 3, 0.5)]);
        check(&[1.0, 1.0, 0.0, 0.0], 2.0, &[order(0, 3, 0.5), order(1, 2, 0.5)]);
        // All alike: no move would help.
        check(&[1.0, 0.9], 1.0, &[]);
        // Little to do gathers on the first workers.
        check(&[0.1, 0.3], 1.0, &[order(1, 0, 1.0)]);
        check(&[0.8, 0.3, 0.2], 1.0, &[order(2, 1, 1.0)]);
        check(&[0.0, 0.3], 1.0, &[order(1, 0, 1.0)]);
        check(&[0.4, 0.4], 1.0, &[]);
    }

    #[test]
    fn workers_that_would_wait_for_each_other_keep_apart() {
        let check =
            |serial, spare, spreads| assert_eq!(!settled(&[1.0, 0.0], serial, spare).is_empty(), spreads, "{serial}");
        check(0.05, 0.4, true);
        check(0.25, 0.4, false);
        check(0.25, 1.0, true);
        check(0.8, 10.0, false);
        // Existing connections keep gathering.
        assert_eq!(settled(&[0.1, 0.3], 0.8, 1.0), [order(1, 0, 1.0)]);
        assert_eq!(home(&[0.9, 0.2], &[false; 2], 0.8), 0);
        assert_eq!(home(&[0.9, 0.2], &[false; 2], 0.3), 1);
    }

    #[test]
    fn one_look_decides_nothing() {
        let mut balance = Balance::default();
        assert_eq!(balance.look(&[1.0, 0.0], &[false; 2], 0.0, 1.0), []);
        assert_eq!(balance.look(&[0.5, 0.0], &[false; 2], 0.0, 1.0), []);
        assert_eq!(balance.look(&[1.0, 0.0], &[false; 2], 0.0, 1.0), []);
        assert_eq!(balance.look(&[1.0, 0.0], &[false; 2], 0.0, 1.0), [order(0, 1, 0.5)]);
        assert_eq!(balance.look(&[1.0, 0.0], &[false; 2], 0.0, 1.0), [], "the last order must show its effect first");
    }

    #[test]
    fn new_connections_go_to_the_first_that_has_room() {
        let check = |loads: &[f64], settled: &[bool], expected| assert_eq!(home(loads, settled, 0.0), expected);
        check(&[0.2, 0.0], &[false; 2], 0);
        check(&[0.8, 0.0], &[false; 2], 1);
        check(&[0.9, 0.8, 1.0], &[false; 3], 1);
        // Where nobody stays, if there is room.
        check(&[0.2, 0.0], &[true, false], 1);
        check(&[0.2, 0.8], &[true, false], 0);
        check(&[0.2, 0.0], &[true, true], 0);
    }

    #[test]
    fn they_do_not_gather_where_others_stay() {
        assert_eq!(decided(&[0.1, 0.3], &[true, false], 0.0, 1.0), []);
        assert_eq!(decided(&[0.1, 0.3], &[false, true], 0.0, 1.0), [order(1, 0, 1.0)]);
        assert_eq!(decided(&[0.1, 0.3], &[true, true], 0.0, 1.0), [order(1, 0, 1.0)]);
        assert_eq!(decided(&[0.1, 0.1, 0.3], &[true, false, false], 0.0, 1.0), [order(2, 1, 1.0)]);
    }
}
