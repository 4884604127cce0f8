//! How often intervals cover the truth, families of verdicts are wrong, and a difference is found: simulations with fixed seeds.
//!
//! `docs/performance/method.md` has the tables. The gate repeats them with fewer trials.

use std::fmt::Write as _;
use std::fs;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use rand_distr::{Exp1, StandardNormal};

use super::*;

/// The pairs of a comparison: logarithms of `a / b`, whose mean over all comparisons is 0.
type Noise = fn(&mut SmallRng, usize) -> Vec<f64>;

/// The trials of the tables: the standard error of 5 % is 0.15 %.
const TRIALS: usize = 20_000;

/// The trials of the gate.
const FEW_TRIALS: usize = 1000;

const FAMILIES: [usize; 4] = [1, 10, 40, 85];

fn normal(random: &mut SmallRng, rounds: usize) -> Vec<f64> {
    let mut run = || 0.05 * random.sample::<f64, _>(StandardNormal);
    (0..rounds).map(|_| run() - run()).collect()
}

/// Now and then a run is much slower: exponential delays on both sides.
fn skewed(random: &mut SmallRng, rounds: usize) -> Vec<f64> {
    let mut run = || 0.05 * random.sample::<f64, _>(Exp1);
    (0..rounds).map(|_| run() - run()).collect()
}

/// Log-normal delays.
fn heavy(random: &mut SmallRng, rounds: usize) -> Vec<f64> {
    let mut run = || 0.05 * (0.7 * random.sample::<f64, _>(StandardNormal)).exp();
    (0..rounds).map(|_| run() - run()).collect()
}

/// Delays of one side are twice those of the other, beside noise that both have.
fn lopsided(random: &mut SmallRng, rounds: usize) -> Vec<f64> {
    let mut run =
        |scale: f64| scale * (random.sample::<f64, _>(Exp1) - 1.0) + 0.02 * random.sample::<f64, _>(StandardNormal);
    (0..rounds).map(|_| run(0.06) - run(0.03)).collect()
}

/// The machine becomes slower by 3 % from each run to the next; the first subject is drawn.
fn drifting(random: &mut SmallRng, rounds: usize) -> Vec<f64> {
    let pair = |random: &mut SmallRng| {
        let drift = if random.random() { 0.03 } else { -0.03 };
        drift + 0.02 * random.sample::<f64, _>(StandardNormal) - 0.02 * random.sample::<f64, _>(StandardNormal)
    };
    (0..rounds).map(|_| pair(random)).collect()
}

/// The machine's speed wanders, and remembers where it was; the first subject is drawn.
fn wandering(random: &mut SmallRng, rounds: usize) -> Vec<f64> {
    let mut speed = 0.1 * random.sample::<f64, _>(StandardNormal);
    let mut run = |random: &mut SmallRng| {
        speed = 0.8 * speed + 0.06 * random.sample::<f64, _>(StandardNormal);
        speed + 0.02 * random.sample::<f64, _>(StandardNormal)
    };
    let mut pair = || {
        let (first, second) = (run(random), run(random));
        if random.random() { first - second } else { second - first }
    };
    (0..rounds).map(|_| pair()).collect()
}

/// Delays hit one of the subjects alone.
fn one_sided(random: &mut SmallRng, rounds: usize) -> Vec<f64> {
    let pair = |random: &mut SmallRng| {
        0.05 * (random.sample::<f64, _>(Exp1) - 1.0) + 0.02 * random.sample::<f64, _>(StandardNormal)
    };
    (0..rounds).map(|_| pair(random)).collect()
}

/// Log-normal delays of this standard deviation hit one of the subjects alone.
fn log_normal(random: &mut SmallRng, rounds: usize, deviation: f64) -> Vec<f64> {
    let mean = (deviation * deviation / 2.0).exp();
    let mut pair = || 0.05 * ((deviation * random.sample::<f64, _>(StandardNormal)).exp() - mean);
    (0..rounds).map(|_| pair()).collect()
}

/// Exponential delays hit one of the subjects alone, and there is no other noise.
fn exponential(random: &mut SmallRng, rounds: usize) -> Vec<f64> {
    (0..rounds).map(|_| 0.05 * (random.sample::<f64, _>(Exp1) - 1.0)).collect()
}

