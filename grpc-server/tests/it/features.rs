//! Features that the server adds to any service.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use grpc_server::Routes;
use grpc_server::greeter::{Greeter, pb::greeter_server::GreeterServer};
use tokio_stream::StreamExt as _;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::{v1, v1alpha};

use crate::support::{MANY_TIMES, Raw, SAY_HELLO, Server, hello, many_times, options, post, run, until};

#[test]
fn deadlines() {
    run(async {
        let (server, odd) = Server::odd(options());
        let mut raw = server.raw().await;
        // Before anything was answered: a head without a body.
        let reply = raw.call(post(SAY_HELLO).header("grpc-timeout", "50m").body(()).unwrap(), hello("never")).await;
        assert_eq!((reply.code(), reply.trailers.is_none()), (Some("4"), true), "{reply:?}");
        assert_eq!(odd.dropped.load(Relaxed), 1, "nobody waits for the handler any more");
        // In the middle of a stream.
        let request = post(MANY_TIMES).header("grpc-timeout", "200m").body(()).unwrap();
        let reply = raw.call(request, many_times("x", 10_000, 10)).await;
        assert_eq!(reply.code(), Some("4"), "{reply:?}");
        assert!(!reply.body.is_empty() && reply.trailers.is_some(), "{reply:?}");
        // One that is met.
        let reply = raw.call(post(SAY_HELLO).header("grpc-timeout", "20S").body(()).unwrap(), hello("slow")).await;
        assert_eq!(reply.code(), Some("0"));
        let reply = raw.call(post(SAY_HELLO).header("grpc-timeout", "soon").body(()).unwrap(), hello("slow")).await;
        assert_eq!(reply.code(), Some("13"), "{reply:?}");
    });
}

#[test]
fn the_servers_own_deadline() {
    run(async {
        let mut options = options();
        options.timeouts.call = Some(Duration::from_millis(50));
        let (server, _) = Server::odd(options);
        let mut raw = server.raw().await;
        let reply = raw.call(post(SAY_HELLO).body(()).unwrap(), hello("never")).await;
        assert_eq!(reply.code(), Some("4"));
        let reply = raw.call(post(SAY_HELLO).header("grpc-timeout", "1H").body(()).unwrap(), hello("never")).await;
        assert_eq!(reply.code(), Some("4"));
    });
}

#[test]
fn a_panic_fails_only_its_call_with_internal() {
    run(async {
        let (server, _) = Server::odd(options());
        let mut raw = server.raw().await;
        for (name, code) in [("panic", "13"), ("Ann", "0"), ("late panic", "13"), ("Ann", "0"), ("error", "15")] {
            let reply = raw.call(post(SAY_HELLO).body(()).unwrap(), hello(name)).await;
            assert_eq!(reply.code(), Some(code), "{name}: {reply:?}");
        }
    });
}

#[test]
fn interceptors_refuse_and_panic() {
    run(async {
        let intercept = |request: tonic::Request<()>| match request.metadata().get("do") {
            None => Ok(request),
            Some(what) if what == "panic" => panic!("as the test wants it"),
            Some(_) => Err(tonic::Status::unauthenticated("who are you?")),
        };
        let routes = Routes::new().add_service(GreeterServer::with_interceptor(Greeter, intercept));
        let server = Server::with(routes, options());
        let mut raw = server.raw().await;
        let request = |what: &str| post(SAY_HELLO).header("do", what).body(()).unwrap();
        for (what, code) in [("panic", "13"), ("refuse", "16"), ("panic", "13")] {
            let reply = raw.call(request(what), hello("Ann")).await;
            assert_eq!(reply.code(), Some(code), "{reply:?}");
        }
        let reply = raw.call(post(SAY_HELLO).body(()).unwrap(), hello("Ann")).await;
        assert_eq!(reply.code(), Some("0"), "{reply:?}");
    });
}

#[test]
fn too_many_calls_are_shed() {
    run(async {
        let mut options = options();
        (options.runtime.workers, options.limits.calls) = (1, 2);
        let (server, odd) = Server::odd(options);
        let mut raw = server.raw().await;
        let request = || post(SAY_HELLO).body(()).unwrap();
        let first = raw.begin(request(), hello("never")).await.unwrap();
        let second = raw.begin(request(), hello("never")).await.unwrap();
        for name in ["Ann", "never", "slow"] {
            let reply = raw.call(request(), hello(name)).await;
            assert_eq!(reply.code(), Some("8"), "{reply:?}");
        }
        assert_eq!(odd.begun.load(Relaxed), 2, "the handler has not seen it");
        // A client that gives up makes place.
        for (_, mut stream) in [first, second] {
            stream.send_reset(h2::Reason::CANCEL);
        }
        until("both are gone", || odd.dropped.load(Relaxed) == 2).await;
        let reply = raw.call(request(), hello("Ann")).await;
        assert_eq!(reply.code(), Some("0"), "{reply:?}");
    });
}

