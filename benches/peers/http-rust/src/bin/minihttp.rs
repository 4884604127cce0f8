//! may_minihttp as its documentation shows it.

use may_minihttp::{HttpServer, HttpService, Request, Response};
use serde::Serialize;

#[derive(Serialize)]
struct Message {
    message: &'static str,
}

#[derive(Clone)]
struct Hello;

impl HttpService for Hello {
    fn call(&mut self, request: Request<'_, '_, '_>, response: &mut Response<'_>) -> std::io::Result<()> {
        match request.path() {
            "/json" => {
                response.header("Content-Type: application/json");
                serde_json::to_writer(bytes(response), &Message { message: "Hello from Rust" })?;
            }
            _ => {
                response.header("Content-Type: text/plain");
                response.body("Hello from Rust");
            }
        }
        Ok(())
    }
}

fn bytes<'a>(response: &'a mut Response<'_>) -> impl std::io::Write + use<'a> {
    struct Body<'a, B>(&'a mut B);
    impl<B: Extend<u8>> std::io::Write for Body<'_, B> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.extend(bytes.iter().copied());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    Body(response.body_mut())
}

fn main() {
    may::config().set_workers(std::thread::available_parallelism().map_or(1, usize::from));
    let port = std::env::args().nth(1).expect("a port");
    let server = HttpServer(Hello).start(format!("127.0.0.1:{port}")).expect("a free port");
    server.join().expect("serves for ever");
}