/// Log-normal delays of one side, as rarely and as long as none measured here.
fn log_normal_heavy(random: &mut SmallRng, rounds: usize) -> Vec<f64> {
    log_normal(random, rounds, 1.0)
}

fn log_normal_light(random: &mut SmallRng, rounds: usize) -> Vec<f64> {
    log_normal(random, rounds, 0.5)
}

/// An interval of such a reach, in standard errors, leaves out 0.
fn leaves_out_0(logs: &[f64], reach: f64) -> bool {
    let mean = Mean::of(logs).expect("there are pairs");
    mean.value.abs() > mean.error * reach
}

/// The reach of the intervals of a family.
fn reach(pairs: usize, family: usize) -> f64 {
    student::quantile(freedom(pairs as f64), ERROR / family as f64 / 2.0)
}

fn seeded(pairs: usize, family: usize) -> SmallRng {
    SmallRng::seed_from_u64((pairs << 8 | family) as u64)
}

/// The share of families of independent figures without a difference that have a wrong verdict.
fn wrong(noise: Noise, pairs: usize, family: usize, trials: usize) -> f64 {
    let (mut random, reach) = (seeded(pairs, family), reach(pairs, family));
    let is_wrong = |_: &usize| (0..family).any(|_| leaves_out_0(&noise(&mut random, pairs), reach));
    (0..trials).filter(is_wrong).count() as f64 / trials as f64
}

/// The share of figures with 5 % more that are found, each as one of a family.
fn found(noise: Noise, pairs: usize, family: usize, trials: usize) -> f64 {
    let (mut random, reach) = (seeded(pairs, family), reach(pairs, family));
    let more = |log: f64| log * RUN_NOISE / 0.05 + 0.05_f64.ln_1p();
    let is_found =
        |_: &usize| leaves_out_0(&noise(&mut random, pairs).into_iter().map(more).collect::<Vec<_>>(), reach);
    (0..trials).filter(is_found).count() as f64 / trials as f64
}

/// The standard deviation of a run, as a share, in the table of power. That of the noises is 5 %.
const RUN_NOISE: f64 = 0.02;

const ERRORS: [(&str, Noise); 4] = [
    ("none, normal noise", normal),
    ("one side, exponential", exponential),
    ("one side, log-normal σ 0.5", log_normal_light),
    ("one side, log-normal σ 1", log_normal_heavy),
];

const POWERS: [(&str, Noise); 2] = [("normal", normal), ("exponential, both sides", skewed)];

/// The two tables, in per cent.
fn tables(trials: usize) -> String {
    let columns = format!(" family of {} |", FAMILIES.map(|family| family.to_string()).join(" | "));
    let mut text = format!("| delays | pairs | one interval covers |{columns}\n|---|--:|--:|--:|--:|--:|--:|\n");
    for (name, noise) in ERRORS {
        for pairs in [5, 10, 20, 30] {
            let errors = FAMILIES.map(|family| 100.0 * wrong(noise, pairs, family, trials));
            write!(text, "| {name} | {pairs} | {:.1} |", 100.0 - errors[0]).expect(MEMORY);
            errors.iter().for_each(|error| write!(text, " {error:.1} |").expect(MEMORY));
            text.push('\n');
        }
    }
    write!(text, "\n| noise of a run | pairs |{columns}\n|---|--:|--:|--:|--:|--:|\n").expect(MEMORY);
    for (name, noise) in POWERS {
        for pairs in [10, 20, 30] {
            write!(text, "| {name} | {pairs} |").expect(MEMORY);
            for family in FAMILIES {
                write!(text, " {:.1} |", 100.0 * found(noise, pairs, family, trials)).expect(MEMORY);
            }
            text.push('\n');
        }
    }
    text
}

const MEMORY: &str = "writing to memory does not fail";

/// The tables of `docs/performance/method.md`.
fn committed() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/performance/method.md");
    let text = fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once("<!-- begin: table simulation -->\n").unwrap();
    let parts: Vec<&str> = rest.split_once("<!-- end: table simulation -->\n").unwrap().0.split("\n\n").collect();
    // Captions stand between the tables.
    let tables: Vec<&str> = parts.into_iter().filter(|part| part.starts_with('|')).map(str::trim_end).collect();
    tables.join("\n\n") + "\n"
}