#[test]
fn non_grpc_requests_are_refused() {
    run(async {
        let server = Server::start();
        let mut raw = server.raw().await;
        let request = http::Request::get("http://test/helloworld.Greeter/SayHello").body(()).unwrap();
        assert_eq!(raw.call(request, hello("Ann")).await.status, 405);
        for kind in
            ["text/plain", "application/json", "application/grpcx", "application/grpc+xml", "application/grpc+protox"]
        {
            let request = http::Request::post("http://test/helloworld.Greeter/SayHello").header("content-type", kind);
            assert_eq!(raw.call(request.body(()).unwrap(), hello("Ann")).await.status, 415, "{kind}");
        }
        for kind in ["application/grpc+proto", "application/grpc;x=y"] {
            let request = http::Request::post("http://test/helloworld.Greeter/SayHello").header("content-type", kind);
            assert_eq!(raw.call(request.body(()).unwrap(), hello("Ann")).await.code(), Some("0"), "{kind}");
        }
    });
}

#[test]
fn handlers_see_their_peer() {
    run(async {
        let (server, _) = Server::odd(options());
        let reply = server.raw().await.call(post(SAY_HELLO).body(()).unwrap(), hello("peer")).await;
        assert!(String::from_utf8_lossy(&reply.body).contains("127.0.0.1 0"), "{reply:?}");
    });
}

#[test]
fn health_by_service() {
    run(async {
        let server = Server::start();
        let mut health = HealthClient::new(server.channel().await);
        for service in ["", "helloworld.Greeter"] {
            let reply = health.check(HealthCheckRequest { service: service.to_owned() }).await.unwrap();
            assert_eq!(reply.into_inner().status().as_str_name(), "SERVING", "{service}");
        }
        let unknown = health.check(HealthCheckRequest { service: "nobody".to_owned() }).await.unwrap_err();
        assert_eq!(unknown.code(), tonic::Code::NotFound);
    });
}

/// A watch of a service that is not there says so and stays; `List` names all that are.
#[test]
fn health_of_what_is_not_there_and_of_all() {
    run(async {
        let server = Server::start();
        let mut health = HealthClient::new(server.channel().await);
        let watch = health.watch(HealthCheckRequest { service: "nobody".to_owned() }).await.unwrap();
        let mut statuses = watch.into_inner();
        assert_eq!(statuses.next().await.unwrap().unwrap().status().as_str_name(), "SERVICE_UNKNOWN");
        // It goes on while others are answered.
        let list = post("/grpc.health.v1.Health/List").body(()).unwrap();
        let reply = server.raw().await.call(list, bytes::Bytes::from_static(&[0; 5])).await;
        assert_eq!(reply.code(), Some("0"), "{}", reply.message());
        // A map's entry: the name, and a message that says SERVING.
        let entry = b"\x0a\x18\x0a\x12helloworld.Greeter\x12\x02\x08\x01";
        assert!(reply.body.windows(entry.len()).any(|bytes| bytes == entry), "{:?}", reply.body);
        let next = std::pin::pin!(statuses.next());
        assert!(next.poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_pending());
    });
}

/// A definition that is not found has an answer on the stream, which goes on.
#[test]
fn reflection_goes_on_behind_what_it_does_not_find() {
    use v1::server_reflection_request::MessageRequest::{
        AllExtensionNumbersOfType, FileByFilename, FileContainingExtension, FileContainingSymbol,
    };
    run(async {
        let server = Server::start();
        let mut client = v1::server_reflection_client::ServerReflectionClient::new(server.channel().await);
        let extension = v1::ExtensionRequest { containing_type: "helloworld.HelloReply".into(), extension_number: 7 };
        let questions = [
            (Some(FileContainingSymbol("helloworld.Nobody".into())), "error_code: 5"),
            (Some(FileContainingSymbol("helloworld.Greeter.SayHello".into())), "FileDescriptorResponse"),
            (Some(FileByFilename("nothing.proto".into())), "error_code: 5"),
            (Some(FileContainingExtension(extension)), "error_code: 5"),
            (Some(AllExtensionNumbersOfType("helloworld.Nobody".into())), "error_code: 5"),
            (Some(AllExtensionNumbersOfType("helloworld.HelloReply".into())), "extension_number: []"),
            (None, "error_code: 3"),
            (Some(FileContainingSymbol("grpc.health.v1.Health.List".into())), "FileDescriptorResponse"),
        ];
        let (asked, expected): (Vec<_>, Vec<_>) = questions.into_iter().unzip();
        let ask = |asked| v1::ServerReflectionRequest { host: "here".into(), message_request: asked };
        let asked = tokio_stream::iter(asked.into_iter().map(ask).collect::<Vec<_>>());
        let mut replies = client.server_reflection_info(asked).await.unwrap().into_inner();
        for part in expected {
            let reply = format!("{:?}", replies.next().await.unwrap().unwrap());
            assert!(reply.contains(part) && reply.contains("here"), "{part}: {reply}");
        }
        assert!(replies.next().await.is_none());
    });
}

