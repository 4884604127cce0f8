//! Whether intervals cover what they say, and how often verdicts are wrong: simulations with fixed seeds.

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use rand_distr::{Exp1, StandardNormal};

use super::*;

/// The pairs of a comparison: logarithms of `a / b`, whose mean over all comparisons is [`TRUTH`].
type Noise = fn(&mut SmallRng, usize) -> Vec<f64>;

const TRUTH: f64 = 0.26;

const ROUNDS: [usize; 10] = [4, 5, 6, 7, 8, 10, 12, 15, 20, 30];

/// The standard error of a coverage of 95 % is 0.15 %.
const TRIALS: usize = 20_000;

fn normal(random: &mut SmallRng, rounds: usize) -> Vec<f64> {
    let mut run = || 0.05 * random.sample::<f64, _>(StandardNormal);
    (0..rounds).map(|_| TRUTH + run() - run()).collect()
}

/// Now and then a run is much slower: exponential delays on both sides.
fn skewed(random: &mut SmallRng, rounds: usize) -> Vec<f64> {
    let mut run = || 0.05 * random.sample::<f64, _>(Exp1);
    (0..rounds).map(|_| TRUTH + run() - run()).collect()
}

/// Log-normal delays.
fn heavy(random: &mut SmallRng, rounds: usize) -> Vec<f64> {
    let mut run = || 0.05 * (0.7 * random.sample::<f64, _>(StandardNormal)).exp();
    (0..rounds).map(|_| TRUTH + run() - run()).collect()
}

/// Delays of one side are twice those of the other, beside noise that both have.
fn lopsided(random: &mut SmallRng, rounds: usize) -> Vec<f64> {
    let mut run =
        |scale: f64| scale * (random.sample::<f64, _>(Exp1) - 1.0) + 0.02 * random.sample::<f64, _>(StandardNormal);
    (0..rounds).map(|_| TRUTH + run(0.06) - run(0.03)).collect()
}

/// The machine becomes slower by 3 % from each run to the next; the first subject is drawn.
fn drifting(random: &mut SmallRng, rounds: usize) -> Vec<f64> {
    let pair = |random: &mut SmallRng| {
        let drift = if random.random() { 0.03 } else { -0.03 };
        drift + 0.02 * random.sample::<f64, _>(StandardNormal) - 0.02 * random.sample::<f64, _>(StandardNormal)
    };
    (0..rounds).map(|_| TRUTH + pair(random)).collect()
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
        TRUTH + if random.random() { first - second } else { second - first }
    };
    (0..rounds).map(|_| pair()).collect()
}

/// Delays hit one of the subjects alone.
fn one_sided(random: &mut SmallRng, rounds: usize) -> Vec<f64> {
    let pair = |random: &mut SmallRng| {
        0.05 * (random.sample::<f64, _>(Exp1) - 1.0) + 0.02 * random.sample::<f64, _>(StandardNormal)
    };
    (0..rounds).map(|_| TRUTH + pair(random)).collect()
}

/// Log-normal delays hit one of the subjects alone.
fn one_sided_heavy(random: &mut SmallRng, rounds: usize) -> Vec<f64> {
    let mean = (0.5 * 0.5 / 2.0_f64).exp();
    let mut pair = || 0.05 * ((0.5 * random.sample::<f64, _>(StandardNormal)).exp() - mean);
    (0..rounds).map(|_| TRUTH + pair()).collect()
}

/// Exponential delays hit one of the subjects alone, and there is no other noise.
fn exponential(random: &mut SmallRng, rounds: usize) -> Vec<f64> {
    (0..rounds).map(|_| TRUTH + 0.05 * (random.sample::<f64, _>(Exp1) - 1.0)).collect()
}

/// The share of trials in which `mean` has an interval that holds the truth.
fn coverage(rounds: usize, mean: impl Fn(&mut SmallRng) -> Mean) -> f64 {
    let mut random = SmallRng::seed_from_u64(rounds as u64);
    let held = (0..TRIALS).filter(|trial| {
        let mean = mean(&mut random);
        let is_held = mean.improbability_of(TRUTH) >= ERROR;
        // Intervals take longer.
        if trial % 100 == 0 {
            let [low, high] = mean.interval();
            assert_eq!((low..=high).contains(&TRUTH), is_held, "{mean:?}");
        }
        is_held
    });
    held.count() as f64 / TRIALS as f64
}

