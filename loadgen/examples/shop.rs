//! A small shop for scenarios: log in, list items, order one, look at the order. It counts what it did.
//!
//! ```text
//! cargo run --release -p loadgen --example shop -- 127.0.0.1:8080
//! loadgen scenario http://127.0.0.1:8080 loadgen/examples/shop.toml
//! ```
//!
//! It keeps no state of sessions and orders: a token names its user, and an order's number holds its item and its quantity.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// The users that may log in are `user0` to `user99`.
const USERS: u64 = 100;

/// Items are numbered 1 to this.
const ITEMS: u64 = 9;

/// How often each thing was done.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) logins: AtomicU64,
    pub(crate) lists: AtomicU64,
    pub(crate) orders: AtomicU64,
    pub(crate) views: AtomicU64,
    /// Requests that were refused.
    pub(crate) refused: AtomicU64,
}

/// Serves on a port of loopback, and gives its address and its counts.
///
/// # Errors
/// When the address cannot be listened on.
pub(crate) fn serve(address: &str) -> io::Result<(SocketAddr, Arc<Counts>)> {
    let listener = TcpListener::bind(address)?;
    let address = listener.local_addr()?;
    let counts = Arc::new(Counts::default());
    let shared = counts.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counts = shared.clone();
            thread::spawn(move || connection(stream, &counts));
        }
    });
    Ok((address, counts))
}

/// Answers the requests of a connection until it ends.
fn connection(mut stream: TcpStream, counts: &Counts) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut input, mut filled) = (vec![0; 16 << 10], 0);
    let (mut body, mut out) = (String::new(), Vec::new());
    loop {
        let read = stream.read(&mut input[filled..])?;
        if read == 0 {
            return Ok(());
        }
        filled += read;
        let Some((head, content, end)) = request(&input[..filled]) else { continue };
        body.clear();
        let (status, headers) = answer(head, content, counts, &mut body);
        out.clear();
        let length = body.len();
        write!(
            out,
            "HTTP/1.1 {status}\r\n{headers}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )?;
        stream.write_all(&out)?;
        input.copy_within(end..filled, 0);
        filled -= end;
    }
}

/// The first request: its head, its body, and where it ends; nothing if it is not complete.
fn request(input: &[u8]) -> Option<(&str, &str, usize)> {
    let end = input.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&input[..end]).ok()?;
    let length = header(head, "Content-Length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let body = std::str::from_utf8(input.get(end..end + length)?).ok()?;
    Some((head, body, end + length))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.split("\r\n").find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// The text behind `before`, up to the next of `ends`.
fn between<'a>(text: &'a str, before: &str, ends: &[char]) -> Option<&'a str> {
    let start = text.find(before)? + before.len();
    text[start..].split(ends).next()
}

/// The status line's rest and further headers; the body is appended.
fn answer(head: &str, content: &str, counts: &Counts, body: &mut String) -> (&'static str, String) {
    let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if (method, path) == ("POST", "/login") {
        let user = between(content, "\"user\":\"user", &['"']).and_then(|user| user.parse().ok());
        let Some(user) = user.filter(|user: &u64| *user < USERS && content.contains(&format!("\"secret{user}\"")))
        else {
            count(&counts.refused);
            return ("401 Unauthorized", String::new());
        };
        let number = count(&counts.logins);
        body.push_str(&format!("{{\"token\":\"t{user}-{number}\"}}"));
        return ("200 OK", format!("Set-Cookie: sid=s{user}; Path=/; HttpOnly\r\n"));
    }
    let token = header(head, "Authorization").and_then(|token| token.strip_prefix("Bearer t")?.split('-').next());
    let sid = header(head, "Cookie").and_then(|cookie| cookie.strip_prefix("sid=s"));
    if token.is_none() || token != sid {
        count(&counts.refused);
        return ("403 Forbidden", String::new());
    }
    match (method, path.strip_prefix("/orders")) {
        ("GET", None) if path == "/items" => {
            count(&counts.lists);
            body.push_str("{\"items\":[");
            for id in 1..=ITEMS {
                body.push_str(&format!("{}{{\"id\":{id},\"name\":\"item {id}\"}}", if id > 1 { "," } else { "" }));
            }
            body.push_str("]}");
            ("200 OK", String::new())
        }
        ("POST", Some("")) => {
            let number = |name: &str| between(content, name, &[',', '}'])?.trim().parse::<u64>().ok();
            let (item, quantity) = (number("\"item\":"), number("\"quantity\":"));
            let Some((item, quantity)) = item.zip(quantity).filter(|(item, quantity)| *item <= ITEMS && *quantity < 10)
            else {
                count(&counts.refused);
                return ("400 Bad Request", String::new());
            };
            let order = (count(&counts.orders) * 10 + quantity) * 10 + item;
            ("201 Created", format!("Location: /orders/{order}\r\n"))
        }
        ("GET", Some(order)) => {
            let Some(order) = order.strip_prefix('/').and_then(|order| order.parse::<u64>().ok()) else {
                count(&counts.refused);
                return ("404 Not Found", String::new());
            };
            count(&counts.views);
            body.push_str(&format!("{{\"item\":{},\"quantity\":{}}}", order % 10, order / 10 % 10));
            ("200 OK", String::new())
        }
        _ => {
            count(&counts.refused);
            ("404 Not Found", String::new())
        }
    }
}

/// Serves until it is ended, or until its input ends; then it prints its counts.
fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let (address, counts) = serve(&address)?;
    println!("http://{address}");
    io::copy(&mut io::stdin(), &mut io::sink())?;
    let Counts { logins, lists, orders, views, refused } = &*counts;
    let [logins, lists, orders, views, refused] =
        [logins, lists, orders, views, refused].map(|count| count.load(Ordering::Relaxed));
    println!("{logins} logins, {lists} lists, {orders} orders, {views} views, {refused} refused");
    Ok(())
}
