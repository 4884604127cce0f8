//! The console at `/_/` in a genuine browser without a display.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use test_peers::Browser;

use super::support::{Folder, Front};

const TOKEN: &str = "fedcba9876543210";

const RULES: &str = r#"
[anonymous]
commands = ["@read"]

[[token]]
name = "console"
secret = "fedcba9876543210"
commands = ["@all", "ft.create"]
"#;

/// WebDriver's code points of keys without a character.
const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";
const END: &str = "\u{e010}";
const UP: &str = "\u{e013}";
const RIGHT: &str = "\u{e014}";
const DOWN: &str = "\u{e015}";

/// A browser with the console open, and the server behind it.
struct Console {
    browser: Browser,
    front: Front,
    _folder: Folder,
}

impl Console {
    /// Without a token at first; `None` where there is no browser.
    fn start(rules: &str) -> Option<Self> {
        let folder = Folder::new();
        let browser = Browser::start(&folder.0)?;
        // So long that a busy machine's stalls are no answer.
        let flags = ["--redis", "embedded", "--redis-timeout", "30000", "--redis-access"];
        let front = Front::start(&[&flags[..], &[&folder.file("rules.toml", rules)]].concat());
        let console = Self { browser, front, _folder: folder };
        console.browser.open(&format!("http://{}/_/", console.front.addr));
        Some(console)
    }

    /// Runs commands as the caller that may do everything.
    fn send(&self, commands: &Value) -> String {
        let bearer = format!("Bearer {TOKEN}");
        let headers = [("content-type", "application/json"), ("authorization", bearer.as_str())];
        let answer = self.front.connect().send("POST", "/v1", &headers, commands.to_string().as_bytes());
        assert!(answer.status == 200 && !answer.text().contains("{\"error\""), "{}", answer.text());
        answer.text()
    }

