//! Route B: the smart meter behind a Wi-SUN module is a node at an address of the loopback interface, while a command runs.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use echonet_lite::node::Instant as Moment;
use echonet_lite::serial::{AsyncSerialPort, COMMAND_MAX, Config, Credentials, Event, Relay, SerialPort};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::Instant;

use crate::commands::Options;
use crate::failure::Failure;
use crate::output::Output;

#[cfg(all(test, feature = "mqtt", feature = "web"))]
mod tests;

/// The address of the meter.
pub(crate) const METER: Ipv4Addr = Ipv4Addr::new(127, 36, 10, 1);

/// The environment variables with the credentials: a list of processes does not show them.
const CREDENTIALS: [&str; 2] = ["ROUTE_B_ID", "ROUTE_B_PASSWORD"];
/// How long a command waits for the meter: a scan through all durations and three attempts to join.
const JOINED: Duration = Duration::from_secs(300);
/// How long until a line that failed, or a module that gave up, is tried again.
const AGAIN: Duration = Duration::from_secs(10);
/// How long a serial server may take to accept a connection.
const CONNECTED: Duration = Duration::from_secs(10);
/// How long to wait where there is nothing to wait for.
const IDLE: Duration = Duration::from_secs(3600);

/// A line to a module: a serial port, or the connection to a serial server.
trait Line: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Line for T {}

/// The meter, and everything between it and the network.
struct Meter<'a> {
    path: &'a str,
    line: Box<dyn Line>,
    relay: Relay,
    socket: UdpSocket,
    began: Instant,
    port: u16,
    out: Output,
}

/// Does work beside which the meter is a node of the network, if `--meter` is given. With `first`, the work begins when
/// the meter has been joined.
pub(crate) async fn beside(
    options: &Options,
    out: &Output,
    first: bool,
    work: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let Some(path) = options.meter.as_deref() else { return work.await };
    let mut meter = Meter::open(path, config(options)?, options.port, *out).await?;
    if first {
        let progress = out.progress("joining the meter's network");
        let joined = tokio::time::timeout(options.timeout.map_or(JOINED, |time| time.max(JOINED)), meter.join()).await;
        drop(progress);
        joined.map_err(|_| Failure::NoAnswer(format!("the meter was not joined within {JOINED:?}")))??;
    }
    tokio::select! {
        result = work => result,
        never = meter.run() => match never {},
    }
}

fn config(options: &Options) -> Result<Config, Failure> {
    let module = options.module.ok_or_else(|| Failure::Input("--meter needs --module NAME".to_owned()))?;
    let secret =
        |name| std::env::var(name).map_err(|_| Failure::Input(format!("{name} is not set in the environment")));
    let [id, password] = CREDENTIALS;
    let credentials = Credentials::new(&secret(id)?, &secret(password)?);
    Ok(Config::new(module, credentials.map_err(|error| Failure::Input(error.to_string()))?))
}

/// Opens a serial port, or connects with a serial server (`tcp://HOST:PORT`).
async fn open(path: &str) -> Result<Box<dyn Line>, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Network(format!("{path}: {error}"));
    if let Some(server) = path.strip_prefix("tcp://") {
        let connected = tokio::time::timeout(CONNECTED, TcpStream::connect(server)).await;
        let stream = connected.map_err(|_| failed(&"no answer"))?.map_err(|error| failed(&error))?;
        // A command is one write.
        let _ = stream.set_nodelay(true);
        return Ok(Box::new(stream));
    }
    let port = SerialPort::open(path).map_err(|error| failed(&error))?;
    Ok(Box::new(AsyncSerialPort::new(port).map_err(|error| failed(&error))?))
}

/// The socket of the meter's address, beside the sockets of all addresses that this machine has on the same port.
fn bind(port: u16) -> Result<UdpSocket, Failure> {
    let address = SocketAddr::from((METER, port));
    let bound = || {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        UdpSocket::from_std(socket.into())
    };
    bound().map_err(|error: std::io::Error| Failure::Network(format!("{address}, the address of the meter: {error}")))
}

