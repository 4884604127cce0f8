//! The end of the server, with everybody there.

use std::sync::atomic::Ordering::Relaxed;

use tokio_stream::StreamExt as _;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::support::{MANY_TIMES, Raw, Reply, SAY_HELLO, Server, hello, many_times, options, post, run, until};

#[test]
fn a_shutdown_finishes_calls_in_flight() {
    run(async {
        let (server, odd) = Server::odd(options());
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let mut raw = server.raw().await;
            for _ in 0..10 {
                let (slow, _) = raw.begin(post(SAY_HELLO).body(()).unwrap(), hello("slow")).await.unwrap();
                let request = post(MANY_TIMES).body(()).unwrap();
                let (stream, _) = raw.begin(request, many_times("x", 20, 10)).await.unwrap();
                calls.spawn(Reply::of(slow));
                calls.spawn(Reply::of(stream));
            }
        }
        until("all have begun", || odd.begun.load(Relaxed) == 80).await;
        server.running.shutdown_handle().trigger();
        while let Some(reply) = calls.join_next().await {
            assert_eq!(reply.unwrap().unwrap().code(), Some("0"));
        }
        let Server { running, .. } = server;
        assert!(!running.wait(), "a connection was cut");
    });
}

#[test]
fn a_shutdown_under_load_loses_no_call_that_was_taken() {
    run(async {
        let server = Server::start();
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let mut raw = Raw::connect(server.addr).await;
            clients.spawn(async move {
                for round in 0.. {
                    let Ok((response, _stream)) = raw.begin(post(SAY_HELLO).body(()).unwrap(), hello("Ann")).await
                    else {
                        return round;
                    };
                    match Reply::of(response).await {
                        Ok(reply) => assert_eq!(reply.code(), Some("0"), "{reply:?}"),
                        // The server has said which calls it took, and that this one is not among them.
                        Err(error) => {
                            let is_told = error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM);
                            assert!(is_told, "a call was lost: {error}");
                            return round;
                        }
                    }
                }
                0
            });
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        server.running.shutdown_handle().trigger();
        while let Some(rounds) = clients.join_next().await {
            assert!(rounds.unwrap() > 0);
        }
        let Server { running, .. } = server;
        assert!(!running.wait(), "a connection was cut");
    });
}

#[test]
fn a_watch_is_told_and_does_not_hold_the_shutdown_up() {
    run(async {
        let server = Server::start();
        let mut health = HealthClient::new(server.channel().await);
        let request = HealthCheckRequest { service: "helloworld.Greeter".to_owned() };
        let mut news = health.watch(request).await.unwrap().into_inner();
        assert_eq!(news.next().await.unwrap().unwrap().status().as_str_name(), "SERVING");
        server.running.shutdown_handle().trigger();
        assert_eq!(news.next().await.unwrap().unwrap().status().as_str_name(), "NOT_SERVING");
        assert_eq!(news.next().await.unwrap().unwrap_err().code(), tonic::Code::Unavailable);
        let Server { running, .. } = server;
        assert!(!running.wait(), "a connection was cut");
    });
}
