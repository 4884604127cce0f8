//! The answers to callers with different rights, with the embedded server.

use super::support::{Answer, Folder, Front};

#[test]
fn without_a_redis() {
    let front = Front::start(&[]);
    let answer = front.get("/get?key=foo");
    assert_eq!(answer.status, 501);
    assert!(answer.text().contains("start with --redis redis://HOST:PORT"), "{}", answer.text());
    assert_eq!(front.get("/v1/GET/foo").status, 501);
    assert_eq!(front.get("/").text(), "Hello from Rust");
}

#[test]
fn values() {
    let front = Front::start(&["--redis", "embedded", "--redis-allow", "@all"]);
    let check = |path: &str, status: u16, media_type: &str, body: &[u8]| {
        let answer = front.get(path);
        assert_eq!((answer.status, answer.body.as_slice()), (status, body), "{path}: {}", answer.text());
        assert_eq!(answer.header("content-type"), Some(media_type), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
    };
    let text = "text/plain; charset=utf-8";
    check("/get?key=foo", 404, text, b"there is no such key\n");
    check("/get", 400, text, b"a key is expected: /get?key=NAME\n");
    assert_eq!(front.put("/v1/SET/foo/bar").text(), r#"{"result":"OK"}"#);
    check("/get?key=foo", 200, text, b"bar");
    assert_eq!(front.post("/v1", r#"["SET","a b/ü",{"base64":"/wANCg=="}]"#).status, 200);
    check("/get?key=a+b%2F%C3%BC", 200, "application/octet-stream", b"\xff\0\r\n");
    assert_eq!(front.put("/v1/RPUSH/list/1").text(), r#"{"result":1}"#);
    assert_eq!(front.get("/get?key=list").status, 400, "WRONGTYPE");
    assert_eq!(front.put("/v1/SET/empty/").text(), r#"{"result":"OK"}"#);
    check("/get?key=empty", 200, text, b"");
}

/// `Allow` has the methods by which the same path can be asked, and not the one that was refused.
#[test]
fn allow_names_the_methods() {
    let front = Front::start(&["--redis", "embedded", "--redis-allow", "@all"]);
    let mut http = front.connect();
    for (method, path, allowed) in [
        ("GET", "/v1", "POST, OPTIONS"),
        ("PUT", "/v1/transaction", "POST, OPTIONS"),
        ("GET", "/v1/allowed", "POST, OPTIONS"),
        ("POST", "/v1/subscribe/c", "GET, OPTIONS"),
        ("GET", "/v1/SET/k/v", "POST, PUT, DELETE, OPTIONS"),
        ("PATCH", "/v1/GET/k", "GET, HEAD, POST, PUT, DELETE, OPTIONS"),
    ] {
        let answer = http.send(method, path, &[], b"");
        assert_eq!((answer.status, answer.header("allow")), (405, Some(allowed)), "{method} {path}");
    }
}

/// A verdict is what sending the command would give, and the command is not sent.
#[test]
fn verdicts() {
    let rules = ["--redis-allow", "@read,set,save", "--redis-keys", "shop:"];
    let front = Front::start(&[&["--redis", "embedded"][..], &rules].concat());
    let denied = r#"{"error":"the command DEL is not allowed here"}"#;
    let prefix = r#"{"error":"a key has none of the prefixes that are allowed here"}"#;
    let check = |body: &str, expected: &str| {
        let answer = front.post("/v1/allowed", body);
        assert_eq!((answer.status, answer.text().as_str()), (200, expected), "{body}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    };
    check(r#"["SET","shop:1","v"]"#, r#"{"result":true}"#);
    check(r#"["DEL","shop:1"]"#, denied);
    check(
        r#"[["SET","shop:1","v"],["DEL","shop:1"],["SET","other","v"]]"#,
        &format!("[{{\"result\":true}},{denied},{prefix}]"),
    );
    assert_eq!(front.get("/v1/EXISTS/shop:1").text(), r#"{"result":0}"#, "nothing was set");
    let resp = [("content-type", "application/x-resp")];
    let answer =
        front.connect().send("POST", "/v1/allowed", &resp, b"*1\r\n$3\r\nDEL\r\n*2\r\n$3\r\nGET\r\n$6\r\nshop:1\r\n");
    assert_eq!(answer.text(), "-ERR the command DEL is not allowed here\r\n#t\r\n");
    assert_eq!(front.post("/v1/allowed", "[]").status, 400);
    assert_eq!(
        front.connect().send("POST", "/v1/allowed", &[("host", "evil.example")], b"[\"GET\",\"k\"]").status,
        421
    );
    assert_eq!(
        front.connect().send("POST", "/v1/allowed", &[("authorization", "Bearer x")], b"[\"GET\",\"k\"]").status,
        401
    );
}

/// The files of the console have a tag each, by which a browser that has them gets no second copy.
#[test]
fn files_of_the_console() {
    let front = Front::start(&["--redis", "embedded"]);
    for path in ["/_/", "/_/main.js", "/_/page.css", "/_/openapi.json"] {
        let answer = front.get(path);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.contains("default-src 'none'") && policy.contains("require-trusted-types-for 'script'"),
            "{path}"
        );
        let tag = answer.header("etag").unwrap();
        let again = front.connect().send("GET", path, &[("if-none-match", tag)], b"");
        assert_eq!((answer.status, again.status, again.body.len()), (200, 304, 0), "{path}");
        assert_eq!(again.header("etag"), Some(tag), "{path}");
        assert_eq!(again.header("content-security-policy"), Some(policy), "{path}");
    }
    assert_eq!(front.get("/_/nothing.js").status, 404);
}

/// The server in this process has no directory: nothing is written where the process happens to run.
#[test]
fn the_embedded_server_writes_no_files() {
    let front = Front::start(&["--redis", "embedded", "--redis-allow", "@all"]);
    let files = || {
        let names = std::fs::read_dir(".").unwrap().map(|entry| entry.unwrap().file_name());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    let before = files();
    let commands = [r#"["SAVE"]"#, r#"["bgsave"]"#, r#"["BGREWRITEAOF"]"#, r#"["CONFIG","SET","appendonly","yes"]"#];
    for command in commands {
        for body in [command.to_owned(), format!(r#"[["SET","k","v"],{command}]"#)] {
            let answer = front.post("/v1", &body);
            assert_eq!(answer.status, 403, "{body}: {}", answer.text());
            assert!(answer.text().contains("writes no files"), "{body}: {}", answer.text());
        }
    }
    assert_eq!(front.post("/v1", r#"["CONFIG","SET","maxmemory","0"]"#).status, 200);
    assert_eq!(front.get("/v1/EXISTS/k").text(), r#"{"result":0}"#, "nothing was sent of what was refused");
    assert_eq!(files(), before);
}

#[test]
fn commands_and_forms() {
    let front = Front::start(&["--redis", "embedded", "--redis-allow", "@all"]);
    let mut http = front.connect();
    let mut check = |method: &str, path: &str, body: &str, status: u16, expected: &str| {
        let answer = http.send(method, path, &[], body.as_bytes());
        assert_eq!((answer.status, answer.text().as_str()), (status, expected), "{method} {path} {body}");
    };
    check("GET", "/v1/PING", "", 200, r#"{"result":"PONG"}"#);
    check("PUT", "/v1/SET/k", "a\r\n\"value\"", 200, r#"{"result":"OK"}"#);
    check("GET", "/v1/get/k", "", 200, "{\"result\":\"a\\r\\n\\\"value\\\"\"}");
    check("GET", "/v1/GET/k.raw", "", 200, "$10\r\na\r\n\"value\"\r\n");
    check("GET", "/v1/GET/nothing", "", 200, r#"{"result":null}"#);
    check("POST", "/v1", r#"["HSET","h","a",1,"b",2.50]"#, 200, r#"{"result":2}"#);
    check("GET", "/v1/HGETALL/h", "", 200, r#"{"result":{"a":"1","b":"2.50"}}"#);
    check("PUT", "/v1/SET/x%2Ejson/1", "", 200, r#"{"result":"OK"}"#);
    check("GET", "/v1/EXISTS/x%2Ejson.json", "", 200, r#"{"result":1}"#);
    check(
        "POST",
        "/v1",
        r#"[["INCR","n"],["INCR","h"],["GET","n"]]"#,
        200,
        r#"[{"result":1},{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"},{"result":"1"}]"#,
    );
    check(
        "POST",
        "/v1/transaction",
        r#"[["INCR","n"],["LPUSH","h","x"],["GET","n"]]"#,
        200,
        r#"[{"result":2},{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"},{"result":"2"}]"#,
    );
    check(
        "POST",
        "/v1/transaction",
        r#"[["INCR","n"],["GET"]]"#,
        400,
        r#"{"error":"ERR wrong number of arguments for 'get' command"}"#,
    );
    check("GET", "/v1/GET/n", "", 200, r#"{"result":"2"}"#);
    check(
        "POST",
        "/v1",
        "*2\r\n$3\r\nGET\r\n$1\r\nn\r\n*1\r\n$4\r\nPING\r\n",
        200,
        r#"[{"result":"2"},{"result":"PONG"}]"#,
    );
    check("POST", "/v1/transaction.raw", r#"[["INCR","n"],["GET","n"]]"#, 200, "*2\r\n:3\r\n$1\r\n3\r\n");
    check("GET", "/v1/NOSUCH/a", "", 403, r#"{"error":"the command NOSUCH is not allowed here"}"#);
    check("GET", "/v1/GET", "", 400, r#"{"error":"ERR wrong number of arguments for 'get' command"}"#);
    check("DELETE", "/v1/DEL/k", "", 200, r#"{"result":1}"#);
    check(
        "GET",
        "/v1",
        "",
        405,
        r#"{"error":"commands are sent by GET, POST, PUT or DELETE /v1/COMMAND/ARGUMENT/…, or POST /v1"}"#,
    );
    let answer = http.send("GET", "/v1/GET/n", &[("Accept", "application/msgpack")], b"");
    assert_eq!(answer.body, b"\x81\xa6result\xa13");
    assert_eq!(answer.header("content-type"), Some("application/vnd.msgpack"));
    let body = b"*1\r\n$4\r\nPING\r\n";
    let answer = http.send("POST", "/v1", &[("Content-Type", "application/x-resp"), ("Accept", "*/*")], body);
    assert_eq!(answer.body, b"+PONG\r\n");
}

#[test]
fn etags() {
    let front = Front::start(&["--redis", "embedded", "--redis-allow", "@all"]);
    front.put("/v1/SET/k/1");
    let tagged = |tag: &str| front.connect().send("GET", "/v1/GET/k", &[("If-None-Match", tag)], b"");
    let first = front.get("/v1/GET/k");
    let tag = first.header("etag").unwrap().to_owned();
    assert_eq!(first.header("cache-control"), Some("private, no-cache"));
    assert_eq!(first.header("allow"), None);
    assert_eq!(front.connect().send("DELETE", "/v1", &[], b"").header("allow"), Some("POST, OPTIONS"));
    let lines = [("If-None-Match", "\"x\""), ("If-None-Match", tag.as_str())];
    assert_eq!(front.connect().send("GET", "/v1/GET/k", &lines, b"").status, 304, "lines of a list are one list");
    let same = tagged(&format!("\"x\", W/{tag}"));
    assert_eq!((same.status, same.header("etag")), (304, Some(tag.as_str())));
    assert_eq!(tagged("*").status, 304);
    let head = front.connect().send("HEAD", "/v1/GET/k", &[], b"");
    assert_eq!((head.status, head.header("etag")), (200, Some(tag.as_str())));
    // A 304 has the tag of the representation that would be sent: a compressed one's is weak.
    front.put(&format!("/v1/SET/long/{}", "x".repeat(3000)));
    let asked = |tag: &str| {
        let fields = [("Accept-Encoding", "gzip"), ("If-None-Match", tag)];
        front.connect().send("GET", "/v1/GET/long", &fields, b"")
    };
    let packed = asked("\"x\"");
    let weak = packed.header("etag").unwrap();
    assert_eq!((packed.header("content-encoding"), weak.starts_with("W/")), (Some("gzip"), true));
    assert_eq!((asked(weak).status, asked(weak).header("etag")), (304, Some(weak)));
    let write = front.put("/v1/SET/k/2");
    assert_eq!((write.header("etag"), write.header("cache-control")), (None, Some("no-store")));
    assert_eq!(tagged(&tag).status, 200, "the value has changed");
    assert_eq!(front.get("/v1/GET/k.msgpack").header("etag").map(|other| other == tag), Some(false));
}

const RULES: &str = r#"
[anonymous]
commands = ["get", "ping"]
keys = ["public:"]

[[token]]
name = "shop"
secret = "fedcba9876543210"
commands = ["@read", "@write", "-del"]
keys = ["shop:"]
"#;

/// Attempts that go through HTTP; those on command names and key positions are a table beside the rules.
#[test]
fn rules() {
    let folder = Folder::new();
    let front = Front::start(&["--redis", "embedded", "--redis-access", &folder.file("rules.toml", RULES)]);
    let mut http = front.connect();
    let mut check = |token: &str, request: &str, body: &str, status: u16| -> Answer {
        let (method, path) = request.split_once(' ').unwrap();
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", bearer.as_str())];
        let answer = http.send(method, path, if token.is_empty() { &[] } else { &headers }, body.as_bytes());
        assert_eq!(answer.status, status, "{token} {request} {body}: {}", answer.text());
        answer
    };
    let shop = "fedcba9876543210";
    check(shop, "PUT /v1/SET/shop:1", "x", 200);
    check(shop, "GET /get?key=shop:1", "", 200);
    check("", "GET /get?key=shop:1", "", 403);
    check("", "GET /get?key=public:%00", "", 404);
    check("", "GET /get?key=public:&key=shop:1", "", 404);
    check("", "GET /get?key=%2573hop:1", "", 403);
    check("", "GET /v1/GET/shop:1", "", 403);
    check("", "GET /v1/%47%45%54/shop:1", "", 403);
    check("", "GET /v1/g%65t/public:1", "", 200);
    check("", "GET /v1/MGET/public:1", "", 403);
    check("", "GET /v1/GET%20/public:1", "", 403);
    check("", "GET /v1/GET%0d%0aDEL/public:1", "", 403);
    check("", "GET /v1//GET/public:1", "", 400);
    check("", "POST /v1/GET/public:1", "shop:1", 400);
    check("", "POST /v1", r#"["GET","shop:1"]"#, 403);
    check("", "POST /v1", r#"[["GET","public:1"],["GET","shop:1"]]"#, 403);
    check("", "POST /v1", r#"["\u0047ET","public:1"]"#, 200);
    check("", "POST /v1", r#"[["MULTI"],["GET","public:1"],["EXEC"]]"#, 403);
    check("", "POST /v1", r#"["GET",["public:1"]]"#, 400);
    check("", "POST /v1", r#"[[["GET","public:1"]]]"#, 400);
    check("", "POST /v1", "*1\r\n$5\r\nMULTI\r\n*2\r\n$3\r\nGET\r\n$8\r\npublic:1\r\n*1\r\n$4\r\nEXEC\r\n", 403);
    check("", "POST /v1", "*2\r\n$3\r\nGET\r\n$8\r\npublic:1\r\nDEL public:1\r\n", 400);
    check("", "POST /v1/transaction", r#"[["GET","public:1"],["EXEC"],["SET","public:1","x"]]"#, 403);
    check("", "POST /v1/transaction", r#"[["SET","public:1","x"]]"#, 403);
    check(shop, "POST /v1/transaction", r#"[["SET","shop:2","x"],["GET","shop:2"]]"#, 200);
    check(shop, "GET /v1/DEL/shop:1", "", 403);
    check(shop, "GET /v1/EVAL/return%201/0", "", 403);
    check(shop, "GET /v1/CONFIG/GET/*", "", 403);
    check(shop, "GET /v1/XREAD/BLOCK/0/STREAMS/shop:1/$", "", 403);
    let denied = check("wrong-token-of-some-length", "GET /v1/GET/shop:1", "", 401);
    assert_eq!(denied.header("www-authenticate"), Some("Bearer"));
    assert!(!denied.text().contains("wrong-token"), "a token is not repeated");
    // Nothing that a caller sends comes back as a header or a line of the log.
    let odd = check("", "GET /v1/%0d%0aSet-Cookie:%20a=b/x", "", 403);
    assert_eq!(odd.text(), r#"{"error":"the command \\r\\nSET-COOKIE: A=B is not allowed here"}"#);
    assert_eq!(odd.header("set-cookie"), None);
}

#[test]
fn read_only_unless_told_otherwise() {
    let front = Front::start(&["--redis", "embedded"]);
    assert_eq!(front.get("/v1/GET/k").status, 200);
    for command in ["SET/k/v", "DEL/k", "FLUSHALL", "KEYS/*", "CONFIG/GET/*", "EVAL/return%201/0", "PUBLISH/c/m"] {
        assert_eq!(front.get(&format!("/v1/{command}")).status, 403, "{command}");
    }
}

#[test]
fn other_origins() {
    let flags = ["--redis", "embedded", "--redis-allow", "@all", "--cors-origin", "https://app.example"];
    let (open, closed) = (Front::start(&flags), Front::start(&flags[..4]));
    let check =
        |front: &Front, method: &str, path: &str, headers: &[(&str, &str)], status: u16, allowed: Option<&str>| {
            let answer = front.connect().send(method, path, headers, b"");
            assert_eq!(answer.status, status, "{method} {path} {headers:?}: {}", answer.text());
            assert_eq!(answer.header("access-control-allow-origin"), allowed, "{method} {path} {headers:?}");
        };
    let (app, other) = (("Origin", "https://app.example"), ("Origin", "https://evil.example"));
    check(&open, "GET", "/v1/GET/k", &[app], 200, Some("https://app.example"));
    check(&open, "GET", "/get?key=k", &[app], 404, Some("https://app.example"));
    check(&open, "GET", "/v1/GET/k", &[other], 200, None);
    check(&open, "OPTIONS", "/v1", &[app], 204, Some("https://app.example"));
    check(&open, "OPTIONS", "/v1/SET/k/v", &[other], 204, None);
    check(&open, "POST", "/v1/SET/k/v", &[app], 200, Some("https://app.example"));
    check(&open, "POST", "/v1/SET/k/v", &[other], 403, None);
    check(&closed, "PUT", "/v1/SET/k/v", &[other], 403, None);
    check(&closed, "PUT", "/v1/SET/k/v", &[("Origin", "null")], 403, None);
    check(&closed, "PUT", "/v1/SET/k/v", &[("Sec-Fetch-Site", "cross-site")], 403, None);
    check(&closed, "PUT", "/v1/SET/k/v", &[("Sec-Fetch-Site", "none")], 200, None);
    check(&closed, "PUT", "/v1/SET/k/v", &[("Origin", "http://localhost")], 200, None);
    check(&closed, "PUT", "/v1/SET/k/v", &[], 200, None);
    check(&closed, "GET", "/v1/GET/k", &[app], 200, None);
}

#[test]
fn limits() {
    let flags =
        ["--redis", "embedded", "--redis-allow", "@all", "--redis-max-request", "2000", "--redis-max-answer", "1000"];
    let front = Front::start(&flags);
    assert_eq!(front.post("/v1/SET/k", &"x".repeat(2000)).status, 200);
    assert_eq!(front.post("/v1/SET/k", &"x".repeat(2001)).status, 413);
    let long = front.get("/v1/GET/k");
    assert_eq!(
        (long.status, long.text().as_str()),
        (502, r#"{"error":"the answer is longer than the limit of 1000 bytes"}"#)
    );
    assert_eq!(front.get("/v1/ECHO/x").status, 200);
}

/// An answer that is made on the spot is the router's, which is asked when a request has an id.
#[test]
fn names_and_what_is_none() {
    let front = Front::start(&["--redis", "embedded"]);
    let mut http = front.connect();
    let mut check = |path: &str, is_name: bool| {
        let [plain, routed] = [&[][..], &[("x-request-id", "7")]].map(|headers| http.send("GET", path, headers, b""));
        assert_eq!((plain.status, &plain.body), (routed.status, &routed.body), "{path}");
        assert_eq!(plain.header("content-type"), routed.header("content-type"), "{path}");
        assert_eq!(plain.text().starts_with("Hello, visitor!"), is_name, "{path}: {}", plain.text());
    };
    let long = |len| format!("/{}", "n".repeat(len));
    for name in ["/ann", "/a:b@c;d=e,f", "/~-._!$&'()*+", "/k%41", "/%2F", "/getter", "/V1", "/ann?get", "/z%C3%BC"] {
        check(name, true);
    }
    [1, 128, 129, 2000].map(long).iter().for_each(|name| check(name, true));
    for other in ["/", "/json", "/get", "/get?key=no", "/v1", "/_", "/healthz", "/readyz", "/ann/", "/ann/b", "/%FF"] {
        check(other, false);
    }
    let document: serde_json::Value = serde_json::from_str(&front.get("/_/openapi.json").text()).unwrap();
    let paths = document["paths"].as_object().unwrap().keys();
    let short: Vec<_> = paths.filter(|path| path[1..].find('/').is_none()).collect();
    assert!(short.len() >= 2, "{short:?}");
    short.into_iter().for_each(|path| check(path, false));
}
