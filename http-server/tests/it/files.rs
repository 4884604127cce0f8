//! `--root`: files.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use http_server::{Options, routes, serve};
use server_runtime::Running;

use crate::support::{Answer, Client, PATIENCE, folder};

/// A served folder.
struct Site {
    root: PathBuf,
    running: Running,
}

impl Site {
    fn of(name: &str) -> Self {
        let root = folder(name);
        fs::write(root.join("index.html"), "<h1>index</h1>").unwrap();
        fs::write(root.join("digits.txt"), "0123456789").unwrap();
        fs::create_dir(root.join("sub")).unwrap();
        fs::write(root.join("sub/a file.txt"), "with a space").unwrap();
        let mut options = Options::listening("127.0.0.1:0".parse().unwrap());
        options.compress = true;
        let running = serve(routes::files(&root).unwrap(), options).unwrap();
        Self { root, running }
    }

    fn get(&self, path: &str, fields: &str) -> Answer {
        let mut client = Client::connect(self.running.local_addrs()[0]);
        client.send(&format!("GET {path} HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
        client.answer().unwrap()
    }

    fn check(&self, path: &str, fields: &str, status: u16, body: &str) {
        let answer = self.get(path, fields);
        assert_eq!(answer.status, status, "{path} {fields}");
        assert!(status >= 300 || answer.text() == body, "{path} {fields}: {}", answer.text());
    }

    fn end(self) {
        self.running.shutdown_handle().trigger();
        assert!(!self.running.wait());
    }
}

/// Files of a directory, by their names.
#[test]
fn files_of_a_directory() {
    let site = Site::of("files_of_a_directory");
    site.check("/", "", 200, "<h1>index</h1>");
    site.check("/digits.txt", "", 200, "0123456789");
    site.check("/sub/a%20file.txt", "", 200, "with a space");
    site.check("/missing", "", 404, "");
    site.check("/json", "", 200, r#"{"message":"Hello from Rust"}"#);
    site.end();
}

/// A part of a file; several at a time, other units and malformed ranges give the whole.
#[test]
fn ranges_of_files() {
    let site = Site::of("ranges_of_files");
    site.check("/digits.txt", "Range: bytes=2-4\r\n", 206, "234");
    site.check("/digits.txt", "Range: bytes=-3\r\n", 206, "789");
    site.check("/digits.txt", "Range: bytes=20-\r\n", 416, "");
    // Several at a time, other units and malformed ranges: the whole.
    for range in [
        "bytes=0-1,4-5",
        "bytes=0-1\r\nRange: bytes=4-5",
        "items=0-1",
        "bytes=5-2",
        "bytes=",
        "bytes=-",
        "bytes=a-b",
        "0-1",
    ] {
        site.check("/digits.txt", &format!("Range: {range}\r\n"), 200, "0123456789");
    }
    assert_eq!(site.get("/digits.txt", "Range: bytes=2-4\r\n").header("content-range"), Some("bytes 2-4/10"));
    site.end();
}

/// Bytes without a period that a wrong offset could hide in.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_u32;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    (0..len).map(next).collect()
}

/// The system sends large files from its cache. Lengths are around the least of these, and around the pieces that a turn sends.
#[test]
fn large_files_arrive_whole() {
    let site = Site::of("large_files_arrive_whole");
    let content = noise(3_000_000);
    for len in [32_767, 32_768, 32_769, 262_143, 262_144, 262_145, 524_288, 3_000_000] {
        fs::write(site.root.join("large.bin"), &content[..len]).unwrap();
        let mut client = Client::connect(site.running.local_addrs()[0]);
        // Three in a pipeline, one of them about a part.
        let part = format!("bytes=5-{}", len - 3);
        let get = |range: &str| format!("GET /large.bin HTTP/1.1\r\nHost: h\r\n{range}\r\n");
        client.send(&[get(""), get(&format!("Range: {part}\r\n")), get("")].concat());
        let answers: Vec<_> = (0..3).map(|_| client.answer().unwrap()).collect();
        assert_eq!(answers.iter().map(|answer| answer.status).collect::<Vec<_>>(), [200, 206, 200], "{len}");
        assert!(answers[0].body == content[..len] && answers[2].body == content[..len], "{len}");
        assert!(answers[1].body == content[5..len - 2], "{len}");
        client.send("HEAD /large.bin HTTP/1.1\r\nHost: h\r\n\r\n");
        let head = client.answer_to("HEAD").unwrap();
        assert_eq!(head.header("content-length"), Some(len.to_string().as_str()));
        client.send("GET /large.bin HTTP/1.0\r\n\r\n");
        assert!(client.answer().unwrap().body == content[..len], "{len}");
        assert!(client.answer().is_none(), "HTTP/1.0 ends the connection");
    }
    site.end();
}

/// A Unix socket takes files from the system's cache, too, and a slow reader gets them whole.
#[test]
fn large_files_arrive_whole_over_a_unix_socket() {
    let root = folder("unix");
    let content = noise(3_000_000);
    fs::write(root.join("large.bin"), &content).unwrap();
    // A path of at most 107 bytes (unix(7)).
    let socket = std::env::temp_dir().join(format!("http-files-{}.sock", std::process::id()));
    let mut options = Options::listening("127.0.0.1:0".parse().unwrap());
    options.runtime.listen = vec![format!("unix:{}", socket.display()).parse().unwrap()];
    let running = serve(routes::files(&root).unwrap(), options).unwrap();
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /large.bin HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").unwrap();
    let (mut got, mut piece) = (Vec::new(), [0; 100_000]);
    loop {
        match stream.read(&mut piece).unwrap() {
            0 => break,
            count => got.extend_from_slice(&piece[..count]),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(got.starts_with(b"HTTP/1.1 200 ") && got.ends_with(&content));
    drop(stream);
    running.shutdown_handle().trigger();
    assert!(!running.wait());
}

/// A client gets no more than the file had when it was opened, and notices if less is left of it.
#[test]
fn a_file_that_changes_while_it_is_sent() {
    let site = Site::of("a_file_that_changes_while_it_is_sent");
    let content = noise(30_000_000);
    let path = site.root.join("large.bin");
    for becomes in [40_000_000, 1_000_000] {
        fs::write(&path, &content).unwrap();
        let mut client = Client::connect(site.running.local_addrs()[0]);
        client.send("GET /large.bin HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let mut got = vec![0; 100_000];
        client.stream.read_exact(&mut got).unwrap();
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(becomes).unwrap();
        // The end may be a reset.
        let _ = client.stream.read_to_end(&mut got);
        let head = got.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
        let body = &got[head..];
        if becomes > content.len() as u64 {
            assert!(body == content);
        } else {
            assert!(body.len() < content.len(), "{}", body.len());
        }
    }
    site.end();
}

/// Ranges as RFC 9110 section 14.1 has them, for files of every length.
#[test]
fn ranges_and_the_length_of_a_file() {
    let site = Site::of("ranges_and_the_length_of_a_file");
    fs::write(site.root.join("empty.txt"), "").unwrap();
    for (range, status, body, part) in [
        ("bytes=-11", 206, "0123456789", "bytes 0-9/10"),
        ("bytes=-99999999999999999999", 206, "0123456789", "bytes 0-9/10"),
        ("bytes=00-5", 206, "012345", "bytes 0-5/10"),
        ("bytes=007-0099", 206, "789", "bytes 7-9/10"),
        ("bytes=2-99999999999999999999", 206, "23456789", "bytes 2-9/10"),
        ("Bytes=2-4", 206, "234", "bytes 2-4/10"),
        ("bytes=-0", 416, "", "bytes */10"),
        ("bytes=99999999999999999999-", 416, "", "bytes */10"),
    ] {
        let answer = site.get("/digits.txt", &format!("Range: {range}\r\n"));
        assert_eq!((answer.status, answer.text()), (status, body), "{range}");
        assert_eq!(answer.header("content-range"), Some(part), "{range}");
    }
    // No field could name a part of an empty file: it is sent as a whole, as by nginx, Apache and Go.
    for range in ["bytes=0-", "bytes=0-5", "bytes=-5", "bytes=3-"] {
        let answer = site.get("/empty.txt", &format!("Range: {range}\r\n"));
        assert_eq!((answer.status, answer.text()), (200, ""), "{range}");
        assert_eq!(answer.header("content-range"), None, "{range}");
    }
    site.end();
}

/// A 304 has the fields that the 200 would have had (RFC 9110 section 15.4.5), whichever representation is selected.
#[test]
fn a_304_repeats_the_validators_and_vary() {
    let site = Site::of("a_304_repeats_the_validators_and_vary");
    fs::write(site.root.join("big.txt"), "abcdefgh".repeat(1000)).unwrap();
    fs::write(site.root.join("packed.css"), "plain").unwrap();
    fs::write(site.root.join("packed.css.br"), "as brotli").unwrap();
    let gzip = "Accept-Encoding: gzip\r\n";
    let representations = [
        ("/digits.txt", ""),
        ("/digits.txt", gzip),
        ("/big.txt", ""),
        ("/big.txt", gzip),
        ("/packed.css", ""),
        ("/packed.css", "Accept-Encoding: br\r\n"),
    ];
    for (path, fields) in representations {
        let whole = site.get(path, fields);
        let [tag, date] = ["etag", "last-modified"].map(|name| whole.header(name).unwrap());
        let lines = |answer: &Answer, name: &str| {
            let head = answer.head.to_ascii_lowercase();
            head.lines().filter(|line| line.starts_with(&format!("{name}: "))).count()
        };
        assert_eq!(lines(&whole, "vary"), 1, "{path} {fields}: {}", whole.head);
        for condition in [
            format!("If-None-Match: {tag}"),
            format!("If-None-Match: \"other\"\r\nIf-None-Match: {tag}"),
            format!("If-None-Match: \"a, b\" , {tag}"),
            "If-None-Match: *".to_owned(),
            format!("If-Modified-Since: {date}"),
            format!("If-None-Match: {tag}\r\nRange: bytes=100000-"),
            format!("If-None-Match: {tag}\r\nIf-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT"),
        ] {
            let answer = site.get(path, &format!("{fields}{condition}\r\n"));
            assert_eq!(answer.status, 304, "{path} {fields}{condition}");
            for name in ["etag", "last-modified", "vary"] {
                assert_eq!(answer.header(name), whole.header(name), "{path} {fields}{condition}: {name}");
                assert_eq!(lines(&answer, name), 1, "{path} {fields}{condition}: {}", answer.head);
            }
            for name in ["content-type", "content-encoding", "content-length", "accept-ranges"] {
                assert_eq!(answer.header(name), None, "{path} {fields}{condition}: {name}");
            }
        }
        for condition in ["If-None-Match: \"b\"".to_owned(), format!("If-Modified-Since: {date}")] {
            let answer = site.get(path, &format!("{fields}If-None-Match: \"a\"\r\n{condition}\r\n"));
            assert_eq!((answer.status, &answer.body), (200, &whole.body), "{path} {fields}{condition}");
        }
    }
    // Lines of a list are one list, and are compared strongly where a change depends on them.
    let strong = site.get("/digits.txt", "").header("etag").unwrap().to_owned();
    for (condition, status) in [
        (format!("If-Match: \"other\"\r\nIf-Match: {strong}"), 200),
        (format!("If-Match: \"other\"\r\nIf-Match: W/{strong}"), 412),
        ("If-Match: *".to_owned(), 200),
    ] {
        site.check("/digits.txt", &format!("{condition}\r\n"), status, "0123456789");
    }
    site.end();
}

/// A file that the client has already is not sent again, and a part only beside parts of the same file.
#[test]
fn validators_of_files() {
    let site = Site::of("validators_of_files");
    let answer = site.get("/digits.txt", "");
    let (tag, date) = (answer.header("etag").unwrap(), answer.header("last-modified").unwrap());
    site.check("/digits.txt", &format!("If-None-Match: {tag}\r\n"), 304, "");
    site.check("/digits.txt", "If-None-Match: \"other\"\r\n", 200, "0123456789");
    site.check("/digits.txt", &format!("If-Modified-Since: {date}\r\n"), 304, "");
    // A part of what the client has a part of, or else the whole of what is there now.
    let if_range = |range: &str, validator: &str| format!("Range: bytes={range}\r\nIf-Range: {validator}\r\n");
    site.check("/digits.txt", &if_range("2-4", date), 206, "234");
    site.check("/digits.txt", &if_range("2-4", tag), 206, "234");
    for other in ["\"other\"", &format!("W/{tag}"), "Sat, 01 Jan 2000 00:00:00 GMT", "nonsense"] {
        site.check("/digits.txt", &if_range("2-4", other), 200, "0123456789");
        site.check("/digits.txt", &if_range("20-", other), 200, "0123456789");
    }
    site.check("/digits.txt", &if_range("20-", tag), 416, "");
    site.end();
}

/// Packed beforehand, or on the way.
#[test]
fn packed_files() {
    let site = Site::of("packed_files");
    fs::write(site.root.join("big.txt"), "abcdefgh".repeat(1000)).unwrap();
    fs::write(site.root.join("packed.css"), "plain").unwrap();
    fs::write(site.root.join("packed.css.br"), "as brotli").unwrap();
    fs::write(site.root.join("packed.css.gz"), "as gzip").unwrap();
    site.check("/packed.css", "Accept-Encoding: gzip, br\r\n", 200, "as brotli");
    site.check("/packed.css", "Accept-Encoding: gzip\r\n", 200, "as gzip");
    site.check("/packed.css", "", 200, "plain");
    let packed = site.get("/big.txt", "Accept-Encoding: gzip\r\n");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() < 1000);
    let weak = packed.header("etag").unwrap();
    site.check("/big.txt", &format!("Accept-Encoding: gzip\r\nIf-None-Match: {weak}\r\n"), 304, "");
    site.end();
}

/// Nothing outside is reached.
#[test]
fn ways_out_of_a_directory() {
    let site = Site::of("ways_out_of_a_directory");
    fs::write(site.root.parent().unwrap().join("outside.txt"), "secret").unwrap();
    for path in [
        "/../outside.txt",
        "/sub/../../outside.txt",
        "/%2e%2e/outside.txt",
        "/..%2foutside.txt",
        "/%2Fetc%2Fpasswd",
        "//etc/passwd",
        "/sub%00",
    ] {
        let answer = site.get(path, "");
        assert!(answer.status >= 300, "{path}: {}", answer.status);
    }
    site.end();
}

/// Hidden files, paths that are no file, and paths that are no name.
#[test]
fn hidden_special_and_invalid_paths_return_404() {
    let site = Site::of("hidden_special_and_invalid_paths_return_404");
    for folder in [".git", ".well-known", "piped"] {
        fs::create_dir(site.root.join(folder)).unwrap();
    }
    for secret in [".env", ".git/config"] {
        fs::write(site.root.join(secret), "secret").unwrap();
    }
    fs::write(site.root.join(".well-known/security.txt"), "contact").unwrap();
    fs::write(site.root.join("piped.css"), "plain").unwrap();
    for pipe in ["pipe", "piped.css.zst", "piped/index.html"] {
        assert!(Command::new("mkfifo").arg(site.root.join(pipe)).status().unwrap().success());
    }
    let long = |count: usize| format!("/{}", "n".repeat(count));
    for path in [
        "/.env",
        "/%2eenv",
        "/.git/config",
        "/.git",
        "/pipe",
        "/piped/",
        "//sub",
        "//sub/",
        "/sub//a%20file.txt",
        "//evil.example/%2e%2e",
        &long(255),
        &long(256),
        &long(300),
        &long(5000),
        &"/deep".repeat(1500),
    ] {
        let answer = site.get(path, "");
        assert_eq!((answer.status, answer.header("location")), (404, None), "{path}");
    }
    fs::create_dir_all(site.root.join("odd/index.html")).unwrap();
    site.check("/odd/", "", 404, "");
    site.check("/digits.txt/", "", 404, "");
    site.check("/digits.txt/below", "", 404, "");
    // A pipe is no packed file: the plain one is there.
    site.check("/piped.css", "Accept-Encoding: zstd\r\n", 200, "plain");
    site.check("/.well-known/security.txt", "", 200, "contact");
    assert_eq!(site.get("/sub", "").header("location"), Some("/sub/"));
    site.end();
}
