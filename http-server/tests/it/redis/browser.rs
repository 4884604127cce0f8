//! A genuine browser without a display over HTTP/2.

use test_peers::Browser;

use super::support::Folder;
use crate::support::{Server, tls_options};

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
