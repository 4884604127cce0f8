//! A connection on which another node brings slots.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use server_runtime::Stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::mpsc::Sender;

use crate::clients::client::End;
use crate::cluster::moves::Order;
use crate::exec::cluster::{Landing, Line};
use crate::exec::core::Worker;
use crate::exec::run::session::ConnectedClient;

/// Bytes that are read at once.
const READ: usize = 256 * 1024;

/// Serves a node to its end; `input` is what it has sent behind its request.
pub(super) async fn serve(worker: Rc<Worker>, stream: Stream, mut client: ConnectedClient, input: Bytes) {
    let Some(name) = client.importing.take() else { return };
    let Some(Landing { input: sender, line }) = Landing::begin(&worker.instance, *name) else { return };
    let (reader, writer) = tokio::io::split(stream);
    let mut taken = pin!(take(&worker, &client, reader, sender, input));
    let mut said = pin!(say(writer, &line));
    let ended = poll_fn(|cx| {
        client.shared.wake_by(cx.waker());
        if client.shared.has_mail() && client.shared.take_mail().end != End::No {
            return Poll::Ready(Ok(()));
        }
        match said.as_mut().poll(cx) {
            Poll::Ready(said) => Poll::Ready(said),
            Poll::Pending => taken.as_mut().poll(cx),
        }
    })
    .await;
    if let Err(error) = ended {
        tracing::info!(id = client.shared.id, addr = client.shared.addr, "a node that brings slots is lost: {error}");
    }
}

/// Gives received bytes to the thread that runs them, and no more than that takes.
async fn take(
    worker: &Worker,
    client: &ConnectedClient,
    mut reader: ReadHalf<Stream>,
    sender: Sender<Bytes>,
    first: Bytes,
) -> io::Result<()> {
    let gone = || io::Error::from(io::ErrorKind::ConnectionAborted);
    if !first.is_empty() {
        sender.send(first).await.map_err(|_| gone())?;
    }
    let mut buffer = BytesMut::new();
    loop {
        let permit = sender.reserve().await.map_err(|_| gone())?;
        buffer.reserve(READ);
        let count = reader.read_buf(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        worker.stats.input.add(count as u64);
        client.shared.active_at.store(worker.now_ms(), std::sync::atomic::Ordering::Relaxed);
        permit.send(buffer.split().freeze());
    }
}

/// Says what the machine has to say, until it says that it is over.
async fn say(mut writer: WriteHalf<Stream>, line: &Line) -> io::Result<()> {
    loop {
        let order = poll_fn(|cx| {
            line.wake_by(cx.waker());
            line.take().map_or(Poll::Pending, Poll::Ready)
        })
        .await;
        let Order::Say(word) = order else { return Ok(()) };
        writer.write_all(&word.encode()).await?;
        writer.flush().await?;
    }
}
