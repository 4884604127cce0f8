//! The engine without a runtime: a thread for each connection. A client: `nghttp -v http://127.0.0.1:8080/`.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Instant;

use http2::hpack::Field;
use http2::{Config, Connection, Event};

fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let listener = TcpListener::bind(address)?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept()?;
        std::thread::spawn(move || serve(socket));
    }
}

fn serve(mut socket: TcpStream) -> std::io::Result<()> {
    let mut connection = Connection::new(&Config::default(), Instant::now());
    // Input that is not understood yet; complete requests; the rest of answers that wait for a window.
    let (mut unread, mut complete, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let mut input = &unread[..];
        let is_broken = loop {
            match connection.next(&mut input, Instant::now()) {
                Ok(Some(Event::Request { stream, end, .. })) => complete.extend(end.then_some(stream)),
                Ok(Some(Event::Data { stream, data, end })) => {
                    let length = data.len();
                    connection.release(stream, length);
                    complete.extend(end.then_some(stream));
                }
                Ok(Some(Event::Trailers { stream, .. })) => complete.push(stream),
                Ok(Some(Event::TooLarge { stream, .. })) => connection.refuse_large(stream),
                Ok(Some(Event::Reset { .. } | Event::Pong(_) | Event::GoAway { .. })) => {}
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        unread.drain(..unread.len() - input.len());
        for stream in complete.drain(..) {
            let head = [Field::new(b"content-type", b"text/plain")];
            // A stream that was reset meanwhile has nobody to tell.
            let _ = connection.send_head(stream, 200, head.into_iter(), false);
            waiting.push((stream, &b"hello\n"[..]));
        }
        waiting.retain_mut(|(stream, rest)| {
            *rest = &rest[connection.send_data(*stream, rest, true).unwrap_or(rest.len())..];
            !rest.is_empty()
        });
        socket.write_all(connection.output())?;
        connection.advance(connection.output().len());
        let mut bytes = [0; 4096];
        let count = if is_broken || connection.is_over() { 0 } else { socket.read(&mut bytes)? };
        if count == 0 {
            return socket.shutdown(Shutdown::Both);
        }
        unread.extend_from_slice(&bytes[..count]);
    }
}
