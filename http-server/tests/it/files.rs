//! `--root`: files.

use std::fs;

use http_server::{Options, routes, serve};

use crate::support::{Answer, Client, folder};

#[test]
fn files_of_a_directory() {
    let root = folder("files");
    fs::write(root.join("index.html"), "<h1>index</h1>").unwrap();
    fs::write(root.join("digits.txt"), "0123456789").unwrap();
    fs::write(root.join("big.txt"), "abcdefgh".repeat(1000)).unwrap();
    fs::write(root.join("packed.css"), "plain").unwrap();
    fs::write(root.join("packed.css.br"), "as brotli").unwrap();
    fs::write(root.join("packed.css.gz"), "as gzip").unwrap();
    fs::create_dir(root.join("sub")).unwrap();
    fs::write(root.join("sub/a file.txt"), "with a space").unwrap();
    fs::write(root.parent().unwrap().join("outside.txt"), "secret").unwrap();
    let mut options = Options::listening("127.0.0.1:0".parse().unwrap());
    options.compress = true;
    let running = serve(routes::files(&root), options).unwrap();
    let addr = running.local_addrs()[0];
    let get = |path: &str, fields: &str| -> Answer {
        let mut client = Client::connect(addr);
        client.send(&format!("GET {path} HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
        client.answer().unwrap()
    };
    let check = |path: &str, fields: &str, status: u16, body: &str| {
        let answer = get(path, fields);
        assert_eq!(answer.status, status, "{path} {fields}");
        assert!(status >= 300 || answer.text() == body, "{path} {fields}: {}", answer.text());
    };
    check("/", "", 200, "<h1>index</h1>");
    check("/digits.txt", "", 200, "0123456789");
    check("/sub/a%20file.txt", "", 200, "with a space");
    check("/missing", "", 404, "");
    check("/json", "", 200, r#"{"message":"Hello from Rust"}"#);
    // Ranges.
    check("/digits.txt", "Range: bytes=2-4\r\n", 206, "234");
    check("/digits.txt", "Range: bytes=-3\r\n", 206, "789");
    check("/digits.txt", "Range: bytes=20-\r\n", 416, "");
    assert_eq!(get("/digits.txt", "Range: bytes=2-4\r\n").header("content-range"), Some("bytes 2-4/10"));
    // Validators.
    let answer = get("/digits.txt", "");
    let (tag, date) = (answer.header("etag").unwrap(), answer.header("last-modified").unwrap());
    check("/digits.txt", &format!("If-None-Match: {tag}\r\n"), 304, "");
    check("/digits.txt", "If-None-Match: \"other\"\r\n", 200, "0123456789");
    check("/digits.txt", &format!("If-Modified-Since: {date}\r\n"), 304, "");
    check("/digits.txt", &format!("Range: bytes=2-4\r\nIf-Range: {date}\r\n"), 206, "234");
    // Packed beforehand, or on the way.
    check("/packed.css", "Accept-Encoding: gzip, br\r\n", 200, "as brotli");
    check("/packed.css", "Accept-Encoding: gzip\r\n", 200, "as gzip");
    check("/packed.css", "", 200, "plain");
    let packed = get("/big.txt", "Accept-Encoding: gzip\r\n");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() < 1000);
    let weak = packed.header("etag").unwrap();
    check("/big.txt", &format!("Accept-Encoding: gzip\r\nIf-None-Match: {weak}\r\n"), 304, "");
    // Ways out.
    for path in [
        "/../outside.txt",
        "/sub/../../outside.txt",
        "/%2e%2e/outside.txt",
        "/..%2foutside.txt",
        "/%2Fetc%2Fpasswd",
        "//etc/passwd",
        "/sub%00",
    ] {
        let answer = get(path, "");
        assert!(answer.status >= 300, "{path}: {}", answer.status);
    }
    running.shutdown_handle().trigger();
    assert!(!running.wait());
}
