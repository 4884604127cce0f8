//! Filling an index, and the cost of that.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use xtask::process::Server;

use super::corpus::{Document, Vectors, blob, tag_of};
use crate::isolation::{Client, request};

/// How long an index may take after its last document.
const PATIENCE: Duration = Duration::from_secs(120);
/// In which a server gives memory back.
const SETTLE: Duration = Duration::from_secs(3);

/// Documents that are put in.
pub(super) struct Data {
    pub(super) name: &'static str,
    pub(super) count: usize,
    /// Of vectors; none for documents.
    pub(super) dimensions: Option<usize>,
}

pub(super) const ALL: [Data; 3] = [
    Data { name: "1 M documents", count: 1_000_000, dimensions: None },
    Data { name: "200,000 vectors of 768", count: 200_000, dimensions: Some(768) },
    Data { name: "1 M vectors of 128", count: 1_000_000, dimensions: Some(128) },
];

/// The cost of filling, by document.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Figures {
    /// Microseconds of the server's CPU time.
    pub(super) cpu: f64,
    /// Documents a second, by one client that pipelines.
    pub(super) rate: f64,
    /// Bytes that the server says that it uses, with the hashes.
    pub(super) used: f64,
    /// Bytes that are resident.
    pub(super) resident: f64,
    /// Bytes of the index alone: what its removal gives back.
    pub(super) index: f64,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, rate, used, resident, index } = self;
        write!(f, "{cpu:.1} us CPU, {rate:.0}/s, {used:.0} bytes used, {resident:.0} resident, {index:.0} of the index")
    }
}

/// Creates the index, puts all documents in, and waits until a query finds them.
pub(super) fn fill(server: &Server, data: &Data, count: usize) -> Result<Figures> {
    let mut client = Client::connect(server.port())?;
    let empty = memory(server, &mut client)?;
    create(&mut client, data)?;
    let (before, begun) = (server.cpu_seconds()?, Instant::now());
    match data.dimensions {
        None => client.each("HSET", count, |number| {
            let Document { body, tag, price } = Document::of(number);
            let fields = ["body".to_owned(), body, "tag".to_owned(), tag, "price".to_owned(), price.to_string()];
            [format!("doc:{number}")].into_iter().chain(fields).map(String::into_bytes).collect()
        })?,
        Some(dimensions) => {
            let vectors = Vectors::new(count, dimensions);
            client.each("HSET", count, |number| {
                let vector = blob(&vectors.of(number));
                vec![
                    format!("doc:{number}").into_bytes(),
                    b"vector".to_vec(),
                    vector,
                    b"tag".to_vec(),
                    tag_of(number).into_bytes(),
                ]
            })?;
        }
    }
    let all = request(&[b"FT.SEARCH", b"index", b"*", b"LIMIT", b"0", b"0"]);
    let sent = Instant::now();
    while client.total(&all)?.0 < i64::try_from(count)? {
        ensure!(sent.elapsed() < PATIENCE, "documents are missing {PATIENCE:?} after the last one");
        thread::sleep(Duration::from_millis(20));
    }
    let (cpu, seconds) = (server.cpu_seconds()? - before, begun.elapsed().as_secs_f64());
    let full = memory(server, &mut client)?;
    let each = |value: f64| value / count as f64;
    let [used, resident] = [0, 1].map(|at| each(full[at] - empty[at]));
    Ok(Figures { cpu: each(cpu * 1e6), rate: count as f64 / seconds, used, resident, index: 0.0 })
}

fn create(client: &mut Client, data: &Data) -> Result<()> {
    let dimensions = data.dimensions.unwrap_or_default().to_string();
    let documents = ["body", "TEXT", "tag", "TAG", "price", "NUMERIC", "SORTABLE"];
    let vectors = [
        "tag",
        "TAG",
        "vector",
        "VECTOR",
        "HNSW",
        "10",
        "TYPE",
        "FLOAT32",
        "DIM",
        &dimensions,
        "DISTANCE_METRIC",
        "L2",
        "M",
        "16",
        "EF_CONSTRUCTION",
        "200",
    ];
    let fields: &[&str] = if data.dimensions.is_some() { &vectors } else { &documents };
    client.ask(&[&["FT.CREATE", "index", "PREFIX", "1", "doc:", "SCHEMA"], fields].concat())
}

/// Removes the index: the bytes by document that this gives back.
pub(super) fn drop_index(server: &Server, count: usize) -> Result<f64> {
    let mut client = Client::connect(server.port())?;
    let [full, _] = memory(server, &mut client)?;
    client.ask(&["FT.DROPINDEX", "index"])?;
    let mut last = full;
    loop {
        let [used, _] = memory(server, &mut client)?;
        // Some give memory back in the background.
        if used > last * 0.999 {
            return Ok((full - used) / count as f64);
        }
        last = used;
    }
}

/// Bytes that the server says that it uses, and those that are resident.
fn memory(server: &Server, client: &mut Client) -> Result<[f64; 2]> {
    thread::sleep(SETTLE);
    Ok([client.info("memory", "used_memory")?, server.resident_bytes()? as f64])
}