/// The names and the percentages of the rows.
fn rows(text: &str) -> Vec<(String, Vec<f64>)> {
    let lines = text.lines().filter(|line| line.starts_with('|') && !line.starts_with("|-"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let (names, figures) = cells.split_at(2);
        Some((names.join(", "), figures.iter().map(|cell| cell.parse()).collect::<Result<_, _>>().ok()?))
    };
    // The heads have families, not percentages.
    lines.filter(|line| !line.contains("| pairs |")).filter_map(row).collect()
}

#[test]
#[ignore = "takes eleven seconds of CPU time"]
fn the_tables_are_those_of_the_method() {
    let (tables, committed) = (tables(TRIALS), committed());
    assert!(tables == committed, "docs/performance/method.md has another one than:\n{tables}");
}

#[test]
fn fewer_trials_agree_with_the_tables_of_the_method() {
    let (found, committed) = (rows(&tables(FEW_TRIALS)), rows(&committed()));
    assert_eq!(committed.len(), ERRORS.len() * 4 + POWERS.len() * 3);
    assert_eq!(found.len(), committed.len());
    for ((name, found), (committed_name, committed)) in found.iter().zip(&committed) {
        assert_eq!((name, found.len()), (committed_name, committed.len()));
        for (found, committed) in found.iter().zip(committed) {
            let deviation = (committed * (100.0 - committed) / FEW_TRIALS as f64).sqrt();
            assert!((found - committed).abs() <= 4.0 * deviation + 0.3, "{name}: {found}, committed is {committed}");
        }
    }
}

#[test]
fn families_are_wrong_as_rarely_as_the_method_says() {
    let all = rows(&committed());
    let (errors, powers) = all.split_at(ERRORS.len() * 4);
    for (name, figures) in errors {
        let most = if name.starts_with("one side, log-normal σ 1") { 25.0 } else { 5.3 };
        assert!(figures[1..].iter().all(|error| *error <= most), "{name}: {figures:?}");
    }
    // Twenty rounds, the default of `loadgen compare`.
    let (_, figures) = powers.iter().find(|(name, _)| name == "normal, 20").unwrap();
    assert!(figures[..2].iter().all(|power| *power >= 99.0), "{figures:?}");
}

const CASES: [(&str, Noise); 9] = [
    ("normal", normal),
    ("skewed", skewed),
    ("heavy", heavy),
    ("lopsided", lopsided),
    ("drifting", drifting),
    ("wandering", wandering),
    ("one-sided", one_sided),
    ("one-sided, heavy", log_normal_light),
    ("exponential", exponential),
];

#[track_caller]
fn check(name: &str, pairs: usize, mean: impl Fn(&mut SmallRng) -> Mean) {
    let (mut random, trials) = (seeded(pairs, 0), 4000);
    let is_wrong = |_: &usize| {
        let mean = mean(&mut random);
        // As the interval of 95 %, but faster.
        2.0 * student::share_above((mean.value / mean.error).abs(), mean.freedom) < ERROR
    };
    let wrong = (0..trials).filter(is_wrong).count() as f64 / trials as f64;
    println!("{name}, {pairs} pairs: {wrong}");
    assert!(wrong <= 0.063, "{name}, {pairs} pairs: {wrong} of the intervals leave out the truth");
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    for (name, noise) in CASES {
        for pairs in [5, 6, 8, 10, 15, 20, 30] {
            check(name, pairs, |random| Mean::of(&noise(random, pairs)).expect("there are pairs"));
        }
    }
}

/// As `gate` compares: one sample is as in the case, the other one normal.
#[test]
fn intervals_of_unpaired_samples_hold_it_as_often() {
    let sample = |values: &[f64]| Mean::of(values).expect("there are values");
    for (name, noise) in CASES {
        for count in [5, 8, 12, 30] {
            check(name, count, |random| sample(&noise(random, count)).minus(&sample(&normal(random, count))));
        }
    }
}
