//! h3 on quinn as their documentation shows them, with a certificate of its own.

use std::sync::Arc;

use bytes::Bytes;
use h3::server::RequestResolver;
use http::{Request, Response, StatusCode};
use quinn::crypto::rustls::QuicServerConfig;
use rustls::pki_types::PrivateKeyDer;

/// The body of /64k.
static BODY: [u8; 64 << 10] = [0; 64 << 10];

fn configuration() -> quinn::ServerConfig {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let mut tls = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("they fit");
    tls.alpn_protocols = vec![b"h3".to_vec()];
    quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).expect("TLS 1.3")))
}

fn body(request: &Request<()>) -> Option<Bytes> {
    match request.uri().path() {
        "/" => Some(Bytes::from_static(b"Hello from Rust")),
        "/64k" => Some(Bytes::from_static(&BODY)),
        _ => None,
    }
}

async fn answer(resolver: RequestResolver<h3_quinn::Connection, Bytes>) -> Result<(), Box<dyn std::error::Error>> {
    let (request, mut stream) = resolver.resolve_request().await?;
    let body = body(&request);
    let status = if body.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    stream.send_response(Response::builder().status(status).body(())?).await?;
    if let Some(body) = body {
        stream.send_data(body).await?;
    }
    Ok(stream.finish().await?)
}

#[tokio::main]
async fn main() {
    let port = std::env::args().nth(1).expect("a port");
    let addr = format!("127.0.0.1:{port}").parse().expect("a port is a number");
    let endpoint = quinn::Endpoint::server(configuration(), addr).expect("a free port");
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            let Ok(connection) = incoming.await else { return };
            let Ok(mut connection) = h3::server::Connection::new(h3_quinn::Connection::new(connection)).await else {
                return;
            };
            while let Ok(Some(resolver)) = connection.accept().await {
                tokio::spawn(async move {
                    _ = answer(resolver).await;
                });
            }
        });
    }
}
