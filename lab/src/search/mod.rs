//! Queries of redis-server and of Redis with RediSearch: the same documents and vectors in both, then the same questions in rounds, one
//! server after the other. Libraries that search in their own process are the floor.

mod corpus;
mod drive;
mod floor;
mod ingest;
mod record;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use loadgen::compare::Machine;
use xtask::process::Server;

use crate::compare::memory_only;
use crate::isolation::Client;
use crate::programs;
use corpus::{KINDS, VARIANTS, Vectors};
use ingest::Data;
use record::{Asked, Loaded};

/// Clients that ask at the same time.
const CLIENTS: [usize; 2] = [1, 16];
/// Candidates of a walk through a graph (`EF_RUNTIME`), of which the least that finds enough is taken.
const EFS: [usize; 13] = [10, 14, 20, 28, 40, 56, 80, 112, 160, 224, 320, 448, 640];
/// Shares of the nearest ten that are to be found.
const RECALLS: [f64; 2] = [0.95, 0.99];

/// Options of `cargo xtask search`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only data whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Our server; built when not given.
    #[arg(long)]
    ours: Option<PathBuf>,
    /// Only our server.
    #[arg(long)]
    ours_only: bool,
    /// Rounds; in each, every server gets every question.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Milliseconds of each measurement.
    #[arg(long, default_value_t = 2000)]
    milliseconds: u64,
    /// Divides the number of documents, to try the harness.
    #[arg(long, default_value_t = 1)]
    shrink: usize,
    /// Keeps the rows in benches/record.
    #[arg(long, conflicts_with_all = ["shrink", "ours_only"])]
    record: bool,
    /// Measures nothing: prints the tables of docs/redis/search.md from the record.
    #[arg(long, exclusive = true)]
    render: bool,
}

/// A way to ask a server.
struct Way {
    name: &'static str,
    /// Its place among the servers.
    server: usize,
    before: &'static [&'static str],
}

const WAYS: [Way; 3] = [
    Way { name: record::OURS, server: 0, before: &["PING"] },
    Way { name: record::THEIRS, server: 1, before: &["FT.CONFIG", "SET", "WORKERS", "0"] },
    Way { name: record::THREADED, server: 1, before: &["FT.CONFIG", "SET", "WORKERS", "2"] },
];

/// A kind of question, as each server gets it.
struct Question {
    name: String,
    /// By server: an index that finds less takes more candidates for the same share.
    texts: Vec<Vec<Vec<u8>>>,
    /// By server.
    recalls: Vec<Option<record::Recall>>,
}

/// The table of docs/redis/search.md of the questions, from the record.
///
/// # Errors
/// The record's.
pub(crate) fn table() -> Result<String> {
    record::table()
}

/// The table of docs/redis/search.md of what filling takes, from the record.
///
/// # Errors
/// The record's.
pub(crate) fn loads_table() -> Result<String> {
    record::loads_table()
}

/// Runs the command.
///
/// # Errors
/// A server cannot be started, or answers wrongly.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.render {
        println!("{}\n{}", record::table()?, record::loads_table()?);
        return Ok(());
    }
    let ours = options.ours.clone().map_or_else(|| programs::ours("redis-server"), Ok)?;
    let mut servers = vec![std::path::absolute(ours)?];
    if !options.ours_only {
        servers.push(programs::peer("redisearch")?);
    }
    let folder = xtask::workspace::target_dir().join("search");
    fs::create_dir_all(&folder)?;
    let is_wanted = |data: &&Data| options.only.as_ref().is_none_or(|only| data.name.contains(only.as_str()));
    for data in ingest::ALL.iter().filter(is_wanted) {
        measure(options, data, &servers, &folder).context(data.name)?;
    }
    Ok(())
}

fn measure(options: &Options, data: &Data, programs: &[PathBuf], folder: &Path) -> Result<()> {
    let count = data.count / options.shrink;
    let (commit, machine) = (loadgen::compare::commit(xtask::workspace::root()), Machine::this());
    let mut servers = Vec::new();
    for (program, way) in programs.iter().zip(&WAYS) {
        let server = start(program, folder)?;
        let loaded = ingest::fill(&server, data, count)?;
        println!("{}, {}: {loaded}", data.name, way.name);
        servers.push((server, loaded));
    }
    let questions = match data.dimensions {
        None => KINDS.iter().map(|kind| same(&servers, kind.name, &kind.questions())).collect::<Result<Vec<_>>>()?,
        Some(dimensions) => vector_questions(&servers, &Vectors::new(count, dimensions), count)?,
    };
    for question in &questions {
        for clients in CLIENTS {
            let asked = asked(options, &servers, question, clients)?;
            for (way, samples) in asked {
                let row = Asked {
                    data: data.name.to_owned(),
                    question: question.name.clone(),
                    clients,
                    server: way.name.to_owned(),
                    samples,
                    recall: question.recalls[way.server],
                    commit: commit.clone(),
                    machine: Some(machine.clone()),
                };
                println!("{row}");
                if options.record {
                    record::keep_asked(&row)?;
                }
            }
        }
    }
    for ((server, mut loaded), way) in servers.into_iter().zip(&WAYS) {
        loaded.index = ingest::drop_index(&server, count)?;
        let row =
            Loaded { data: data.name.to_owned(), server: way.name.to_owned(), figures: loaded, commit: commit.clone() };
        println!("{row}");
        if options.record {
            record::keep_loaded(&row)?;
        }
    }
    if options.ours_only { Ok(()) } else { floor::measure(options.record, data, count, folder, commit.as_ref()) }
}

