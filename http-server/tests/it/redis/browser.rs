//! A genuine browser without a display: the built-in page, and HTTP/2.

use serde_json::Value;
use test_peers::Browser;

use super::support::{Folder, Front};
use crate::support::{Server, tls_options};

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
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder.0) else { return };
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
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder.0) else { return };
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
