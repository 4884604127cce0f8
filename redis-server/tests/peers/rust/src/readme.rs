//! The example of redis-server's README. A test compares its lines with these.

/// Names the server as the example does.
struct Server<'a>(&'a str);

impl Server<'_> {
    fn url(&self) -> &str {
        self.0
    }
}

#[rustfmt::skip]
pub fn example(url: &str) -> Result<(), redis::RedisError> {
    let server = Server(url);
    let mut client = redis::Client::open(server.url())?.get_connection()?;    // any client, any language
    redis::cmd("SET").arg("greeting").arg("hello").exec(&mut client)?;
    assert_eq!(redis::cmd("GET").arg("greeting").query::<String>(&mut client)?, "hello");
    Ok(())
}
