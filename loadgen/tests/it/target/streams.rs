//! TCP, a thread for each connection.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::protocol::Keys;
use super::{Behaviour, Fault, Record, tls};

pub(super) fn serve(behaviour: Behaviour, record: Arc<Record>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // All connections see the same keys, as they would of a database.
    let keys = Arc::new(Mutex::new(Keys::new()));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = record.connections.fetch_add(1, Ordering::SeqCst);
            let (behaviour, record, keys) = (behaviour.clone(), record.clone(), keys.clone());
            thread::spawn(move || {
                stream.set_nodelay(true).unwrap();
                // The peer may end at any time; that is its right.
                match &behaviour.tls {
                    Some(certificate) => {
                        let socket = stream.try_clone().unwrap();
                        let mut stream = tls::serve_tls(certificate, stream);
                        let _ = converse(&mut stream, &socket, &behaviour, &record, connection, &keys);
                    }
                    None => {
                        let socket = stream.try_clone().unwrap();
                        let _ = converse(&mut { stream }, &socket, &behaviour, &record, connection, &keys);
                    }
                }
            });
        }
    });
    address
}

fn converse(
    stream: &mut (impl Read + Write),
    socket: &TcpStream,
    behaviour: &Behaviour,
    record: &Record,
    connection: u64,
    keys: &Mutex<Keys>,
) -> std::io::Result<()> {
    let mut unread = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = test_peers::read(stream, &mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        let arrived = Instant::now();
        unread.extend_from_slice(&buffer[..count]);
        while let Some(length) = behaviour.dialect.request(&unread) {
            let request: Vec<u8> = unread.drain(..length).collect();
            if let Some(greeting) = behaviour.dialect.greeting(&request) {
                stream.write_all(&greeting)?;
                continue;
            }
            let order = record.arrived(behaviour, connection, &request);
            let answer = behaviour.dialect.answer(&request, &mut keys.lock().unwrap(), order.is_wrong);
            record.stall(behaviour);
            thread::sleep((arrived + order.delay).saturating_duration_since(Instant::now()));
            record.answers(arrived);
            match order.fault {
                None => stream.write_all(&answer)?,
                Some(fault) => fail(fault, stream, socket, &answer)?,
            }
        }
    }
}

fn fail(fault: Fault, stream: &mut impl Write, socket: &TcpStream, answer: &[u8]) -> std::io::Result<()> {
    match fault {
        Fault::Reset => {
            SockRef::from(socket).set_linger(Some(Duration::ZERO))?;
            // The last copy of the socket sends the RST when it closes.
            Err(std::io::ErrorKind::ConnectionReset.into())
        }
        Fault::Silence => Ok(()),
        Fault::HalfAnswer => {
            stream.write_all(&answer[..answer.len() / 2])?;
            stream.flush()?;
            socket.shutdown(Shutdown::Write)?;
            Err(std::io::ErrorKind::UnexpectedEof.into())
        }
        Fault::Garbage => stream.write_all(b"\xff\xfe what is this?\r\n\r\n"),
        Fault::Twice => stream.write_all(&[answer, answer].concat()),
        Fault::Late(delay) => {
            thread::sleep(delay);
            stream.write_all(answer)
        }
    }
}
