//! The cluster bus: sockets and timers of the node's machine, on a thread of their own, so that a worker that is busy makes no
//! other node believe that this one has failed.

mod link;
mod roles;
mod tls;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use server_runtime::Listen;
use socket2::{Domain, Socket, Type};
use tokio::task::LocalSet;

use crate::clients::output_limit::post;
use crate::clients::pubsub::Kind;
use crate::cluster::{Action, Link, SlotSet};
use crate::config::{Config, settings};
use crate::exec::cluster::{bus_port, replication_port};
use crate::exec::core::{Instance, peer_tls};
use crate::threads::{self, OnPanic, Vital};
use link::Queue;
use roles::Roles;

/// How long a listener rests that cannot accept, as there are no more descriptors.
const REST: Duration = Duration::from_millis(100);
/// Connections that wait to be accepted.
const BACKLOG: i32 = 511;
/// How often keys of slots that others have now are looked for again, while slow calls work on some.
const RETRY: Duration = Duration::from_millis(20);

/// Takes the bus's port at every address at which clients are served.
///
/// # Errors
/// The port cannot be had.
pub(super) fn listen(config: &Config, places: &[Listen]) -> Result<Vec<TcpListener>, String> {
    let port = bus_port(config);
    if tls::is_on(config) {
        peer_tls::bus_config(config).map_err(|error| error.to_string())?;
    }
    let mut addresses: Vec<IpAddr> = places
        .iter()
        .filter_map(|place| match place {
            Listen::Tcp(at) | Listen::Tls(at) => Some(at.ip()),
            _ => None,
        })
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    let bind = |ip| {
        let at = SocketAddr::new(ip, port);
        listener(at).map_err(|error| format!("Failed listening on port {port} (cluster bus): {error}"))
    };
    addresses.into_iter().map(bind).collect()
}

fn listener(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(at), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if at.is_ipv6() {
        // The same port of IPv4 has a listener of its own.
        socket.set_only_v6(true)?;
    }
    socket.bind(&at.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Starts the bus's thread, which ends with the process.
pub(super) fn start(instance: &Arc<Instance>, listeners: Vec<TcpListener>) -> io::Result<()> {
    let roles = Roles::start(instance)?;
    let instance = Arc::clone(instance);
    // A node that does not gossip any more is as good as dead; its end has the others fail over.
    threads::spawn("cluster", OnPanic::EndProcess, move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => LocalSet::new().block_on(&runtime, run(instance, listeners, roles)),
            Err(error) => {
                tracing::error!("there is no cluster bus: {error}");
                std::process::exit(1);
            }
        }
    })?;
    Ok(())
}

/// The state that the tasks of the bus's thread share.
struct Bus {
    instance: Arc<Instance>,
    queues: RefCell<BTreeMap<Link, Rc<Queue>>>,
    roles: Roles,
    certificates: tls::Certificates,
    /// Those who connect and have shown no certificate yet.
    handshakes: Cell<usize>,
    /// When writes go on that wait for a failover.
    paused_until: RefCell<Option<u64>>,
}

async fn run(instance: Arc<Instance>, listeners: Vec<TcpListener>, roles: Roles) {
    let bus = Bus {
        instance,
        queues: RefCell::default(),
        roles,
        certificates: tls::Certificates::default(),
        handshakes: Cell::new(0),
        paused_until: RefCell::default(),
    };
    let bus = Rc::new(bus);
    for listener in listeners {
        match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => spawn_task(accept(Rc::clone(&bus), listener)),
            Err(error) => tracing::error!("the cluster bus does not listen: {error}"),
        }
    }
    while !bus.instance.is_ending() {
        threads::panic_point();
        let mut lost = None;
        while let Some(action) = bus.instance.cluster.next_action() {
            bus.perform(action, &mut lost);
        }
        let is_left = bus.look_around(lost.as_deref());
        let cluster = &bus.instance.cluster;
        let (deadline, now) = cluster.with(&bus.instance, |machine, now| (machine.deadline(), now)).unwrap_or((0, 0));
        if deadline <= now {
            cluster.with(&bus.instance, |machine, now| machine.tick(now));
            tokio::task::yield_now().await;
            continue;
        }
        let wait = Duration::from_millis(deadline - now);
        let wait = if is_left { wait.min(RETRY) } else { wait };
        let asked = poll_fn(|cx| {
            bus.instance.cluster.wake_by(cx.waker());
            if bus.instance.cluster.is_asked() { Poll::Ready(()) } else { Poll::Pending }
        });
        // Whether the time has come or something is asked for is seen above.
        let _ = tokio::time::timeout(wait, asked).await;
    }
}

