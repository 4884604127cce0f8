//! The programs for operators.

/// A program for operators.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) package: &'static str,
    /// Features beside the defaults, each behind its package and a slash.
    pub(super) features: &'static str,
    /// Its name in packages.
    pub(super) installed: &'static str,
    /// True if the program prints completions itself, which are better than those from its help.
    pub(super) completes: bool,
}

const fn program(name: &'static str, package: &'static str, installed: &'static str) -> Program {
    Program { name, package, features: "", installed, completes: false }
}

/// Operators cannot add what a package was built without.
const HTTP: &str = "http-server/embedded-redis,http-server/http3";

pub(super) const PROGRAMS: [Program; 6] = [
    program("redis-server", "redis-server", "gritstone-redis"),
    Program { features: HTTP, ..program("http-server", "http-server", "gritstone-http") },
    program("grpc-server", "grpc-server", "gritstone-grpc"),
    program("grpc-client", "grpc-server", "gritstone-grpc-client"),
    Program { completes: true, ..program("loadgen", "loadgen", "gritstone-loadgen") },
    Program { completes: true, ..program("echonet", "echonet", "gritstone-echonet") },
];
