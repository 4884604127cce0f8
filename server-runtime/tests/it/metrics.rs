//! The metrics endpoint.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};

use server_runtime::Options;

use crate::support::{ask, connect, end, options, serve};

fn with_metrics() -> Options {
    Options { metrics_listen: Some("127.0.0.1:0".parse().unwrap()), max_connections: 2, ..options() }
}

/// Sends these bytes to the endpoint and returns its whole response. Its reading may stop before our writing does.
fn scrape(addr: SocketAddr, request: &[u8]) -> String {
    let mut stream = connect(addr);
    let _ = stream.write_all(request);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn figures_of_the_runtime_and_the_service() {
    let options = with_metrics();
    options.metrics.counter("echo_bytes_total", "Bytes echoed.", &[("kind", "all")]).add(5);
    options.metrics.collect(|out| out.push_str("echo_up 1\n"));
    let running = serve(options);
    let addr = running.local_addrs()[0];
    let mut streams = [connect(addr), connect(addr)];
    streams.iter_mut().for_each(|stream| assert_eq!(ask(stream, "hello"), "hello"));
    assert_eq!(ask(&mut connect(addr), "hello"), "full\n");

    let answer = scrape(running.metrics_addr().unwrap(), b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Content-Type: text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    for line in [
        "echo_bytes_total{kind=\"all\"} 5",
        "echo_up 1",
        "# TYPE server_connections_open gauge",
        "server_connections_open 2",
        "server_connections_limit 2",
        "server_connections_accepted_total 2",
        "server_connections_refused_total 1",
        "server_worker_connections_open{worker=\"0\"} 1",
        "server_worker_connections_open{worker=\"1\"} 1",
    ] {
        assert!(body.lines().any(|found| found == line), "{line} in\n{body}");
    }
    drop(streams);
    end(running);
}

#[test]
fn requests_good_and_bad() {
    let running = serve(with_metrics());
    let addr = running.metrics_addr().unwrap();
    let check = |request: &[u8], status: &str| {
        let answer = scrape(addr, request);
        let name = String::from_utf8_lossy(&request[..request.len().min(60)]).into_owned();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{name:?}: {answer}");
    };
    check(b"GET /metrics HTTP/1.0\r\n\r\n", "200");
    check(b"GET /metrics?x=1 HTTP/1.1\n\n", "200");
    check(b"HEAD /metrics HTTP/1.1\r\n\r\n", "200");
    check(b"GET / HTTP/1.1\r\n\r\n", "404");
    check(b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "405");
    check(b"GET /metrics\r\n\r\n", "400");
    check(b"GET  /metrics HTTP/1.1\r\n\r\n", "400");
    check(b"\r\n\r\n", "400");
    check(b"", "400");
    check(b"GET /metr", "400");
    check(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400");
    check(&b"\xff".repeat(100_000), "431");
    check(&[b"GET /metrics HTTP/1.1\r\nX: ".to_vec(), b"y".repeat(500_000)].concat(), "431");
    assert_eq!(scrape(addr, b"HEAD /metrics HTTP/1.1\r\n\r\n").split("\r\n\r\n").nth(1), Some(""), "no body");
    end(running);
}

#[test]
fn slow_metrics_clients_do_not_delay_other_scrapes() {
    let running = serve(with_metrics());
    let addr = running.metrics_addr().unwrap();
    let mut slow: Vec<_> = (0..20).map(|_| connect(addr)).collect();
    slow.iter_mut().for_each(|stream| stream.write_all(b"GET /me").unwrap());
    assert!(scrape(addr, b"GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
    // A request in pieces is a request.
    slow[0].write_all(b"trics HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    slow[0].read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"));
    assert_eq!(running.connections(), 0, "scrapes are no connections of the service");
    end(running);
}
