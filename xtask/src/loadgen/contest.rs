//! What is compared: targets, generators, and what ours is to reach.

/// Generators against one target.
pub(super) struct Contest {
    pub(super) name: &'static str,
    pub(super) target: Target,
    /// Ours, then those that it is compared with.
    pub(super) generators: &'static [Generator],
}

/// Who answers.
pub(super) enum Target {
    /// `loadgen/examples/constant.rs` in this form; answers wait so many milliseconds.
    Constant(&'static str, u32),
    /// Debian's redis-server.
    RedisServer,
}

/// A program that makes load.
pub(super) struct Generator {
    pub(super) program: Program,
    /// Its arguments: `{address}`, `{port}`, `{requests}`, `{seconds}`, `{proto}` and `{data}` are replaced.
    pub(super) arguments: &'static str,
    /// Requests of a run of one second, where it is told a number.
    pub(super) per_second: u64,
    /// What ours must not exceed, or must reach, in comparison with this one.
    pub(super) bar: Bar,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    Ours,
    Wrk,
    RedisBenchmark,
    H2load,
    Ghz,
    /// `xtask/loadgen/udp.c`.
    Floor,
}

impl Program {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ours => "loadgen",
            Self::Wrk => "wrk",
            Self::RedisBenchmark => "redis-benchmark",
            Self::H2load => "h2load",
            Self::Ghz => "ghz",
            Self::Floor => "udp.c",
        }
    }
}

/// What ours divided by the other is to be.
#[derive(Clone, Copy)]
pub(super) enum Bar {
    /// It is ours.
    None,
    /// CPU time per request at most so much.
    Cpu(f64),
    /// The rate at least so much.
    Rate(f64),
    /// The same rate, as far as the interval shows, or at most so much apart.
    SameRate(f64),
}

const fn ours(arguments: &'static str, per_second: u64) -> Generator {
    Generator { program: Program::Ours, arguments, per_second, bar: Bar::None }
}

const fn other(program: Program, arguments: &'static str, per_second: u64, bar: Bar) -> Generator {
    Generator { program, arguments, per_second, bar }
}

/// Half a percent: what a closed loop of 10 ms loses to wake-ups on both sides differs by that much between tools.
const APART: f64 = 0.005;

#[rustfmt::skip]
pub(super) const CONTESTS: &[Contest] = &[
    Contest { name: "http", target: Target::Constant("http", 0), generators: &[
        ours("http http://{address}/ -c 50 -t 1 -n {requests} --json - --quiet", 180_000),
        other(Program::Wrk, "-t1 -c50 -d{seconds}s http://{address}/", 0, Bar::Cpu(0.85)),
    ]},
    Contest { name: "redis-p1", target: Target::Constant("redis", 0), generators: &[
        ours("redis {address} -c 50 -t 1 -n {requests} --json - --quiet SET key:{key} xxx", 180_000),
        other(Program::RedisBenchmark, "-p {port} -c 50 -n {requests} -t set -P 1 --csv", 90_000, Bar::Cpu(0.55)),
    ]},
    Contest { name: "redis-p16", target: Target::Constant("redis", 0), generators: &[
        ours("redis {address} -c 50 -t 1 -n {requests} --pipeline 16 --batch --json - --quiet SET key:{key} xxx", 2_000_000),
        other(Program::RedisBenchmark, "-p {port} -c 50 -n {requests} -t set -P 16 --csv", 1_200_000, Bar::Cpu(0.65)),
    ]},
    Contest { name: "redis-server", target: Target::RedisServer, generators: &[
        ours("redis {address} -c 50 -t 1 -n {requests} --json - --quiet SET key:{key} xxx", 150_000),
        other(Program::RedisBenchmark, "-p {port} -c 50 -n {requests} -t set -P 1 --csv", 90_000, Bar::Rate(1.6)),
    ]},
    Contest { name: "grpc", target: Target::Constant("grpc", 0), generators: &[
        ours("grpc {address} -c 10 --streams 50 -t 1 -n {requests} --json - --quiet", 800_000),
        other(Program::H2load, "-c 10 -m 50 -n {requests} -d {data} -H content-type:application/grpc -H te:trailers \
            http://{address}/helloworld.Greeter/SayHello", 300_000, Bar::Cpu(0.5)),
        other(Program::Ghz, "--insecure --proto {proto} --call helloworld.Greeter.SayHello -d {\"name\":\"world\"} \
            -n {requests} -c 500 --connections 10 {address}", 15_000, Bar::Cpu(0.04)),
    ]},
    Contest { name: "udp", target: Target::Constant("udp", 0), generators: &[
        ours("echonet {address} -c 1 -t 1 --window 32 -n {requests} --json - --quiet get 029001 80", 250_000),
        other(Program::Floor, "{port} 32 {seconds}", 0, Bar::Cpu(1.1)),
    ]},
    Contest { name: "agree-http", target: Target::Constant("http", 10), generators: &[
        ours("http http://{address}/ -c 50 -t 1 -d {seconds}s --warm-up 0s --json - --quiet", 0),
        other(Program::Wrk, "-t1 -c50 -d{seconds}s http://{address}/", 0, Bar::SameRate(APART)),
    ]},
    Contest { name: "agree-redis", target: Target::Constant("redis", 10), generators: &[
        ours("redis {address} -c 50 -t 1 -n {requests} --json - --quiet SET key:{key} xxx", 5_000),
        other(Program::RedisBenchmark, "-p {port} -c 50 -n {requests} -t set -P 1 --csv", 5_000, Bar::SameRate(APART)),
    ]},
    Contest { name: "agree-grpc", target: Target::Constant("grpc", 10), generators: &[
        ours("grpc {address} -c 10 --streams 5 -t 1 -n {requests} --json - --quiet", 5_000),
        other(Program::Ghz, "--insecure --proto {proto} --call helloworld.Greeter.SayHello -d {\"name\":\"world\"} \
            -n {requests} -c 50 --connections 10 {address}", 5_000, Bar::SameRate(APART)),
    ]},
];
