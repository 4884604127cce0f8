//! GET /get?key=… from Redis: Iron and a pool of the redis crate's connections, as their documentation shows them.

use iron::prelude::{Iron, IronResult, Request, Response};
use iron::status;
use r2d2::Pool;
use redis::{Client, Commands as _};

fn value(pool: &Pool<Client>, key: &str) -> Result<Option<String>, Box<dyn std::error::Error>> {
    Ok(pool.get()?.get(key)?)
}

fn main() {
    let [port, place] = [1, 2].map(|number| std::env::args().nth(number).expect("a port, and the place of Redis"));
    let client = Client::open(format!("redis://{place}")).expect("HOST:PORT");
    let pool = Pool::new(client).expect("a Redis");
    let handler = move |request: &mut Request<'_, '_>| -> IronResult<Response> {
        let key = request.url.query().and_then(|query| query.strip_prefix("key=")).unwrap_or_default();
        Ok(match value(&pool, key) {
            Ok(Some(value)) => Response::with((status::Ok, value)),
            Ok(None) => Response::with((status::NotFound, "there is no such key")),
            Err(error) => Response::with((status::BadGateway, error.to_string())),
        })
    };
    let _listening = Iron::new(handler).http(format!("127.0.0.1:{port}")).expect("a free port");
}
