//! Vector sets: elements, scores, quantisation, projection, filters, links.

use std::collections::BTreeMap;
use std::ops::Bound;

use query_engine::vector_set::{
    Filter, Projection, Quantization, Similar, Target, VectorSet, VectorSetError, VectorSetOptions,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const DIMENSIONS: usize = 48;

fn vectors(seed: u64, count: usize) -> Vec<Vec<f32>> {
    let mut random = SmallRng::seed_from_u64(seed);
    let vector = |random: &mut SmallRng, spread: f32| -> Vec<f32> {
        (0..DIMENSIONS).map(|_| random.random_range(-spread..spread)).collect()
    };
    let centres: Vec<Vec<f32>> = (0..40).map(|_| vector(&mut random, 1.0)).collect();
    let near = |random: &mut SmallRng| -> Vec<f32> {
        let centre = &centres[random.random_range(0..40)];
        centre.iter().zip(vector(random, 0.4)).map(|(centre, apart)| centre + apart).collect()
    };
    (0..count).map(|_| near(&mut random)).collect()
}

fn set(options: VectorSetOptions, vectors: &[Vec<f32>]) -> VectorSet {
    let mut set = VectorSet::new(DIMENSIONS, options).expect("within the limits");
    for (number, vector) in vectors.iter().enumerate() {
        assert_eq!(set.add(name(number).as_bytes(), vector, None), Ok(true));
        let attributes = format!("{{\"number\": {number}, \"kind\": \"k{}\"}}", number % 4);
        assert!(set.set_attributes(name(number).as_bytes(), attributes.as_bytes()));
    }
    set
}

fn name(number: usize) -> String {
    format!("e{number:04}")
}

fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let dot =
        |one: &[f32], other: &[f32]| one.iter().zip(other).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
}

#[test]
fn scores_are_those_of_the_angle_as_far_as_quantisation_allows() {
    let vectors = vectors(1, 1000);
    for (quantization, tolerance, least) in
        [(Quantization::None, 1e-6, 0.99), (Quantization::Q8, 0.005, 0.93), (Quantization::Binary, 0.2, 0.3)]
    {
        let set = set(VectorSetOptions { quantization, ..VectorSetOptions::default() }, &vectors);
        let (mut exact_hits, mut walk_hits, mut asked) = (0, 0, 0);
        for query in vectors.iter().step_by(50) {
            let mut expected: Vec<_> =
                vectors.iter().enumerate().map(|(at, it)| (cosine(query, it), name(at))).collect();
            expected.sort_by(|one, other| other.0.total_cmp(&one.0));
            let walked = set.similar(Target::Vector(query), &Similar::new(10)).expect("the dimensions fit");
            let exact = Similar { exact: true, ..Similar::new(10) };
            let exact = set.similar(Target::Vector(query), &exact).expect("the dimensions fit");
            assert_eq!((walked.len(), exact.len()), (10, 10));
            for found in &walked {
                let at: usize = String::from_utf8_lossy(&found.name[1..]).parse().expect("a number");
                let expected = (1.0 + cosine(query, &vectors[at])) / 2.0;
                assert!((found.score - expected).abs() < tolerance, "{quantization:?}: {} {expected}", found.score);
            }
            asked += 10;
            walk_hits += walked.iter().filter(|found| exact.iter().any(|exact| exact.score <= found.score)).count();
            exact_hits += exact
                .iter()
                .filter(|found| expected[..10].iter().any(|(_, name)| name.as_bytes() == found.name))
                .count();
        }
        let (exact, walked) =
            (f64::from(exact_hits as u32) / f64::from(asked), f64::from(walk_hits as u32) / f64::from(asked));
        println!(
            "{quantization:?}: recall {exact} of the quantised vectors, {walked} of the walk, {} bytes per element",
            set.memory() / 1000
        );
        assert!(exact >= least && walked >= 0.95, "{quantization:?}: {exact} {walked}");
    }
}

