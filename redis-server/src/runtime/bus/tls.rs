//! TLS on the bus (`tls-cluster`).

use std::cell::RefCell;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::config::{Config, settings};
use crate::exec::core::peer_tls::{bus_config, client_config};

/// How long files are taken for what they were: connections that fail come often.
const LIFETIME: Duration = Duration::from_secs(1);

/// The certificates that the files held last.
#[derive(Default)]
pub(super) struct Certificates(RefCell<Option<Made>>);

#[derive(Clone)]
struct Made {
    at: Instant,
    /// Of the configuration that named the files.
    generation: u64,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

/// Whether the bus speaks TLS.
pub(super) fn is_on(config: &Config) -> bool {
    config.is_on(settings::TLS_CLUSTER)
}

impl Made {
    fn new(config: &Config) -> io::Result<Self> {
        let (at, generation) = (Instant::now(), config.generation());
        let client = Arc::new(client_config(config, "tls-cluster")?);
        Ok(Self { at, generation, client, server: bus_config(config)? })
    }
}

impl Certificates {
    fn made(&self, config: &Config) -> io::Result<Made> {
        let mut made = self.0.borrow_mut();
        let is_good = |made: &&Made| made.at.elapsed() < LIFETIME && made.generation == config.generation();
        if let Some(made) = made.as_ref().filter(is_good) {
            return Ok(made.clone());
        }
        let new = Made::new(config)?;
        *made = Some(new.clone());
        Ok(new)
    }

    /// The handshake on a connection to another node.
    pub(super) async fn connect(
        &self,
        config: &Config,
        stream: TcpStream,
        ip: IpAddr,
    ) -> io::Result<TlsStream<TcpStream>> {
        let connector = TlsConnector::from(self.made(config)?.client);
        Ok(connector.connect(ServerName::from(ip), stream).await?.into())
    }

    /// The handshake on a connection from another node.
    pub(super) async fn accept(&self, config: &Config, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let acceptor = TlsAcceptor::from(self.made(config)?.server);
        Ok(acceptor.accept(stream).await?.into())
    }
}