    /// Waits until a command has this reply.
    #[track_caller]
    fn becomes(&self, command: &Value, expected: &str) {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let reply = self.send(command);
            if reply == format!("{{\"result\":{expected}}}") {
                return;
            }
            assert!(Instant::now() < deadline, "{command}: {reply}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn use_token(&self) {
        self.browser
            .run(&format!("const t = document.getElementById('token'); t.value = '{TOKEN}'; t.form.requestSubmit()"));
        self.wait("status", "The tab keeps the token");
    }

    /// Waits until the element of this id shows all of these texts.
    #[track_caller]
    fn wait(&self, id: &str, expected: &str) {
        self.browser.wait(&format!("return document.getElementById('{id}').innerText"), expected);
    }

    fn texts(&self, selector: &str) -> Vec<String> {
        let script =
            format!("return [...document.querySelectorAll({})].map((each) => each.innerText)", json!(selector));
        self.browser.run(&script).as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    }

    /// Opens a key by the address, and waits until its view has all these texts.
    #[track_caller]
    fn open(&self, key: &[u8], expected: &[&str]) {
        let name = key.iter().fold(String::new(), |mut name, byte| {
            write!(name, "%{byte:02x}").unwrap();
            name
        });
        // A closed key is not drawn again by an action on its way. From another fragment, so that the change is one.
        self.browser.run(
            "[...document.querySelectorAll('#value button')].find((each) => each.textContent === 'Close')?.click();
             document.querySelector('#value').replaceChildren(); location.hash = '#keys'",
        );
        self.browser.run(&format!("location.hash = '#keys/{name}'"));
        expected.iter().for_each(|text| self.wait("value", text));
    }

    fn click(&self, selector: &str, label: &str) {
        let (selector, label) = (json!(selector), json!(label));
        let found = format!("[...document.querySelectorAll({selector})].find((each) => each.textContent === {label})");
        self.browser.wait(&format!("return {found} ? 'there' : ''"), "there");
        self.browser.run(&format!("{found}.click()"));
    }

    /// Fills the form whose button has this label, and submits it.
    fn submit(&self, label: &str, texts: &[&str]) {
        let form = format!(
            "[...document.querySelectorAll('form')].find((form) => \
             [...form.querySelectorAll('button')].some((button) => button.textContent === {}))",
            json!(label)
        );
        self.browser.wait(&format!("return {form} ? 'there' : ''"), "there");
        self.browser.run(&format!(
            "const form = {form}; const fields = form.querySelectorAll('input, textarea'); \
             {}.forEach((text, at) => {{ fields[at].value = text; }}); form.requestSubmit()",
            json!(texts)
        ));
    }

    /// Sends a line of the command line.
    fn enter(&self, line: &str) {
        let script = "document.getElementById('line').value = LINE; document.getElementById('cli').requestSubmit()";
        self.browser.run(&script.replace("LINE", &json!(line).to_string()));
    }
}

/// One key of each type.
fn samples() -> Value {
    json!([
        ["SET", "text", "hello\nworld"],
        ["SET", "json", "{\"id\":12345678901234567890,\"list\":[],\"deep\":{\"a\":1.50}}"],
        ["SET", "bytes", {"base64": "AP8K"}],
        ["SETEX", "lease", "3600", "x"],
        ["HSET", "hash", "name", "Ann", "mail", "a@example.test"],
        ["HEXPIRE", "hash", "900", "FIELDS", "1", "mail"],
        ["RPUSH", "list", "one", "two"],
        ["SADD", "set", "red", "green"],
        ["ZADD", "zset", "1.5", "ann", "2", "bob"],
        ["XADD", "stream", "1-1", "item", "lamp"],
        ["XGROUP", "CREATE", "stream", "shipping", "0"],
        ["PFADD", "visitors", "a", "b", "c"],
        ["JSON.SET", "document", "$", "{\"name\":\"lamp\",\"price\":40}"],
        ["BF.RESERVE", "bloom", "0.01", "1000"],
        ["BF.ADD", "bloom", "ann"],
        ["FT.CREATE", "shop", "PREFIX", "1", "item:", "SCHEMA", "title", "TEXT"],
        ["HSET", "item:1", "title", "red lamp"]
    ])
}

#[test]
fn each_type_is_shown() {
    let Some(console) = Console::start(RULES) else { return };
    console.send(&samples());
    console.browser.run("document.getElementById('search').requestSubmit()");
    console.wait("keys-status", "13 keys");
    console.wait("keys", "MBbloom--");
    for (key, expected) in [
        ("text", &["string", "hello\nworld", "no expiry"][..]),
        ("json", &["\"id\": 12345678901234567890,\n  \"list\": [],\n  \"deep\": {\n    \"a\": 1.50\n  }"]),
        ("bytes", &["00000000  00 ff 0a"]),
        ("lease", &["expires in 59 m"]),
        ("hash", &["2 elements", "name\tAnn", "a@example.test\t14 m"]),
        ("list", &["0\tone", "1\ttwo"]),
        ("set", &["red", "green"]),
        ("zset", &["0\t1.5\tann", "1\t2\tbob"]),
        ("stream", &["1-1", "item: lamp", "shipping\t0\t0\t0-0"]),
        ("visitors", &["HyperLogLog: about 3 different elements"]),
        ("document", &["ReJSON-RL", "\"name\": \"lamp\",\n  \"price\": 40"]),
        ("bloom", &["Capacity\t1000", "Number of items inserted\t1"]),
        ("missing", &["The key does not exist."]),
    ] {
        console.open(key.as_bytes(), expected);
        if key != "missing" {
            console.wait("value", "read-only");
        }
        let changes = ["Delete", "Edit", "Expire", "Persist", "Set", "Add", "Push", "Append"];
        let buttons = console.texts("#value button");
        assert!(!buttons.iter().any(|label| changes.contains(&label.as_str())), "{key}: {buttons:?}");
    }
    console.click("[role=tab]", "Search");
    console.wait("panel-search", "title\ttitle\tTEXT");
    console.submit("Search", &["red"]);
    console.wait("hits", "title: red lamp");
    console.click("#hits button", "item:1");
    console.wait("value", "red lamp");
}

#[test]
fn each_type_is_changed() {
    let Some(console) = Console::start(RULES) else { return };
    console.send(&samples());
    console.use_token();
    let edit = |key: &str, expected: &str, text: &str| {
        console.open(key.as_bytes(), &[expected]);
        console.click("#value button", "Edit");
        console.submit("Save", &[text]);
    };
    edit("text", "world", "new\ttext");
    console.becomes(&json!(["GET", "text"]), r#""new\ttext""#);
    edit("bytes", "00 ff 0a", r#""\x00\xfe""#);
    console.becomes(&json!(["GET", "bytes"]), r#"{"base64":"AP4="}"#);
    edit("lease", "expires", "y");
    console.becomes(&json!(["GET", "lease"]), r#""y""#);
    assert_ne!(console.send(&json!(["TTL", "lease"])), "{\"result\":-1}", "the value changes, its expiry does not");
    edit("document", "lamp", r#"{"name":"desk"}"#);
    console.becomes(&json!(["JSON.GET", "document"]), r#""{\"name\":\"desk\"}""#);
    console.open(b"hash", &["Ann"]);
    console.click("#value td button", "Ann");
    console.click("dialog button", "Edit");
    console.submit("Save", &["Eve"]);
    console.becomes(&json!(["HGET", "hash", "name"]), r#""Eve""#);
    for (key, label, texts, command, expected) in [
        ("hash", "Set", &["new", "1"][..], json!(["HGET", "hash", "new"]), r#""1""#),
        ("list", "Push", &["three"], json!(["LRANGE", "list", "2", "-1"]), r#"["three"]"#),
        ("set", "Add", &["blue"], json!(["SISMEMBER", "set", "blue"]), "1"),
        ("zset", "Add", &["7", "eve"], json!(["ZSCORE", "zset", "eve"]), "7"),
        ("stream", "Append", &["item", "desk"], json!(["XLEN", "stream"]), "2"),
        ("bloom", "Add", &["bob"], json!(["BF.EXISTS", "bloom", "bob"]), "true"),
        ("set", "Expire", &["100"], json!(["EXPIRE", "set", "1000000", "LT"]), "0"),
    ] {
        console.open(key.as_bytes(), &[label]);
        console.submit(label, texts);
        console.becomes(&command, expected);
    }
    console.open(b"set", &["Persist"]);
    console.click("#value button", "Persist");
    console.becomes(&json!(["TTL", "set"]), "-1");
    // A question stands before every deletion.
    console.open(b"set", &["red"]);
    let delete_red = "document.querySelector('#value [aria-label=\"Delete red\"]').click()";
    console.browser.run(delete_red);
    console.wait("dialog-title", "Delete red?");
    console.click("dialog button", "Close");
    console.browser.run(delete_red);
    console.click("dialog button", "Delete");
    console.becomes(&json!(["SISMEMBER", "set", "red"]), "0");
    console.click("#value > .bar > button", "Delete");
    console.wait("dialog-title", "Delete set?");
    console.click("dialog button", "Delete");
    console.becomes(&json!(["EXISTS", "set"]), "0");
    console.wait("value", "Choose a key.");
    // An error of Redis is shown.
    console.open(b"zset", &["ann"]);
    console.submit("Add", &["no number", "x"]);
    console.wait("status", "ERR value is not a valid float");
}

/// Names and values that a page could take for its own HTML or quote wrongly, or that reorder the text beside them.
#[test]
fn hostile_names_and_values() {
    let Some(console) = Console::start(RULES) else { return };
    let hostile = [
        "<img src=x onerror=\"window.hit=1\">",
        "</pre><script>window.hit=1</script>",
        "\" onfocus=window.hit=1 autofocus x=\"",
        "javascript:window.hit=1",
        "__proto__",
        "constructor",
        "a\r\nb\0\u{1b}[2J",
        "\u{202e}gnp.exe",
        "${window.hit=1}{{window.hit=1}}",
        "",
    ];
    console.use_token();
    for text in hostile {
        console.send(&json!([
            ["DEL", format!("s{text}"), format!("h{text}")],
            ["SET", format!("s{text}"), text],
            ["HSET", format!("h{text}"), text, text],
            ["XADD", "stream", "*", text, text],
            ["PFADD", "unread", text]
        ]));
        let shown = text.replace('\r', "\\r").replace('\n', "\\n").replace('\0', "\\x00").replace('\u{1b}', "\\x1b");
        let shown = shown.replace('\u{202e}', "\\xe2\\x80\\xae");
        console.open(format!("s{text}").as_bytes(), &[&format!("s{shown}"), "string"]);
        console.open(format!("h{text}").as_bytes(), &[&format!("h{shown}"), "1 elements", &shown]);
        let value = console.browser.run("return document.querySelector('#value td button').textContent");
        assert_eq!(value, if shown.is_empty() { "\"\"" } else { &shown }, "{text}");
    }
    console.open(b"stream", &["10 elements", "<img src=x"]);
    console.send(&json!([["SET", {"base64": "/wD+"}, {"base64": "/wD+"}], ["FT.CREATE", "<b>index</b>", "SCHEMA", "<i>", "TEXT"]]));
    console.open(b"\xff\x00\xfe", &["\"\\xff\\x00\\xfe\"", "00000000  ff 00 fe"]);
    // So high that all rows are in view.
    console.browser.appear(1200, 1200, "light");
    console
        .browser
        .run("document.getElementById('pattern').value = '*'; document.getElementById('search').requestSubmit()");
    console.wait("keys-status", "23 keys");
    console.wait("keys", "<img src=x onerror");
    console.click("[role=tab]", "Search");
    console.wait("panel-search", "<i>");
    console.click("[role=tab]", "Messages");
    console.submit("Subscribe", &["<b>news</b>"]);
    console.wait("subscriptions", "listening");
    console.send(&json!(["PUBLISH", "<b>news</b>", hostile[0]]));
    console.wait("messages", hostile[0]);
    console.click("[role=tab]", "Commands");
    console.enter("ECHO '<img src=x onerror=window.hit=1>'");
    console.wait("log", "\"<img src=x onerror=window.hit=1>\"");
    console.enter("<b>x</b>");
    console.wait("log", "(error) the command <B>X</B> is not allowed here");
    let foreign =
        "return document.querySelectorAll('img, b, i, body script, pre *, td script').length + (window.hit ?? 0)";
    assert_eq!(console.browser.run(foreign), 0, "names and values are text");
    // And if a line of the page put HTML somewhere after all:
    let forced = "try { document.body.innerHTML = '<p>'; return 'taken' } catch (error) { return error.name }";
    assert_eq!(console.browser.run(forced), "TypeError", "the policy lets no text become HTML");
    let loaded = console.browser.run("return performance.getEntriesByType('resource').map((entry) => entry.name)");
    let origin = format!("http://{}/", console.front.addr);
    assert!(loaded.as_array().unwrap().iter().all(|name| name.as_str().unwrap().starts_with(&origin)), "{loaded}");
}

/// A walk through all keys: each page in a few milliseconds, and never more elements than rows in view.
#[test]
fn a_hundred_thousand_keys() {
    let Some(console) = Console::start(RULES) else { return };
    for thousands in 0..100 {
        let keys = (thousands * 1000..(thousands + 1) * 1000).map(|key| json!(["SET", format!("key:{key:06}"), "v"]));
        console.send(&Value::Array(keys.collect()));
    }
    console.browser.run(
        "window.pages = []; window.rows = 0;
         const line = document.getElementById('keys-status');
         new MutationObserver(() => {
             window.pages.push(Number(line.dataset.ms));
             window.rows = Math.max(window.rows, document.querySelectorAll('#keys .row').length);
         }).observe(line, { childList: true });
         document.getElementById('search').requestSubmit();
         window.walk = setInterval(() => { const box = document.getElementById('keys'); box.scrollTop = box.scrollHeight }, 20);",
    );
    let all = "const text = document.getElementById('keys-status').textContent; return text.startsWith('100,000 keys,') ? 'all' : text";
    let deadline = Instant::now() + Duration::from_secs(120);
    while console.browser.run(all) != "all" {
        assert!(Instant::now() < deadline, "{}", console.browser.run(all));
        std::thread::sleep(Duration::from_millis(100));
    }
    let pages = console.browser.run("clearInterval(window.walk); return window.pages.filter((ms) => ms >= 0)");
    let mut pages: Vec<_> = pages.as_array().unwrap().iter().map(|ms| ms.as_u64().unwrap()).collect();
    pages.sort_unstable();
    let median = pages[pages.len() / 2];
    println!("{} pages: median {median} ms, longest {} ms", pages.len(), pages[pages.len() - 1]);
    // 5 ms where nothing else runs.
    assert!(median < 1000, "{pages:?}");
    let rows = console.browser.run("return window.rows").as_u64().unwrap();
    assert!((1..200).contains(&rows), "{rows} rows are elements");
    for (pattern, expected) in
        [("key:0999*", "100 keys"), ("key:099999", "1 key"), ("nothing*", "0 keys"), ("none", "There is no key")]
    {
        console.browser.run(&format!(
            "const p = document.getElementById('pattern'); p.value = '{pattern}'; p.form.requestSubmit()"
        ));
        let go_on = "const more = document.getElementById('continue'); if (!more.hidden) more.click();";
        console.browser.wait(&format!("{go_on} return document.getElementById('keys-status').textContent"), expected);
    }
}

/// A request is slow, and the search after the next one begins meanwhile.
#[test]
fn answers_to_an_earlier_search_are_not_shown() {
    let Some(console) = Console::start(RULES) else { return };
    console.send(&json!([["SET", "a", "1"], ["SET", "b", "2"], ["SET", "c", "3"]]));
    console.use_token();
    console.wait("keys-status", "3 keys");
    console.browser.run(
        "const quick = window.fetch;
         window.fetch = async (path, options) => {
             const answer = await quick(path, options);
             const isSlow = options.body && new TextDecoder().decode(options.body).includes('DBSIZE');
             if (isSlow) await new Promise((resolve) => setTimeout(resolve, 500));
             return answer;
         };
         const search = document.getElementById('search');
         search.requestSubmit();
         setTimeout(() => search.requestSubmit(), 250);
         setTimeout(() => { window.all = 'answered' }, 2000)",
    );
    console.browser.wait("return window.all ?? ''", "answered");
    console.wait("keys-status", "3 keys");
    let rows = "return String(document.querySelectorAll('#keys [role=option]').length)";
    console.browser.wait(rows, "3");
}

#[test]
fn by_keyboard() {
    let Some(console) = Console::start(RULES) else { return };
    let browser = &console.browser;
    console.send(&json!([["SET", "a", "1"], ["SET", "b", "2"], ["SET", "c", "3"]]));
    console.use_token();
    console.wait("keys-status", "3 keys");
    let focus = || {
        let script = "const e = document.activeElement; return e.id || e.getAttribute('aria-label') || e.textContent";
        browser.run(script).as_str().unwrap().to_owned()
    };
    browser.run("document.getElementById('tab-keys').focus()");
    let walk: Vec<_> = (0..7).map(|_| (browser.press(TAB), focus()).1).collect();
    assert_eq!(walk, ["token", "Use token", "pattern", "type", "List", "keys", "OpenAPI"]);
    let outline = "return getComputedStyle(document.activeElement).outlineStyle";
    assert_eq!(browser.run(outline), "solid", "the focus is visible");
    browser.press("/");
    assert_eq!(focus(), "pattern");
    browser.press(&format!("{TAB}{TAB}{TAB}{DOWN}{DOWN}{END}{UP}{ENTER}"));
    browser.wait("return document.querySelector('#keys [aria-selected=true]')?.ariaPosInSet", "2");
    let active = "return document.getElementById(document.getElementById('keys').getAttribute('aria-activedescendant')).ariaPosInSet";
    assert_eq!(browser.run(active), "2");
    console.wait("value", "Delete");
    // Esc closes a dialog first, and then the value.
    browser
        .run("[...document.querySelectorAll('#value button')].find((each) => each.textContent === 'Delete').focus()");
    browser.press(ENTER);
    console.wait("dialog-title", "Delete ");
    browser.press(ESCAPE);
    browser.wait("return document.querySelector('dialog') ? '' : 'closed'", "closed");
    assert_eq!(focus(), "Delete", "the focus returns");
    browser.press(ESCAPE);
    console.wait("value", "Choose a key.");
    assert_eq!(focus(), "keys");
    // Arrows choose a tab, and a slash leads back.
    browser.run("document.getElementById('tab-keys').focus()");
    browser.press(&format!("{RIGHT}{RIGHT}{RIGHT}{RIGHT}"));
    assert_eq!(focus(), "tab-server");
    assert_eq!(browser.run("return location.hash"), "#server");
    browser.press("/");
    assert_eq!(focus(), "pattern");
    let nameless = "return [...document.querySelectorAll('input, select, textarea, button, [role]')].filter((each) => \
                    !(each.ariaLabel || each.textContent || each.labels?.length || each.getAttribute('aria-labelledby') || \
                      ['presentation', 'status'].includes(each.role))).map((each) => each.outerHTML)";
    assert_eq!(browser.run(nameless), json!([]), "everything has a name");
}

#[test]
fn the_command_line() {
    let Some(console) = Console::start(RULES) else { return };
    console.click("[role=tab]", "Commands");
    console.enter("SET k v");
    console.wait("log", "> SET k v\n(error) the command SET is not allowed here");
    console.use_token();
    console.click("[role=tab]", "Commands");
    for (line, expected) in [
        ("SET k \"a\\xff\\n\\\"\"", "OK"),
        ("GET k", "\"a\\xff\\n\\\"\""),
        ("SET k 'it\\'s'", "OK"),
        ("GET k", "\"it's\""),
        ("SET k 日本", "OK"),
        ("GET k", "\"日本\""),
        ("GET missing", "(nil)"),
        ("GET \"k", "Invalid argument(s)"),
        ("GET \"k\"x", "Invalid argument(s)"),
        ("STRLEN", "(error) ERR wrong number of arguments for 'strlen' command"),
        ("RPUSH l a b", "(integer) 2"),
        ("LRANGE l 0 -1", "1) \"a\"\n2) \"b\""),
        ("LRANGE l 5 6", "(empty array)"),
        ("HSET h f v", "(integer) 1"),
        ("HGETALL h", "1# \"f\" => \"v\""),
        ("ZADD z INCR 1.5 m", "(double) 1.5"),
        ("XADD s 1-1 f v", "\"1-1\""),
        ("XRANGE s - +", "1) 1) \"1-1\"\n   2) 1) \"f\"\n      2) \"v\""),
        ("MULTI", "OK"),
        ("INCR n", "QUEUED"),
        ("CLIENT ID", "(error) the command CLIENT is never sent"),
        ("GET n", "QUEUED"),
        ("EXEC", "1) (integer) 1\n2) \"1\""),
        ("MULTI", "OK"),
        ("INCR n", "QUEUED"),
        ("DISCARD", "OK"),
        ("GET n", "\"1\""),
        ("SUBSCRIBE c", "The tab Messages subscribes to channels."),
        ("help expire", "EXPIRE key seconds [NX | XX | GT | LT]\n  Summary: "),
        ("help nothing", "There is no command nothing."),
    ] {
        console.enter(line);
        let last = "return document.querySelector('#log li:last-child pre:last-child').textContent";
        console.browser.wait("return document.querySelector('#log li:last-child').innerText", line);
        console.browser.wait(last, expected);
    }
    let value = "return document.getElementById('line').value";
    console.browser.run("document.getElementById('line').focus()");
    console.browser.press(&format!("{UP}{UP}{UP}"));
    assert_eq!(console.browser.run(value), "SUBSCRIBE c");
    console.browser.run("document.getElementById('line').value = ''");
    console.browser.press("xinfo g");
    console.wait("completions", "XINFO GROUPS");
    console.browser.press(TAB);
    assert_eq!(console.browser.run(value), "XINFO GROUPS ");
    console.wait("hint", "XINFO GROUPS key");
    // Words, quotes and bytes as redis-cli's reader splits them.
    for (line, expected) in [
        ("a  b\t\"c d\"", json!(["a", "b", "c d"])),
        ("fo\"o b\"", json!(["foo b"])),
        ("\"\" ''", json!(["", ""])),
        ("'\\n\\'' \"\\q\\x4\\x41\"", json!(["\\n'", "qx4A"])),
        (" ", json!([])),
    ] {
        let script = "const { split, decode } = await import('/_/bytes.js'); return split(LINE).map(decode)";
        let script = script.replace("LINE", &json!(line).to_string());
        assert_eq!(console.browser.run(&format!("return (async () => {{ {script} }})()")), expected, "{line}");
    }
}

#[test]
fn messages() {
    let Some(console) = Console::start(RULES) else { return };
    console.click("[role=tab]", "Messages");
    let form = "return document.getElementById('publish').hidden ? 'hidden' : 'there'";
    console.browser.wait(form, "hidden");
    console.use_token();
    console.click("[role=tab]", "Messages");
    console.browser.wait(form, "there");
    console.submit("Subscribe", &["news"]);
    console.browser.run("document.querySelector('#subscribe [type=checkbox]').checked = true");
    console.submit("Subscribe", &["n*"]);
    console.wait("subscriptions", "channel news\nlistening");
    console.wait("subscriptions", "pattern n*\nlistening");
    console.submit("Publish", &["news", "hello there"]);
    console.wait("messages", "news\thello there");
    console.wait("heard", "2 messages");
    console.submit("Publish", &["nature", "\"\\xff\\n\""]);
    console.wait("messages", "nature\t\"\\xff\\n\"");
    for _ in 0..2 {
        console.browser.run("document.querySelector('#subscriptions button').click()");
    }
    console.becomes(&json!(["PUBSUB", "NUMPAT"]), "0");
}

#[test]
fn the_server() {
    let Some(console) = Console::start(RULES) else { return };
    console.click("[role=tab]", "Server");
    console.wait("figures-note", "the command INFO is not allowed here");
    console.use_token();
    console.send(&json!([["SET", "a", "1"], ["GET", "a"]]));
    // Two readings give the first rate.
    let rate = "const [figure] = document.querySelectorAll('#plots figure'); \
                return figure.querySelector('path').getAttribute('d')?.includes('L') ? figure.innerText : ''";
    console.browser.wait(rate, "Commands per second");
    for (view, expected) in
        [("Slow log", "entries"), ("Memory", "peak.allocated"), ("Clients", "client|list"), ("Info", "redis_version")]
    {
        console.click("#server-views button", view);
        console.wait("server-view", expected);
    }
    // At most one request a second, and none while nobody can see it.
    let requests =
        "return performance.getEntriesByType('resource').filter((entry) => entry.name.endsWith('/v1')).length";
    let count = || console.browser.run(requests).as_u64().unwrap();
    let before = (count(), Instant::now());
    console.browser.wait(&format!("{} >= {} ? 'more' : ''", requests, before.0 + 3), "more");
    assert!(before.1.elapsed() > Duration::from_millis(1900));
    console.browser.run(
        "Object.defineProperty(document, 'hidden', { value: true }); document.dispatchEvent(new Event('visibilitychange'))",
    );
    std::thread::sleep(Duration::from_millis(1500));
    let before = count();
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(count(), before);
}

#[test]
fn callers_without_rights() {
    let rules = RULES.replace("[anonymous]\ncommands = [\"@read\"]", "")
        + "[[token]]\nname = \"shop\"\nsecret = \"0123456789abcdef\"\ncommands = [\"@read\"]\nkeys = [\"shop:\"]\n";
    let Some(console) = Console::start(&rules) else { return };
    console.wait("status", "a token is needed");
    assert_eq!(console.browser.run("return document.activeElement.id"), "token");
    console.send(&json!([["SET", "shop:1", "lamp"], ["SET", "other", "x"]]));
    let token = |text: &str| {
        console
            .browser
            .run(&format!("const t = document.getElementById('token'); t.value = '{text}'; t.form.requestSubmit()"));
    };
    token("0123456789abcdef");
    console.wait(
        "keys-status",
        "the command SCAN may touch keys without the prefixes that are allowed here. Enter the name of a key.",
    );
    let find = |key: &str| {
        console
            .browser
            .run(&format!("const p = document.getElementById('pattern'); p.value = '{key}'; p.form.requestSubmit()"));
    };
    find("shop:1");
    console.wait("value", "lamp");
    find("other");
    console.wait("status", "a key has none of the prefixes that are allowed here");
    token(TOKEN);
    find("");
    console.wait("keys-status", "2 keys");
    let kept = console.browser.run("return [sessionStorage.length > 0, localStorage.length, document.cookie]");
    assert_eq!(kept, json!([true, 0, ""]));
    console.browser.open(&format!("http://{}/_/?again", console.front.addr));
    console.wait("keys-status", "2 keys");
    token("");
    console.wait("status", "a token is needed");
}

/// Both colour schemes and a narrow screen: the text is legible everywhere, and nothing is cut.
#[test]
fn appearances() {
    let Some(console) = Console::start(RULES) else { return };
    console.send(&samples());
    for (width, scheme, expected) in [(1200, "light", "rgb(255, 255, 255)"), (390, "dark", "rgb(20, 23, 26)")] {
        console.browser.appear(width, 800, scheme);
        assert_eq!(console.browser.run("return getComputedStyle(document.body).backgroundColor"), expected);
        console.open(b"hash", &["Ann"]);
        let excess = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
        assert_eq!(console.browser.run(excess), 0, "{scheme}: the page does not scroll sideways");
        let is_shown = "return document.getElementById('keys').checkVisibility()";
        assert_eq!(console.browser.run(is_shown), width > 1000, "a narrow screen shows the list or the value");
    }
}

/// Writes the pictures of docs/http/console.md: `cargo test -p http-server console::pictures -- --ignored`.
#[test]
#[ignore = "writes into docs/http"]
fn pictures() {
    let rules = RULES.replace("[\"@read\"]", "[\"@all\"]");
    let Some(console) = Console::start(&rules) else { return };
    console.send(&samples());
    let take = |name: &str| {
        // The plots and the list are drawn within a frame or two.
        std::thread::sleep(Duration::from_millis(500));
        let picture = BASE64_STANDARD.decode(console.browser.screenshot()).unwrap();
        assert!(picture.starts_with(b"\x89PNG") && picture.len() <= 100 * 1024, "{name}: {} bytes", picture.len());
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/http");
        std::fs::write(folder.join(format!("console-{name}.png")), picture).unwrap();
    };
    console.browser.appear(1000, 520, "light");
    console.browser.run("document.getElementById('search').requestSubmit()");
    console.wait("keys", "MBbloom--");
    console.open(b"hash", &["Ann"]);
    take("keys");
    console.browser.appear(1000, 520, "dark");
    console.click("[role=tab]", "Commands");
    for line in ["HGETALL hash", "XRANGE stream - +", "GET hash", "INCR visits"] {
        console.enter(line);
    }
    console.browser.run("document.getElementById('line').focus()");
    console.browser.press("expire");
    console.wait("hint", "EXPIRE key seconds");
    take("commands");
    console.click("[role=tab]", "Server");
    console.click("#server-views button", "Clients");
    for round in 0..12 {
        console.send(&json!([["MGET", "text", "json"], ["GET", "text"], ["GET", format!("missing{round}")]]));
        std::thread::sleep(Duration::from_secs(1));
    }
    take("server");
}