#[test]
fn elements_come_and_go_as_in_a_map() {
    let mut random = SmallRng::seed_from_u64(2);
    let mut set =
        VectorSet::new(3, VectorSetOptions { quantization: Quantization::None, m: 4, ..VectorSetOptions::default() })
            .expect("within the limits");
    let mut model: BTreeMap<Vec<u8>, (Vec<f32>, Vec<u8>)> = BTreeMap::new();
    for _ in 0..3000 {
        let name = name(random.random_range(0..40)).into_bytes();
        match random.random_range(0..4) {
            0 => assert_eq!(set.remove(&name), model.remove(&name).is_some()),
            1 => {
                let text: &[u8] = if random.random() { b"{\"a\":1}" } else { b"" };
                let known = model.get_mut(&name);
                assert_eq!(set.set_attributes(&name, text), known.map(|known| known.1 = text.to_vec()).is_some());
            }
            _ => {
                let vector: Vec<f32> = (0..3).map(|_| random.random_range(-5.0..5.0)).collect();
                let is_new = !model.contains_key(&name);
                assert_eq!(set.add(&name, &vector, Some(20)), Ok(is_new));
                model.entry(name.clone()).or_default().0 = vector;
            }
        }
        assert_eq!((set.len(), set.is_empty()), (model.len(), model.is_empty()));
        match model.get(&name) {
            Some((vector, attributes)) => {
                let kept = set.vector(&name).expect("it is there");
                assert!(kept.iter().zip(vector).all(|(one, other)| (one - other).abs() < 1e-5), "{kept:?} {vector:?}");
                assert_eq!(set.attributes(&name).unwrap_or_default(), attributes);
                let nearest = set.similar(Target::Element(&name), &Similar::new(1)).expect("it is there");
                assert!((nearest[0].score - 1.0).abs() < 1e-6);
            }
            None => {
                assert_eq!((set.vector(&name), set.attributes(&name), set.links(&name)), (None, None, None));
                assert_eq!(set.similar(Target::Element(&name), &Similar::new(1)), Err(VectorSetError::NoElement));
            }
        }
        let all = set.similar(Target::Vector(&[1.0, 0.0, 0.0]), &Similar::new(100)).expect("three dimensions");
        assert_eq!(all.len(), model.len());
    }
    let names: Vec<&[u8]> = set.names(Bound::Unbounded, Bound::Unbounded).collect();
    assert!(names.iter().copied().eq(model.keys().map(Vec::as_slice)));
    let (first, last) = (names[1], names[names.len() - 2]);
    assert_eq!(set.names(Bound::Included(first), Bound::Excluded(last)).count(), names.len() - 3);
    assert_eq!(set.names(Bound::Excluded(last), Bound::Included(first)).count(), 0);
    let members: std::collections::BTreeSet<_> = (0..set.len()).filter_map(|place| set.member_at(place)).collect();
    assert_eq!(members.len(), set.len());
}

#[test]
fn filters_choose_by_attributes() {
    let vectors = vectors(3, 1000);
    let set = set(VectorSetOptions { quantization: Quantization::None, ..VectorSetOptions::default() }, &vectors);
    let found = |filter: &str, search: Similar<'_>| {
        let filter = Filter::parse(filter.as_bytes()).expect("valid");
        let target = Target::Vector(&vectors[7]);
        let found = set.similar(target, &Similar { filter: Some(&filter), ..search }).expect("the dimensions fit");
        found.into_iter().map(|found| String::from_utf8_lossy(found.name).into_owned()).collect::<Vec<_>>()
    };
    for (filter, count) in [(".kind == \"k1\"", 10), (".number < 5", 5), (".number in [3, 5000]", 1), (".absent", 0)] {
        let exact = found(filter, Similar { exact: true, ..Similar::new(10) });
        assert_eq!(exact.len(), count, "{filter}");
        assert_eq!(found(filter, Similar { filter_ef: 0, ..Similar::new(10) }), exact, "{filter}");
    }
    // A filter that looks at few elements gives up.
    assert!(found(".number == 999", Similar { filter_ef: 1, ..Similar::new(1) }).is_empty());
    let near = Similar { epsilon: Some(0.05), ..Similar::new(1000) };
    let near = set.similar(Target::Element(b"e0007"), &near).expect("it is there");
    assert!(near.len() < 500 && near.iter().all(|found| found.score >= 0.95), "{}", near.len());
}

