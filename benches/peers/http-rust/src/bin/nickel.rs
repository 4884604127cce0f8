//! GET /get?key=… from Redis: Nickel and a pool of the redis crate's connections, as their documentation shows them.

use nickel::status::StatusCode;
use nickel::{HttpRouter as _, MiddlewareResult, Nickel, QueryString as _, Request, Response};
use r2d2::Pool;
use redis::{Client, Commands as _};

fn value(pool: &Pool<Client>, key: &str) -> Result<Option<String>, Box<dyn std::error::Error>> {
    Ok(pool.get()?.get(key)?)
}

fn get<'mw>(
    request: &mut Request<'_, '_, Pool<Client>>,
    response: Response<'mw, Pool<Client>>,
) -> MiddlewareResult<'mw, Pool<Client>> {
    let key = request.query().get("key").unwrap_or_default().to_owned();
    match value(request.server_data(), &key) {
        Ok(Some(value)) => response.send(value),
        Ok(None) => response.send((StatusCode::NotFound, "there is no such key")),
        Err(error) => response.send((StatusCode::BadGateway, error.to_string())),
    }
}

fn main() {
    let [port, place] = [1, 2].map(|number| std::env::args().nth(number).expect("a port, and the place of Redis"));
    let client = Client::open(format!("redis://{place}")).expect("HOST:PORT");
    let mut server = Nickel::with_data(Pool::new(client).expect("a Redis"));
    server.options = nickel::Options::default().output_on_listen(false);
    server.get("/get", get);
    let _listening = server.listen(format!("127.0.0.1:{port}")).expect("a free port");
}