#[track_caller]
fn check(name: &str, rounds: &[usize], coverage: impl Fn(usize) -> f64) {
    let found: Vec<(usize, f64)> = rounds.iter().map(|rounds| (*rounds, coverage(*rounds))).collect();
    println!("{name}: {found:?}");
    for (rounds, share) in found {
        // Fewer pairs make no verdict.
        let expected = if rounds < FEWEST_PAIRS { 0.92..=0.98 } else { 0.93..=0.97 };
        assert!(expected.contains(&share), "{name}, {rounds} rounds: {share}");
    }
}

const CASES: [(&str, Noise); 9] = [
    ("normal", normal),
    ("skewed", skewed),
    ("heavy", heavy),
    ("lopsided", lopsided),
    ("drifting", drifting),
    ("wandering", wandering),
    ("one-sided", one_sided),
    ("one-sided, heavy", one_sided_heavy),
    ("exponential", exponential),
];

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    for (name, noise) in CASES {
        check(name, &ROUNDS, |rounds| {
            coverage(rounds, |random| Mean::of(&noise(random, rounds)).expect("there are rounds"))
        });
    }
}

/// As `gate` compares: one sample is as in the case, the other one normal.
#[test]
fn intervals_of_unpaired_samples_hold_it_as_often() {
    let sample = |values: &[f64]| Mean::of(values).expect("there are values");
    for (name, noise) in CASES {
        check(name, &[5, 8, 12, 30], |rounds| {
            coverage(rounds, |random| {
                let other = normal(random, rounds).into_iter().map(|value| value - TRUTH);
                sample(&noise(random, rounds)).minus(&sample(&other.collect::<Vec<_>>()))
            })
        });
    }
}

type Run = fn(&mut SmallRng) -> f64;

/// Of 2,000 simulated comparisons the share in which a difference is claimed, by any of so many figures that depend on each other.
/// A run's logarithm has a standard deviation of 2 %.
fn claims(rounds: usize, figures: usize, effect: f64, run: Run) -> f64 {
    let mut random = SmallRng::seed_from_u64(5);
    let mut pairs = || -> Vec<f64> { (0..rounds).map(|_| run(&mut random) - run(&mut random)).collect() };
    let trials = 2000;
    let claimed = (0..trials).filter(|_| {
        let common = pairs();
        let mut figure = || {
            let logs = common.iter().zip(pairs()).map(|(common, own)| effect.ln() + 0.02 * (0.8 * common + 0.6 * own));
            Mean::of(&logs.collect::<Vec<_>>()).expect("there are pairs").improbability_of(0.0)
        };
        let improbabilities: Vec<f64> = (0..figures).map(|_| figure()).collect();
        holm(&improbabilities).iter().any(|improbability| *improbability <= ERROR)
    });
    claimed.count() as f64 / f64::from(trials)
}

#[test]
fn a_family_of_verdicts_is_wrong_as_rarely_as_one() {
    let runs: [(&str, Run); 3] = [
        ("normal", |random| random.sample(StandardNormal)),
        ("skewed", |random| random.sample(Exp1)),
        // Log-normal, by its standard deviation.
        ("heavy", |random| (0.7 * random.sample::<f64, _>(StandardNormal)).exp() / 1.016),
    ];
    for (name, run) in runs {
        // A figure alone, the seven of a comparison, and those of a record.
        for (rounds, figures) in [(5, 1), (5, 7), (5, 40), (10, 1), (10, 7), (10, 40)] {
            let wrong = claims(rounds, figures, 1.0, run);
            println!("{name}, {rounds} rounds, {figures} figures, A against A: {wrong}");
            assert!(wrong <= ERROR, "{name}, {rounds} rounds, {figures} figures: {wrong}");
        }
        for figures in [1, 7] {
            let found = claims(10, figures, 1.05, run);
            println!("{name}, {figures} figures, A against A + 5 %: {found}");
            assert!(found >= 0.9, "{name}, {figures} figures: {found}");
        }
    }
}