/// Runs a task on this thread, whose panic ends the process.
fn spawn_task(task: impl Future<Output = ()> + 'static) {
    tokio::task::spawn_local(async move {
        let _vital = Vital("the cluster bus");
        task.await;
    });
}

async fn accept(bus: Rc<Bus>, listener: tokio::net::TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => link::accepted(&bus, stream, peer),
            Err(error) => {
                tracing::warn!("the cluster bus cannot accept: {error}");
                tokio::time::sleep(REST).await;
            }
        }
    }
}

impl Bus {
    fn perform(self: &Rc<Self>, action: Action, lost: &mut Option<Box<SlotSet>>) {
        let instance = &self.instance;
        match action {
            Action::Connect { link, ip, port } => link::connect(self, link, ip, port),
            Action::Send { link, bytes } => {
                let queue = self.queues.borrow().get(&link).cloned();
                if let Some(queue) = queue {
                    queue.push(bytes, instance.config.uint(settings::CLUSTER_LINK_SENDBUF_LIMIT));
                }
            }
            Action::Close { link } => {
                let queue = self.queues.borrow_mut().remove(&link);
                if let Some(queue) = queue {
                    queue.close();
                }
            }
            Action::Follow { ip, port, tls_port } => {
                self.resume_writes();
                self.roles.follow(ip, replication_port(&instance.config, port, tls_port));
            }
            Action::Promote => self.roles.promote(),
            Action::DeleteAll => self.roles.delete_all(),
            Action::PauseWrites { number, until } => self.pause_writes(number, until),
            Action::ResumeWrites => self.resume_writes(),
            Action::Publish { channel, message, is_sharded } => {
                let kind = if is_sharded { Kind::Shard } else { Kind::Channel };
                instance.pubsub.publish(kind, &channel, &message, |to, message| {
                    post(&instance.config, to, message.encoded(to.is_resp3()).clone());
                });
            }
            Action::Move { name, order } => instance.cluster.perform(instance, name, order),
            Action::SlotsLost { slots, .. } => match lost {
                Some(all) => slots.iter().for_each(|slot| _ = all.add(slot)),
                None => *lost = Some(slots),
            },
            Action::Route(_) | Action::Save { .. } | Action::Log(..) => {
                unreachable!("what can be done at once is not left to this thread")
            }
        }
    }

    /// Tells clients what concerns them, and removes keys that are others' now; whether some are left.
    fn look_around(&self, lost: Option<&SlotSet>) -> bool {
        let instance = &self.instance;
        instance.cluster.tell_clients(instance, lost);
        let is_over = self.paused_until.borrow().is_some_and(|until| until <= instance.cluster.now());
        if is_over {
            self.resume_writes();
        }
        instance.cluster.drop_lost_keys(instance)
    }

    /// Has writes wait. When none is under way any more, the machine is told where the stream ends, which the replica must reach.
    fn pause_writes(&self, number: u64, until: u64) {
        let was_paused = self.paused_until.replace(Some(until)).is_some();
        if !was_paused {
            self.instance.hold_writes();
        }
        self.roles.await_writes(number, until);
    }

    fn resume_writes(&self) {
        if self.paused_until.take().is_some() {
            self.instance.release_writes();
        }
    }

    /// A link has ended by itself.
    fn lost(&self, link: Link) {
        let known = self.queues.borrow_mut().remove(&link);
        if let Some(queue) = known {
            let overflowed = queue.has_overflowed();
            self.instance.cluster.with(&self.instance, |machine, now| machine.closed(link, overflowed, now));
        }
    }
}
