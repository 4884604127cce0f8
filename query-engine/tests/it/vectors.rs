//! Vector indexes against slow references.

use query_engine::vector::{
    Algorithm, ElementType, IsOver, MAX_DIMENSIONS, Metric, Nearest, Neighbour, Vector, VectorError, VectorIndex,
    VectorOptions, Within,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Random bytes that are numbers of the type.
fn blob(random: &mut SmallRng, options: &VectorOptions) -> Vec<u8> {
    let numbers: Vec<f64> = (0..options.dimensions)
        .map(|_| match options.element {
            ElementType::Int8 => f64::from(random.random::<i8>()),
            ElementType::Uint8 => f64::from(random.random::<u8>()),
            _ => random.random_range(-2.0..2.0),
        })
        .collect();
    options.blob(&numbers)
}

/// The elements of a blob, read one by one.
fn elements(options: &VectorOptions, blob: &[u8]) -> Vec<f64> {
    let half = |bits: u16| {
        let (sign, exponent, mantissa) = (bits >> 15, i32::from(bits >> 10 & 31), f64::from(bits & 1023));
        let size = if exponent == 0 {
            mantissa * 2_f64.powi(-24)
        } else {
            (1.0 + mantissa / 1024.0) * 2_f64.powi(exponent - 15)
        };
        if sign == 1 { -size } else { size }
    };
    let element = |bytes: &[u8]| match (options.element, bytes) {
        (ElementType::Float32, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
        (ElementType::Float64, bytes) => f64::from_le_bytes(bytes.try_into().expect("eight bytes")),
        (ElementType::Float16, &[a, b]) => half(u16::from_le_bytes([a, b])),
        (ElementType::Bfloat16, &[a, b]) => f64::from(f32::from_le_bytes([0, 0, a, b])),
        (ElementType::Int8, &[a]) => f64::from(a as i8),
        (ElementType::Uint8, &[a]) => f64::from(a),
        other => panic!("{other:?}"),
    };
    blob.chunks(options.element.size()).map(element).collect()
}

fn distance(metric: Metric, one: &[f64], other: &[f64]) -> f64 {
    let dot = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(one, other)| one * other).sum::<f64>();
    match metric {
        Metric::L2 => one.iter().zip(other).map(|(one, other)| (one - other).powi(2)).sum(),
        Metric::InnerProduct => 1.0 - dot(one, other),
        Metric::Cosine => {
            let lengths = dot(one, one).sqrt() * dot(other, other).sqrt();
            if lengths > 0.0 { 1.0 - dot(one, other) / lengths } else { 1.0 }
        }
    }
}

/// The error that a type's rounding leaves, relative to the sizes of the terms.
fn tolerance(element: ElementType, metric: Metric, reference: f64, dimensions: usize) -> f64 {
    let size = match (metric, element) {
        (Metric::Cosine, _) => 1.0,
        (_, ElementType::Int8 | ElementType::Uint8) => reference.abs(),
        _ => reference.abs() + 4.0 * dimensions as f64,
    };
    let relative = match (element, metric) {
        (ElementType::Float64, _) => 1e-12,
        // A unit vector's elements are rounded again.
        (ElementType::Float16, Metric::Cosine) => 1e-3,
        (ElementType::Bfloat16, Metric::Cosine) => 8e-3,
        _ => 1e-6,
    };
    size * relative
}

#[test]
fn flat_indexes_are_exact_in_every_type_and_metric() {
    let mut random = SmallRng::seed_from_u64(1);
    for (element, metric) in ElementType::ALL.into_iter().flat_map(|it| Metric::ALL.map(|metric| (it, metric))) {
        for dimensions in [1, 3, 15, 16, 17, 64, 100] {
            let options = VectorOptions::new(element, dimensions, metric, Algorithm::Flat { block_size: 8 });
            let mut index = VectorIndex::new(options).expect("within the limits");
            let blobs: Vec<Vec<u8>> = (0..50).map(|_| blob(&mut random, &options)).collect();
            for (label, blob) in blobs.iter().enumerate() {
                index.put(label as u64, blob).expect("the right size");
            }
            let query = blob(&mut random, &options);
            let reference =
                |label: u64| distance(metric, &elements(&options, &query), &elements(&options, &blobs[label as usize]));
            let near = |found: &Neighbour| {
                let expected = reference(found.label);
                (found.distance - expected).abs() <= tolerance(element, metric, expected, dimensions)
            };
            let vector = options.vector(&query).expect("the right size");
            let all = index.nearest(&vector, &Nearest::new(usize::MAX));
            assert_eq!(all.len(), 50, "{options:?}");
            assert!(all.iter().all(near), "{options:?} {all:?}");
            assert!(all.is_sorted_by(|one, other| one.distance <= other.distance));
            assert_eq!(index.nearest(&vector, &Nearest::new(7)), all[..7], "{options:?}");
            let radius = all[20].distance;
            let within = index.within(&vector, &Within { radius, ..Within::default() });
            assert_eq!(within, all[..=all.iter().rposition(|found| found.distance <= radius).expect("the 21st")]);
            let odd = |label: u64| label % 2 == 1;
            let filtered: Vec<_> = all.iter().filter(|found| odd(found.label)).copied().collect();
            assert_eq!(index.nearest(&vector, &Nearest { accept: Some(&odd), ..Nearest::new(5) }), filtered[..5]);
            let labels: Vec<u64> = (0..200).filter(|label| odd(*label)).collect();
            assert_eq!(index.nearest_of(&vector, 5, &labels, None), filtered[..5]);
        }
    }
}

/// Vectors around centres, as embeddings are: a text has neighbours that are much nearer than others.
fn mixture(random: &mut SmallRng, count: usize) -> Vec<Vec<u8>> {
    let vector = |random: &mut SmallRng, spread: f64| -> Vec<f64> {
        (0..64).map(|_| random.random_range(-spread..spread)).collect()
    };
    let centres: Vec<Vec<f64>> = (0..100).map(|_| vector(random, 1.0)).collect();
    let near = |random: &mut SmallRng| -> Vec<f64> {
        let centre = &centres[random.random_range(0..100)];
        centre.iter().zip(vector(random, 0.25)).map(|(centre, apart)| centre + apart).collect()
    };
    (0..count).map(|_| options(Algorithm::FLAT).blob(&near(random))).collect()
}

fn options(algorithm: Algorithm) -> VectorOptions {
    VectorOptions::new(ElementType::Float32, 64, Metric::L2, algorithm)
}

fn queries(random: &mut SmallRng) -> Vec<Vector> {
    let blobs = mixture(random, 100);
    blobs.iter().map(|blob| options(Algorithm::FLAT).vector(blob).expect("the right size")).collect()
}

/// The part of the ten nearest that the graph finds.
fn recall(graph: &VectorIndex, flat: &VectorIndex, queries: &[Vector], search: &Nearest<'_>) -> f64 {
    let mut hits = 0;
    for query in queries {
        let (found, exact) = (graph.nearest(query, search), flat.nearest(query, search));
        assert_eq!(found.len(), exact.len());
        assert!(found.is_sorted_by(|one, other| one.distance <= other.distance));
        hits += found.iter().filter(|found| exact.iter().any(|exact| exact.label == found.label)).count();
    }
    hits as f64 / (queries.len() * search.k) as f64
}

#[test]
fn hnsw_keeps_its_recall_while_vectors_go_and_change() {
    let mut random = SmallRng::seed_from_u64(2);
    let blobs = mixture(&mut random, 10_000);
    let mut graph = VectorIndex::new(options(Algorithm::HNSW)).expect("defaults");
    let mut flat = VectorIndex::new(options(Algorithm::FLAT)).expect("defaults");
    let put = |graph: &mut VectorIndex, flat: &mut VectorIndex, label: usize, blob: &[u8]| {
        graph.put(label as u64, blob).expect("the right size");
        flat.put(label as u64, blob).expect("the right size");
    };
    for (label, blob) in blobs.iter().enumerate() {
        put(&mut graph, &mut flat, label, blob);
    }
    let queries: Vec<Vector> =
        blobs.iter().step_by(200).map(|blob| options(Algorithm::FLAT).vector(blob).expect("the right size")).collect();
    let check = |graph: &VectorIndex, flat: &VectorIndex, what: &str| {
        let all = recall(graph, flat, &queries, &Nearest::new(10));
        let third = |label: u64| label.is_multiple_of(3);
        let filtered = recall(graph, flat, &queries, &Nearest { accept: Some(&third), ..Nearest::new(10) });
        println!("{what}: recall@10 {all}, of a third {filtered}, {} bytes per vector", graph.memory() / graph.len());
        assert!(all >= 0.95 && filtered >= 0.95, "{what}: {all} {filtered}");
    };
    check(&graph, &flat, "10,000 vectors");
    for label in (0..10_000).filter(|label| label % 2 == 0) {
        assert!(graph.remove(label) && flat.remove(label) && !graph.remove(label));
    }
    check(&graph, &flat, "half removed");
    for (at, label) in (1..10_000).step_by(4).enumerate() {
        put(&mut graph, &mut flat, label, &blobs[at * 2]);
    }
    assert_eq!(graph.len(), 5000);
    check(&graph, &flat, "a quarter of all changed");
}

#[test]
fn a_small_graph_finds_all_that_is_there() {
    // Two links at most, and many equal vectors: the graph falls apart, and a scan finds what the walk cannot reach.
    let algorithm = Algorithm::Hnsw { m: 2, ef_construction: 10, ef_runtime: 10, epsilon: 0.01 };
    let options = VectorOptions::new(ElementType::Int8, 2, Metric::L2, algorithm);
    for seed in 0..20 {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut index = VectorIndex::new(options).expect("within the limits");
        let mut there = std::collections::BTreeSet::new();
        let query = options.vector(&[0, 0]).expect("two bytes");
        for _ in 0..2000 {
            let label = random.random_range(0..60);
            if random.random_ratio(2, 5) {
                assert_eq!(index.remove(label), there.remove(&label));
            } else {
                index.put(label, &[random.random_range(0..3), random.random_range(0..3)]).expect("two bytes");
                there.insert(label);
            }
            assert_eq!(index.len(), there.len());
            let mut found: Vec<u64> =
                index.nearest(&query, &Nearest::new(1000)).iter().map(|found| found.label).collect();
            found.sort_unstable();
            assert!(found.iter().eq(&there), "{seed}: {} of {}", found.len(), there.len());
        }
        there.iter().for_each(|label| assert!(index.remove(*label)));
        assert!(index.is_empty() && index.nearest(&query, &Nearest::new(1)).is_empty());
    }
}

#[test]
fn ranges_of_hnsw_find_what_is_near() {
    let mut random = SmallRng::seed_from_u64(3);
    let blobs = mixture(&mut random, 2000);
    let mut graph = VectorIndex::new(options(Algorithm::HNSW)).expect("defaults");
    let mut flat = VectorIndex::new(options(Algorithm::FLAT)).expect("defaults");
    for (label, blob) in blobs.iter().enumerate() {
        graph.put(label as u64, blob).expect("the right size");
        flat.put(label as u64, blob).expect("the right size");
    }
    let (mut found, mut expected) = (0, 0);
    for blob in blobs.iter().step_by(50) {
        let query = options(Algorithm::FLAT).vector(blob).expect("the right size");
        let search = Within { radius: 3.0, ..Within::default() };
        let (near, exact) = (graph.within(&query, &search), flat.within(&query, &search));
        assert!(near.iter().all(|near| exact.contains(near)));
        found += near.len();
        expected += exact.len();
    }
    assert!(expected > 400 && found * 100 >= expected * 95, "{found} of {expected}");
    let far = queries(&mut random).remove(0);
    assert_eq!(graph.within(&far, &Within { radius: -1.0, ..Within::default() }), []);
    assert_eq!(graph.within(&far, &Within { radius: f64::INFINITY, ..Within::default() }).len(), 2000);
    assert_eq!(graph.within(&far, &Within { radius: f64::NAN, ..Within::default() }), []);
}

/// A degree is twice HNSW's M: that many links are kept on the lowest level.
#[test]
fn vamana_answers_as_hnsw_of_half_its_degree() {
    let mut random = SmallRng::seed_from_u64(9);
    let small = Algorithm::Vamana { degree: 16, construction_window: 50, search_window: 20, epsilon: 0.2 };
    let same = Algorithm::Hnsw { m: 8, ef_construction: 50, ef_runtime: 20, epsilon: 0.2 };
    let [mut vamana, mut hnsw] =
        [small, same].map(|algorithm| VectorIndex::new(options(algorithm)).expect("within the limits"));
    for (label, blob) in mixture(&mut random, 2000).iter().enumerate() {
        for index in [&mut vamana, &mut hnsw] {
            index.put(label as u64, blob).expect("the right size");
        }
    }
    for query in queries(&mut random) {
        assert_eq!(vamana.nearest(&query, &Nearest::new(10)), hnsw.nearest(&query, &Nearest::new(10)));
        let near = Within { radius: 3.0, ..Within::default() };
        assert_eq!(vamana.within(&query, &near), hnsw.within(&query, &near));
    }
}

#[test]
fn hostile_vectors_are_refused_or_have_their_place() {
    let new = |dimensions, algorithm| {
        VectorIndex::new(VectorOptions::new(ElementType::Float32, dimensions, Metric::Cosine, algorithm)).map(|_| ())
    };
    let graph = |m, ef_construction, epsilon| Algorithm::Hnsw { m, ef_construction, ef_runtime: 10, epsilon };
    let vamana = |degree, construction_window, epsilon| Algorithm::Vamana {
        degree,
        construction_window,
        search_window: 10,
        epsilon,
    };
    for (dimensions, algorithm) in [
        (0, Algorithm::FLAT),
        (MAX_DIMENSIONS + 1, Algorithm::FLAT),
        (usize::MAX, Algorithm::HNSW),
        (2, Algorithm::Flat { block_size: usize::MAX }),
        (2, graph(1, 10, 0.1)),
        (2, graph(usize::MAX, 10, 0.1)),
        (2, graph(16, usize::MAX, 0.1)),
        (2, graph(16, 10, -1.0)),
        (2, graph(16, 10, f64::NAN)),
        (2, vamana(0, 10, 0.1)),
        (2, vamana(usize::MAX, 10, 0.1)),
        (2, vamana(32, usize::MAX, 0.1)),
        (2, vamana(32, 10, f64::INFINITY)),
    ] {
        assert!(new(dimensions, algorithm).is_err(), "{dimensions} {algorithm:?}");
    }
    for (metric, algorithm) in
        Metric::ALL.into_iter().flat_map(|metric| [Algorithm::FLAT, Algorithm::HNSW].map(|it| (metric, it)))
    {
        let options = VectorOptions::new(ElementType::Float32, 2, metric, algorithm);
        let mut index = VectorIndex::new(options).expect("within the limits");
        for size in [0, 4, 7, 9, 16] {
            let expected = VectorError::Size { given: size, expected: 8 };
            assert_eq!(index.put(1, &vec![0; size]), Err(expected.clone()));
            assert_eq!(options.vector(&vec![0; size]).map(|_| ()), Err(expected));
        }
        let odd = [0.0, -0.0, 1.0, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        let pairs: Vec<[f64; 2]> = odd.iter().flat_map(|one| odd.map(|other| [*one, other])).collect();
        for (label, pair) in pairs.iter().enumerate() {
            index.put(label as u64, &options.blob(pair)).expect("the right size");
        }
        for pair in &pairs {
            let query = options.vector(&options.blob(pair)).expect("the right size");
            let found = index.nearest(&query, &Nearest { ef_runtime: Some(usize::MAX), ..Nearest::new(usize::MAX) });
            assert_eq!(found.len(), 64, "{metric} {algorithm:?} {pair:?}");
            assert!(found.iter().all(|found| !found.distance.is_nan()));
            assert_eq!(index.nearest(&query, &Nearest::new(0)), []);
        }
        (0..64).for_each(|label| assert!(index.remove(label)));
        assert_eq!(index.len(), 0);
    }
}

#[test]
fn a_search_ends_when_the_caller_says_so() {
    let mut random = SmallRng::seed_from_u64(4);
    for algorithm in [Algorithm::FLAT, Algorithm::HNSW] {
        let mut index = VectorIndex::new(options(algorithm)).expect("defaults");
        for (label, blob) in mixture(&mut random, 1000).iter().enumerate() {
            index.put(label as u64, blob).expect("the right size");
        }
        let query = queries(&mut random).remove(0);
        let is_over: &IsOver<'_> = &|| true;
        let found = index.nearest(&query, &Nearest { is_over: Some(is_over), ..Nearest::new(1000) });
        assert!((1..1000).contains(&found.len()), "{algorithm:?}: {}", found.len());
    }
}