fn start(program: &Path, folder: &Path) -> Result<Server> {
    let port = test_peers::free_port();
    let mut command = vec![program.display().to_string()];
    command.extend(memory_only(port));
    let server = Server::start(&command, port, folder)?;
    // No question of ours takes long, but for many that wait for each other: then half an answer would cost half.
    Client::connect(port)?.ask(&["FT.CONFIG", "SET", "TIMEOUT", "0"])?;
    Ok(server)
}

/// A question that all servers get in the same words. All must find as many documents, or their costs say nothing.
fn same(servers: &[(Server, ingest::Figures)], name: &str, texts: &[Vec<u8>]) -> Result<Question> {
    let mut clients = servers.iter().map(|(server, _)| Client::connect(server.port())).collect::<Result<Vec<_>>>()?;
    for text in texts {
        let found = clients.iter_mut().map(|client| client.total(text)).collect::<Result<Vec<_>>>()?;
        // RediSearch counts the groups that it has sent, ours all of them.
        let agree =
            found.windows(2).all(|two| two[0].1 == two[1].1 && (two[0].0 == two[1].0 || name.starts_with("groups")));
        ensure!(agree, "{name}: {}: different totals: {found:?}", String::from_utf8_lossy(text));
    }
    Ok(Question {
        name: name.to_owned(),
        texts: vec![texts.to_vec(); servers.len()],
        recalls: vec![None; servers.len()],
    })
}

/// The questions for the nearest vectors: by share that is found, without and with a filter.
fn vector_questions(servers: &[(Server, ingest::Figures)], vectors: &Vectors, count: usize) -> Result<Vec<Question>> {
    let mut questions = Vec::new();
    for filtered in [false, true] {
        let exact = corpus::exact(vectors, count, filtered);
        let texts = |ef: usize| -> Vec<Vec<u8>> {
            (0..VARIANTS)
                .map(|number| {
                    let tag = filtered.then(|| corpus::asked_tag(number));
                    corpus::nearest(&vectors.asked(number), ef, tag.as_deref())
                })
                .collect()
        };
        for wanted in RECALLS {
            let (mut by_server, mut recalls) = (Vec::new(), Vec::new());
            for (server, _) in servers {
                let mut client = Client::connect(server.port())?;
                let found = EFS.into_iter().find_map(|ef| {
                    let texts = texts(ef);
                    match drive::recall(&mut client, &texts, &exact) {
                        Ok(share) if share < wanted => None,
                        Ok(share) => Some(Ok((texts, record::Recall { ef, share }))),
                        Err(error) => Some(Err(error)),
                    }
                });
                let Some(found) = found else { bail!("no EF_RUNTIME up to {} finds {wanted}", EFS[EFS.len() - 1]) };
                let (texts, recall) = found?;
                by_server.push(texts);
                recalls.push(Some(recall));
            }
            let filter = if filtered { ", of one per cent" } else { "" };
            let name = format!("the nearest ten{filter}, recall {wanted}");
            questions.push(Question { name, texts: by_server, recalls });
        }
    }
    Ok(questions)
}

/// The samples of each way to ask, from rounds in which one comes after the other.
fn asked(
    options: &Options,
    servers: &[(Server, ingest::Figures)],
    question: &Question,
    clients: usize,
) -> Result<Vec<(&'static Way, Vec<drive::Sample>)>> {
    let ways = WAYS.iter().filter(|way| way.server < servers.len());
    let mut all: Vec<(&Way, Vec<drive::Sample>)> = ways.map(|way| (way, Vec::new())).collect();
    let time = Duration::from_millis(options.milliseconds);
    for round in 0..options.rounds {
        for place in 0..all.len() {
            // Each comes first as often as the others.
            let place = (place + round) % all.len();
            let (way, samples) = &mut all[place];
            let server = &servers[way.server].0;
            Client::connect(server.port())?.ask(way.before)?;
            // The first questions of a way find its caches cold.
            drive::measure(server, &question.texts[way.server], clients, time / 10)?;
            samples.push(drive::measure(server, &question.texts[way.server], clients, time)?);
        }
    }
    Ok(all)
}
