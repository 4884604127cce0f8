//! Flags that mean nothing are refused at the start, instead of meaning something else.

use clap::Parser;
use http_server::{Args, api};

/// Whether a server would start with these.
fn check(flags: &[&str], is_fine: bool) {
    let flags: Vec<_> = ["http-server"].iter().chain(flags).collect();
    let started = Args::try_parse_from(&flags).is_ok_and(|args| {
        let options = args.options().map_err(|error| error.to_string());
        let router = args.router().map_err(|error| error.to_string());
        options.is_ok_and(|mut options| router.is_ok() && api::routes(&args.redis, &mut options).is_ok())
    });
    assert_eq!(started, is_fine, "{flags:?}");
}

#[test]
fn invalid_flag_values_and_combinations_are_refused() {
    check(&[], true);
    check(&["--root", env!("CARGO_MANIFEST_DIR")], true);
    check(&["--root", "/nowhere/at/all"], false);
    check(&["--root", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")], false);
    check(&["--redis", "embedded"], true);
    check(&["--redis", "embeded"], false);
    check(&["--redis", "localhost"], false);
    check(&["--redis", "localhost:6379"], true);
    check(&["--redis", "redis://localhost"], true);
    check(&["--redis", "[::1]"], false);
    check(&["--engine", "hyper"], true);
    check(&["--engine", "other"], false);
    check(&["--max-headers", "128"], true);
    check(&["--max-headers", "1000"], false);
    check(&["--max-headers", "0"], false);
    for flag in [["--redis-allow", "@all"], ["--redis-keys", "a:"], ["--redis-timeout", "100"], ["--host", "a.example"]]
    {
        check(&flag, false);
        check(&[&flag[..], &["--redis", "embedded"]].concat(), true);
    }
    check(&["--redis", "embedded", "--host", "http://a"], false);
}
