//! Figures of vector indexes: vectors per second, query time, recall, bytes per vector. Single thread, CPU time.
//!
//! `cargo run --release -p query-engine --example vector-figures -- 10000 64`: vectors and dimensions.

use std::error::Error;

use query_engine::vector::{Algorithm, ElementType, Metric, Nearest, Vector, VectorIndex, VectorOptions};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const QUERIES: usize = 200;
const K: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let count = arguments.next().transpose()?.unwrap_or(10_000);
    let dimensions = arguments.next().transpose()?.unwrap_or(64);
    for (name, clusters) in [("uniform", 0), ("mixture", count / 100)] {
        let mut random = SmallRng::seed_from_u64(7);
        let vectors = vectors(&mut random, count + QUERIES, dimensions, clusters);
        for element in [ElementType::Float32, ElementType::Float16, ElementType::Int8] {
            figures(name, element, &vectors)?;
        }
    }
    Ok(())
}

/// Random vectors; around so many centres, or all over the place.
fn vectors(random: &mut SmallRng, count: usize, dimensions: usize, clusters: usize) -> Vec<Vec<f64>> {
    let vector = |random: &mut SmallRng, spread: f64| -> Vec<f64> {
        (0..dimensions).map(|_| random.random_range(-spread..spread)).collect()
    };
    let centres: Vec<Vec<f64>> = (0..clusters).map(|_| vector(random, 100.0)).collect();
    let near = |random: &mut SmallRng| -> Vec<f64> {
        let centre = &centres[random.random_range(0..clusters)];
        centre.iter().zip(vector(random, 25.0)).map(|(centre, apart)| centre + apart).collect()
    };
    (0..count).map(|_| if clusters == 0 { vector(random, 127.0) } else { near(random) }).collect()
}

fn figures(name: &str, element: ElementType, vectors: &[Vec<f64>]) -> Result<(), Box<dyn Error>> {
    let dimensions = vectors[0].len();
    let options = |algorithm| VectorOptions::new(element, dimensions, Metric::L2, algorithm);
    let (mut flat, mut graph) =
        (VectorIndex::new(options(Algorithm::FLAT))?, VectorIndex::new(options(Algorithm::HNSW))?);
    let (put, asked) = vectors.split_at(vectors.len() - QUERIES);
    let blobs: Vec<Vec<u8>> = put.iter().map(|vector| options(Algorithm::FLAT).blob(vector)).collect();
    let started = cpu_seconds()?;
    for (label, blob) in blobs.iter().enumerate() {
        graph.put(label as u64, blob)?;
    }
    let per_second = put.len() as f64 / (cpu_seconds()? - started);
    for (label, blob) in blobs.iter().enumerate() {
        flat.put(label as u64, blob)?;
    }
    println!(
        "{name} {element} x {dimensions}: {} vectors, {per_second:.0} per second, {} bytes per vector (FLAT {})",
        put.len(),
        graph.memory() / put.len(),
        flat.memory() / put.len()
    );
    let queries: Vec<Vector> = asked
        .iter()
        .map(|vector| options(Algorithm::FLAT).vector(&options(Algorithm::FLAT).blob(vector)))
        .collect::<Result<_, _>>()?;
    let started = cpu_seconds()?;
    let exact: Vec<_> = queries.iter().map(|query| flat.nearest(query, &Nearest::new(K))).collect();
    println!("  FLAT: {:.1} us per query", (cpu_seconds()? - started) * 1e6 / QUERIES as f64);
    for ef in [10, 20, 40, 80, 160, 320] {
        let search = Nearest { ef_runtime: Some(ef), ..Nearest::new(K) };
        let started = cpu_seconds()?;
        let found: Vec<_> = queries.iter().map(|query| graph.nearest(query, &search)).collect();
        let time = (cpu_seconds()? - started) * 1e6 / QUERIES as f64;
        let hits = found.iter().zip(&exact).flat_map(|(found, exact)| {
            found.iter().filter(|found| exact.iter().any(|exact| exact.label == found.label))
        });
        println!(
            "  HNSW ef {ef}: {time:.1} us per query, recall@{K} {:.3}",
            hits.count() as f64 / (QUERIES * K) as f64
        );
    }
    for share in [1000, 100, 30, 10, 3] {
        filtered(&graph, &queries, share)?;
    }
    Ok(())
}

/// The ten nearest of one vector in `share`: by a walk of the graph that skips the others, and by comparing all of them.
fn filtered(graph: &VectorIndex, queries: &[Vector], share: usize) -> Result<(), Box<dyn Error>> {
    let accept = |label: u64| label.is_multiple_of(share as u64);
    let labels: Vec<u64> = (0..graph.len() as u64).step_by(share).collect();
    let started = cpu_seconds()?;
    let walked: usize = queries
        .iter()
        .map(|query| graph.nearest(query, &Nearest { accept: Some(&accept), ..Nearest::new(K) }).len())
        .sum();
    let walk = (cpu_seconds()? - started) * 1e6 / QUERIES as f64;
    let started = cpu_seconds()?;
    let compared: usize = queries.iter().map(|query| graph.nearest_of(query, K, &labels, None).len()).sum();
    let compare = (cpu_seconds()? - started) * 1e6 / QUERIES as f64;
    println!(
        "  filter of {} vectors: walk {walk:.1} us, compare all {compare:.1} us ({walked} and {compared} found)",
        labels.len()
    );
    Ok(())
}

/// The CPU time of this thread: other programs on the machine do not count.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_whitespace().next().ok_or("schedstat has no time")?.parse::<f64>()? / 1e9)
}