#[test]
fn links_go_both_ways() {
    let vectors = vectors(4, 500);
    let set = set(VectorSetOptions { m: 4, ..VectorSetOptions::default() }, &vectors);
    assert!(set.max_level() > 0);
    for number in 0..500 {
        let own = name(number);
        let levels = set.links(own.as_bytes()).expect("it is there");
        for (height, links) in levels.iter().rev().enumerate() {
            assert!(links.len() <= if height == 0 { 8 } else { 4 });
            assert!(height > 0 || !links.is_empty());
            for link in links {
                let back = set.links(link.name).expect("links lead to elements");
                let there = &back[back.len() - 1 - height];
                assert!(there.iter().any(|link| link.name == own.as_bytes()), "{own} at {height}");
            }
        }
    }
}

#[test]
fn projections_keep_near_ones_near() {
    let vectors = vectors(5, 500);
    let projection = Projection::hadamard(DIMENSIONS, 24).expect("within the limits");
    assert_eq!(Projection::from_matrix(DIMENSIONS, projection.matrix().collect()), Ok(projection.clone()));
    assert_eq!((projection.input(), projection.output()), (DIMENSIONS, 24));
    let set = set(VectorSetOptions { projection: Some(projection), ..VectorSetOptions::default() }, &vectors);
    assert_eq!((set.dimensions(), set.vector(b"e0000").map(|vector| vector.len())), (24, Some(24)));
    let same = vectors.iter().step_by(10).filter(|vector| {
        let found = set.similar(Target::Vector(vector), &Similar::new(5)).expect("the dimensions fit");
        found
            .iter()
            .map(|found| String::from_utf8_lossy(&found.name[1..]).parse().expect("a number"))
            .all(|at: usize| cosine(vector, &vectors[at]) > 0.7)
    });
    assert!(same.count() >= 45);
}

#[test]
fn invalid_dimensions_and_projections_are_refused() {
    let new = |dimensions, m, projection| {
        VectorSet::new(dimensions, VectorSetOptions { m, projection, ..VectorSetOptions::default() }).map(|_| ())
    };
    for (dimensions, m) in [(0, 16), (usize::MAX, 16), (3, 0), (3, usize::MAX)] {
        assert!(new(dimensions, m, None).is_err(), "{dimensions} {m}");
    }
    assert!(new(3, 16, Some(Projection::hadamard(4, 2).expect("within the limits"))).is_err());
    for (input, output) in [(0, 0), (3, 0), (0, 3), (usize::MAX, 2), (2, usize::MAX), (65_536, 65_536)] {
        assert!(Projection::hadamard(input, output).is_err(), "{input} {output}");
    }
    for (input, factors) in [(0, 0), (0, 3), (2, 3), (usize::MAX, 3)] {
        assert!(Projection::from_matrix(input, vec![0.0; factors]).is_err(), "{input} {factors}");
    }
    let mut set = VectorSet::new(2, VectorSetOptions::default()).expect("within the limits");
    let error = set.add(b"a", &[1.0], None).expect_err("another dimension");
    assert_eq!(error.to_string(), "Vector dimension mismatch - got 1 but set has 2");
    assert!(set.similar(Target::Vector(&[1.0; 3]), &Similar::new(1)).is_err() && set.member_at(1).is_none());
    let odd = [0.0, f32::INFINITY, f32::NAN, f32::MAX, -1.0];
    for (at, pair) in odd.iter().flat_map(|one| odd.map(|other| [*one, other])).enumerate() {
        set.add(name(at).as_bytes(), &pair, Some(usize::MAX)).expect("two dimensions");
    }
    let found = set.similar(Target::Vector(&[f32::NAN, 1.0]), &Similar { ef: usize::MAX, ..Similar::new(usize::MAX) });
    assert_eq!(found.expect("two dimensions").len(), 25);
}
