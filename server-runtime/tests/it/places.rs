//! Where a server listens, and what it says when it cannot.

use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;

use server_runtime::{Listen, Options, TlsOptions, start};

use crate::support::{Echo, Folder, ask, connect, end, options, serve};

fn unix(path: &Path, mode: Option<u32>) -> Options {
    Options { listen: vec![Listen::Unix { path: path.to_owned(), mode }], ..options() }
}

fn error(options: Options) -> String {
    start(options, Arc::new(Echo)).expect_err("it cannot start").to_string()
}

#[test]
fn unix_socket_from_start_to_end() {
    let folder = Folder::new("unix");
    let path = folder.file("echo.sock");
    // A dead socket, as a killed server leaves it, is no obstacle.
    drop(UnixListener::bind(&path).unwrap());
    let running = serve(unix(&path, Some(0o640)));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    let mut stream = UnixStream::connect(&path).unwrap();
    assert_eq!(ask(&mut stream, "hello"), "hello");
    let name = format!("{}:0", path.display());
    assert!(ask(&mut stream, "who").ends_with(&format!("{name} {name}")));

    // A living one is.
    assert!(error(unix(&path, None)).contains("another server answers there"));
    assert_eq!(ask(&mut stream, "still"), "still");
    drop(stream);
    end(running);
    assert!(!path.exists(), "the file goes with the server");
}

#[test]
fn another_file_in_the_way_stays() {
    let folder = Folder::new("file");
    let path = folder.file("notes.txt");
    std::fs::write(&path, "precious").unwrap();
    assert!(error(unix(&path, None)).ends_with("the file exists and is no socket; choose another path"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn a_successors_socket_stays() {
    let folder = Folder::new("successor");
    let path = folder.file("echo.sock");
    let running = serve(unix(&path, None));
    std::fs::remove_file(&path).unwrap();
    let successor = serve(unix(&path, None));
    end(running);
    assert_eq!(ask(&mut UnixStream::connect(&path).unwrap(), "hello"), "hello");
    end(successor);
}

#[test]
fn several_places_at_once() {
    let folder = Folder::new("several");
    let path = folder.file("echo.sock");
    // A free port, used twice: all of IPv4 and, beside it, the dual-stack wildcard.
    let port = test_peers::free_port();
    let listen = [format!("0.0.0.0:{port}"), format!("unix:{}", path.display()), format!("[::]:{port}")];
    let running = serve(Options { listen: listen.iter().map(|place| place.parse().unwrap()).collect(), ..options() });
    assert_eq!(running.local_addrs().len(), 2);
    for addr in [format!("127.0.0.1:{port}"), format!("[::1]:{port}")] {
        assert_eq!(ask(&mut connect(addr.parse().unwrap()), "hello"), "hello", "{addr}");
    }
    assert_eq!(ask(&mut UnixStream::connect(&path).unwrap(), "hello"), "hello");
    end(running);
}

#[test]
fn inherited_sockets_are_served_and_left_open() {
    let folder = Folder::new("inherited");
    let path = folder.file("bound.sock");
    let (tcp, unix) = (TcpListener::bind("127.0.0.1:0").unwrap(), UnixListener::bind(&path).unwrap());
    let place = |fd: &dyn AsRawFd| format!("fd:{}", fd.as_raw_fd()).parse::<Listen>().unwrap();
    let running = serve(Options { listen: vec![place(&tcp), place(&unix)], ..options() });
    let addr = tcp.local_addr().unwrap();
    assert_eq!(running.local_addrs(), [addr]);
    assert_eq!(ask(&mut connect(addr), "hello"), "hello");
    assert_eq!(ask(&mut UnixStream::connect(&path).unwrap(), "hello"), "hello");
    end(running);
    // They go on to listen, for the next one to be started.
    assert!(path.exists(), "the file belongs to who has bound it");
    let running = serve(Options { listen: vec![place(&tcp)], ..options() });
    assert_eq!(ask(&mut connect(addr), "hello"), "hello");
    end(running);

    let file = std::fs::File::open(env!("CARGO_MANIFEST_DIR")).unwrap();
    let idle = std::os::unix::net::UnixDatagram::unbound().unwrap();
    for bad in [place(&file), place(&idle), "fd:60000".parse().unwrap()] {
        let text = error(Options { listen: vec![bad.clone()], ..options() });
        assert!(text.starts_with(&format!("cannot listen on {bad}: ")), "{text}");
    }
}

#[test]
fn startup_errors_name_cause_and_remedy() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap();
    let text = error(Options { listen: vec![Listen::Tcp(addr)], ..options() });
    assert!(text.starts_with(&format!("cannot listen on {addr}: ")), "{text}");
    assert!(text.ends_with("; stop the program that uses it, or choose another port (0 picks a free one)"), "{text}");

    assert!(error(Options { metrics_listen: Some(addr), ..options() }).contains(&addr.to_string()));
    assert!(error(Options { listen: vec![], ..options() }).starts_with("nowhere to listen"));
    // 192.0.2.0/24 is for documentation; no machine has it.
    let foreign = Options { listen: vec!["192.0.2.1:0".parse().unwrap()], ..options() };
    assert!(error(foreign).ends_with("; choose an address of this machine, or 0.0.0.0 or [::] for all"));
    assert!(error(unix(Path::new("/nonexistent/a.sock"), None)).ends_with("; create the folder first"));

    let secret = Options { listen: vec!["tls:127.0.0.1:0".parse().unwrap()], ..options() };
    assert!(error(secret.clone()).starts_with("a TLS address needs a certificate"));
    let missing = Options { tls: Some(TlsOptions::new("/nonexistent/c.pem", "/nonexistent/k.pem")), ..secret };
    assert!(error(missing).starts_with("TLS file /nonexistent/c.pem: "));
}
