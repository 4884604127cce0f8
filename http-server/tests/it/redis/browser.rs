//! A genuine browser without a display: the built-in page, and HTTP/2.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::support::{Folder, Front};
use crate::support::{Server, tls_options};

/// A browser under WebDriver.
struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// Its profile, gone with it.
    _profile: Folder,
}

impl Browser {
    fn start() -> Option<Self> {
        let driver = Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut driver) = driver else {
            test_peers::skip("there is no chromedriver");
            return None;
        };
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines
            .find_map(|line| line.unwrap().rsplit_once("successfully on port ")?.1.trim_end_matches('.').parse().ok());
        // Its pipe is read to the end, so that it never blocks.
        std::thread::spawn(move || lines.for_each(drop));
        let profile = Folder::new();
        let mut browser = Self { driver, port: port.unwrap(), session: String::new(), _profile: profile };
        let data = format!("--user-data-dir={}", browser._profile.0.display());
        let flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            // Of tests' servers.
            "--ignore-certificate-errors",
            &data,
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": flags}}}});
        let session = browser.ask("POST", "/session", &wanted);
        browser.session = format!("/session/{}", session["sessionId"].as_str().unwrap());
        Some(browser)
    }

    fn open(&self, url: &str) {
        self.ask("POST", &format!("{}/url", self.session), &json!({"url": url}));
    }

    fn run(&self, script: &str) -> Value {
        self.ask("POST", &format!("{}/execute/sync", self.session), &json!({"script": script, "args": []}))
    }

    /// Waits until a script's text has this in it.
    fn wait(&self, script: &str, expected: &str) {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let value = self.run(script);
            let text = value.as_str().unwrap_or_default();
            if text.contains(expected) {
                return;
            }
            assert!(Instant::now() < deadline, "{script}: {value}, not {expected}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let body = body.to_string();
        let len = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len}\r\n\r\n"
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // The driver leaves the connection open.
        let mut reader = BufReader::new(stream);
        let (mut head, mut len) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0, "the driver hung up: {head}");
        }
        for line in head.lines() {
            if let Some((_, value)) =
                line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            {
                len = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; len];
        reader.read_exact(&mut body).unwrap();
        let value: Value = serde_json::from_slice(&body).unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {value}");
        value["value"].clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.ask("DELETE", &self.session, &json!({}));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

const RULES: &str = r#"
[anonymous]
commands = ["@read"]

[[token]]
name = "page"
secret = "fedcba9876543210"
commands = ["@all"]
"#;

#[test]
fn the_page_works() {
    let Some(browser) = Browser::start() else { return };
    let folder = Folder::new();
    let front = Front::start(&["--redis", "embedded", "--redis-access", &folder.file("rules.toml", RULES)]);
    browser.open(&format!("http://{}/_/", front.addr));
    let send = |lines: &str, transaction: bool| {
        let lines = Value::from(lines);
        browser.run(&format!(
            "document.getElementById('lines').value = {lines}; document.getElementById('transaction').checked = {transaction}; \
             document.getElementById('answer').textContent = ''; \
             document.querySelector('#commands button').click();"
        ));
    };
    let answer = "return document.getElementById('answer').textContent";
    send("PING", false);
    browser.wait(answer, "200\n{\"result\":\"PONG\"}");
    send("SET k v", false);
    browser.wait(answer, "403\n{\"error\":\"the command SET is not allowed here\"}");
    browser.run("document.getElementById('token').value = 'fedcba9876543210'");
    send("SET k \"<b>a</b> \\\"b\\\"\\n\\xff\"\nSTRLEN k", false);
    browser.wait(answer, "200\n[{\"result\":\"OK\"},{\"result\":14}]");
    send("SET k '<img src=x onerror=alert(1)>'\nGET k", true);
    browser.wait(answer, "200\n[{\"result\":\"OK\"},{\"result\":\"<img src=x onerror=alert(1)>\"}]");
    assert_eq!(browser.run("return document.images.length"), 0, "a value is text");
    send("GET \"k", false);
    browser.wait(answer, "quotes that do not end");
    browser.run("document.querySelector('#subscription button').click()");
    let events = "return document.getElementById('events').textContent";
    browser.wait(events, "{\"event\":\"subscribed\",\"channel\":\"news\"}");
    send("PUBLISH news \"hello there\"", false);
    browser.wait(events, "{\"event\":\"message\",\"channel\":\"news\",\"message\":\"hello there\"}");
    browser.run("document.getElementById('stop').click()");
    let loaded = "return performance.getEntriesByType('resource').map((entry) => entry.name).join(' ')";
    let origin = format!("http://{}/", front.addr);
    let loaded = browser.run(loaded);
    assert!(loaded.as_str().unwrap().split(' ').all(|name| name.starts_with(&origin)), "{loaded}");
    let refused = browser.run("const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s); return window.ran ?? 0");
    assert_eq!(refused, 0, "the policy lets no script in");
}

#[test]
fn http2_over_tls() {
    let Some(browser) = Browser::start() else { return };
    let server = Server::with(tls_options());
    // The certificate's name.
    browser.open(&format!("https://localhost:{}/", server.addr.port()));
    browser.wait("return document.body.textContent", "Hello from Rust");
    let protocols =
        "return performance.getEntries().map((entry) => entry.nextHopProtocol).filter((name) => name).join(' ')";
    browser.run(
        "const same = (got, expected) => { if (got !== expected) throw new Error(`${got.slice(0, 99)} for ${expected.slice(0, 99)}`) };
         const text = async (path, init) => (await fetch(path, init)).text();
         const all = async () => {
             const many = await Promise.all(Array.from({ length: 300 }, (_, n) => text(`/n${n}`)));
             many.forEach((got, n) => same(got, `Hello, visitor! You've requested: /n${n}`));
             const body = 'x'.repeat(1500000);
             same(await text('/t/echo', { method: 'POST', body }), body);
             same(await text('/t/big'), 'x'.repeat(8 * 1024 * 1024));
             same(await text('/t/stream'), 'onetwo');
             same(await text('/t/text'), 'hello world '.repeat(1000));
             const gone = new AbortController();
             const late = text('/t/slow', { signal: gone.signal }).catch((error) => error.name);
             gone.abort();
             same(await late, 'AbortError');
             return 'all is well';
         };
         window.outcome = '';
         all().then((outcome) => { window.outcome = outcome }, (error) => { window.outcome = String(error) });",
    );
    browser.wait("return window.outcome || 'waits'", "all is well");
    let seen = browser.run(protocols);
    assert!(seen.as_str().unwrap().split(' ').all(|name| name == "h2"), "{seen}");
}