impl<'a> Meter<'a> {
    async fn open(path: &'a str, config: Config, port: u16, out: Output) -> Result<Self, Failure> {
        let tid = RandomState::new().hash_one(0) as u16;
        let mut relay = Relay::new(config, tid);
        relay.observe(move |event| tell(event, out));
        let (socket, line) = (bind(port)?, open(path).await?);
        let mut meter = Self { path, line, relay, socket, began: Instant::now(), port, out };
        meter.relay.start(meter.now());
        Ok(meter)
    }

    /// Returns when there is a session.
    async fn join(&mut self) -> Result<(), Failure> {
        while self.relay.meter().is_none() {
            if let Some(failure) = self.relay.failure() {
                return Err(Failure::NoAnswer(format!("{}: {failure}", self.path)));
            }
            self.turn().await.map_err(|error| Failure::Network(format!("{}: {error}", self.path)))?;
        }
        Ok(())
    }

    /// Carries everything between the network and the meter, and begins anew after each failure.
    async fn run(&mut self) -> std::convert::Infallible {
        loop {
            let why = match self.turn().await {
                Ok(()) => match self.relay.failure() {
                    Some(failure) => failure.to_string(),
                    None => continue,
                },
                Err(error) => error.to_string(),
            };
            self.out.remark(format_args!("{}: {why}; tried again in {AGAIN:?}", self.path));
            self.reopen().await;
        }
    }

    async fn reopen(&mut self) {
        loop {
            tokio::time::sleep(AGAIN).await;
            // A port can be opened once only.
            self.line = Box::new(tokio::io::empty());
            match open(self.path).await {
                Ok(line) => self.line = line,
                Err(why) => {
                    self.out.remark(format_args!("{why}; tried again in {AGAIN:?}"));
                    continue;
                }
            }
            self.relay.start(self.now());
            return;
        }
    }

    fn now(&self) -> Moment {
        Moment(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// Sends what there is to send, waits for the module, a controller or a deadline, and takes it.
    async fn turn(&mut self) -> std::io::Result<()> {
        let mut command = [0; COMMAND_MAX];
        while let Some(length) = self.relay.poll_transmit(self.now(), &mut command) {
            self.line.write_all(&command[..length]).await?;
        }
        while let Some((to, datagram)) = self.relay.poll_datagram() {
            // Controllers repeat a request whose answer is lost.
            let _ = self.socket.send_to(&datagram, SocketAddr::new(to.ip(), self.port)).await;
        }
        let due = self.relay.poll_timeout().map_or(IDLE, |due| due.since(self.now()).min(IDLE));
        let (mut bytes, mut datagram) = ([0; 1024], [0; 2048]);
        tokio::select! {
            read = self.line.read(&mut bytes) => match read? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                length => self.relay.receive(self.now(), &bytes[..length]),
            },
            received = self.socket.recv_from(&mut datagram) => {
                // Errors of a UDP socket are those of earlier datagrams.
                if let Ok((length, from)) = received {
                    self.relay.handle(self.now(), from, &datagram[..length]);
                }
            }
            () = tokio::time::sleep(due) => {}
        }
        self.relay.handle_timeout(self.now());
        Ok(())
    }
}

/// Says what matters to a user.
fn tell(event: &Event<'_>, out: Output) {
    match event {
        Event::Joined(meter) => out.remark(format_args!("the meter {} is at {METER}", meter.ip())),
        Event::Lost(loss) => out.remark(format_args!("the meter is lost: {loss}")),
        Event::Limited => out.remark("the allowed air time is used up: the meter waits"),
        Event::Failed(failure) => out.remark(failure),
        Event::Version(_)
        | Event::Scanning(_)
        | Event::Found(_)
        | Event::Joining(_)
        | Event::Received(_)
        | Event::Sent
        | Event::NotSent(_)
        | Event::Unlimited => {}
    }
}
