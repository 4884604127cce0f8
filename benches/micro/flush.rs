//! **Claim**: Rust's Redis is slow.
//! **Source**: "Rust vs Go vs C, database and IoT" (Redis); mini-redis answers and flushes one frame at a time.
//! **Hypothesis**: with pipelining, a write for each reply is what is slow: the system calls, and the packets that the other
//! side wakes up for.
//! **Compared**: on one loopback connection, a batch of 1, 16 and 64 replies of 10 bytes sent by one write, by a write each,
//! and by a write each with Nagle's algorithm left on, as mini-redis leaves it; the reader takes what comes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::settings::settings;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};

const REPLY: &[u8] = b"$4\r\nabcd\r\n";

fn pair(nodelay: bool) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let client = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
    let (server, _) = listener.accept().expect("the client is there");
    server.set_nodelay(nodelay).expect("a socket option");
    client.set_nodelay(true).expect("a socket option");
    (server, client)
}

/// One round: a byte asks for the batch, so that an unanswered packet is there as in life.
fn round(server: &mut TcpStream, client: &mut TcpStream, replies: &[u8], per_write: usize, buffer: &mut [u8]) {
    client.write_all(b"?").expect("connected");
    server.read_exact(&mut buffer[..1]).expect("connected");
    for write in replies.chunks(per_write) {
        server.write_all(write).expect("connected");
    }
    client.read_exact(&mut buffer[..replies.len()]).expect("connected");
}

fn flush(c: &mut Criterion) {
    let mut group = c.benchmark_group("flush");
    for count in [1, 16, 64] {
        let replies = REPLY.repeat(count);
        let mut buffer = vec![0; replies.len()];
        group.throughput(Throughput::Elements(count as u64));
        for (name, nodelay, per_write) in [
            ("one write per batch", true, replies.len()),
            ("one write per reply", true, REPLY.len()),
            ("one write per reply, Nagle", false, REPLY.len()),
        ] {
            let (mut server, mut client) = pair(nodelay);
            round(&mut server, &mut client, &replies, per_write, &mut buffer);
            assert_eq!(buffer, replies, "what was sent has come");
            group.bench_function(BenchmarkId::new(name, count), |b| {
                b.iter(|| round(&mut server, &mut client, &replies, per_write, &mut buffer));
            });
        }
    }
    group.finish();
}

criterion_group! { name = group; config = settings(); targets = flush }