#[test]
fn reflection_in_both_versions() {
    run(async {
        let server = Server::start();
        let channel = server.channel().await;
        let mut client = v1::server_reflection_client::ServerReflectionClient::new(channel.clone());
        let ask = v1::server_reflection_request::MessageRequest::ListServices(String::new());
        let ask = v1::ServerReflectionRequest { host: String::new(), message_request: Some(ask) };
        let mut replies = client.server_reflection_info(tokio_stream::once(ask)).await.unwrap().into_inner();
        let reply = format!("{:?}", replies.next().await.unwrap().unwrap().message_response.unwrap());
        for name in ["helloworld.Greeter", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"] {
            assert!(reply.contains(name), "{name} is missing: {reply}");
        }
        let mut client = v1alpha::server_reflection_client::ServerReflectionClient::new(channel);
        let ask = v1alpha::server_reflection_request::MessageRequest::FileContainingSymbol("helloworld.Greeter".into());
        let ask = v1alpha::ServerReflectionRequest { host: String::new(), message_request: Some(ask) };
        let mut replies = client.server_reflection_info(tokio_stream::once(ask)).await.unwrap().into_inner();
        let reply = format!("{:?}", replies.next().await.unwrap().unwrap().message_response.unwrap());
        assert!(reply.contains("FileDescriptorResponse"), "{reply}");
    });
}

#[test]
fn figures_by_method_and_code() {
    run(async {
        let options = options();
        let metrics = options.runtime.metrics.clone();
        let (server, _) = Server::odd(options);
        let mut raw = server.raw().await;
        for name in ["Ann", "Bob", "error", "slow", "panic"] {
            raw.call(post(SAY_HELLO).body(()).unwrap(), hello(name)).await;
        }
        raw.call(post("/helloworld.Greeter/MadeUp").body(()).unwrap(), hello("Ann")).await;
        raw.call(post("/made.Up/MadeUp").body(()).unwrap(), hello("Ann")).await;
        let mut other = Raw::connect(server.addr).await;
        other.call(post(SAY_HELLO).body(()).unwrap(), hello("Ann")).await;
        let text = metrics.render();
        let labels = "grpc_service=\"helloworld.Greeter\",grpc_method=\"SayHello\"";
        for line in [
            &format!("grpc_server_handled_total{{{labels},grpc_code=\"OK\"}} 4\n"),
            &format!("grpc_server_handled_total{{{labels},grpc_code=\"DATA_LOSS\"}} 1\n"),
            &format!("grpc_server_handled_total{{{labels},grpc_code=\"INTERNAL\"}} 1\n"),
            "grpc_server_handled_total{grpc_service=\"other\",grpc_method=\"other\",grpc_code=\"UNIMPLEMENTED\"} 2\n",
            &format!("grpc_server_handling_seconds_count{{{labels}}} 6\n"),
            "grpc_server_panics_total 1\n",
            "grpc_server_waiting_calls 0\n",
        ] {
            assert!(text.contains(line), "{line} is missing:\n{text}");
        }
        assert!(!text.contains("MadeUp"), "{text}");
    });
}

#[test]
fn idle_and_old_connections_end_in_good_order() {
    run(async {
        // A busy machine may let a client wait before it calls.
        let limit = Some(Duration::from_secs(1));
        let mut idle = options();
        idle.timeouts.idle = limit;
        let mut old = options();
        old.timeouts.age = limit;
        for options in [idle, old] {
            let (server, _) = Server::odd(options);
            let mut raw = server.raw().await;
            // A call in flight outlives the limit.
            let reply = raw.call(post(SAY_HELLO).body(()).unwrap(), hello("slower")).await;
            assert_eq!(reply.code(), Some("0"));
            until("the connection ends", || server.running.connections() == 0).await;
        }
    });
}
