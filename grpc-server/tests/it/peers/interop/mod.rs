//! The official interop client (grpc-go's) against the interop service on our harness.

mod service;

use std::process::Command;

use test_peers::printed_and_logged;

use super::Both;
use super::install::GO;

/// Every case of the client that needs no credentials.
const CASES: [&str; 19] = [
    "empty_unary",
    "large_unary",
    "client_streaming",
    "server_streaming",
    "ping_pong",
    "empty_stream",
    "timeout_on_sleeping_server",
    "cancel_after_begin",
    "cancel_after_first_response",
    "status_code_and_message",
    "special_status_message",
    "custom_metadata",
    "unimplemented_method",
    "unimplemented_service",
    "pick_first_unary",
    "rpc_soak",
    "channel_soak",
    "orca_per_rpc",
    "orca_oob",
];

/// Has the client keep the load reports that it looks at.
const ORCA: &str = r#"{"loadBalancingConfig":[{"test_backend_metrics_load_balancer":{}}]}"#;

#[test]
fn every_case_without_credentials() {
    let Some(folder) = GO.installed() else { return };
    let server = Both::start(&[], |_| service::routes());
    for (address, is_tls) in [(server.plain, false), (server.tls, true)] {
        for case in CASES {
            let mut client = Command::new(folder.join("bin/client"));
            client.args(["--server_host", "127.0.0.1", "--server_port", &address.port().to_string()]);
            client.args(["--test_case", case]).args(is_tls.then_some("--use_tls"));
            if is_tls {
                client.args(["--use_test_ca", "--server_host_override", "localhost"]);
                client.arg("--ca_file").arg(&server.certificate);
            }
            if case.starts_with("orca") {
                client.args(["--service_config_json", ORCA]);
            }
            // It says nothing of a success unless it is told to.
            let said = printed_and_logged(client.env("GRPC_GO_LOG_SEVERITY_LEVEL", "info"));
            assert!(said.contains(" done"), "{case}: {said}");
        }
    }
}
