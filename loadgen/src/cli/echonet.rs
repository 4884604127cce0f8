//! `loadgen echonet`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use clap::Args;
use serde_json::json;

use super::load_args::LOAD;
use super::{Carrier, Drive, Invalid, LoadArgs, Transport};
use crate::codec::echonet::{EchonetTcp, EchonetUdp, LARGEST_WINDOW, Operation};
use crate::load::Endpoint;
use crate::scenario::Scenario;

/// The port of ECHONET Lite.
const PORT: u16 = 3610;

/// Reads and writes the properties of a node's objects, over UDP or TCP.
#[derive(Args, Clone, Debug)]
pub struct Echonet {
    #[command(flatten)]
    load: LoadArgs,

    /// The request: `get EOJ EPC…`, `set EOJ EPC=EDT…` (SetC), or `setget EOJ EPC=EDT… / EPC…`, in hexadecimal. With --verify, `get 013001
    /// 80=30|31` names the values that are right [default: get 0EF001 80]
    #[arg(value_name = "REQUEST")]
    words: Vec<String>,

    /// One request of a mix, with its weight: `9:get 013001 80`. Can be given several times
    #[arg(long, value_name = "WEIGHT:REQUEST", conflicts_with = "words")]
    mix: Vec<Operation>,

    /// Over TCP instead of UDP
    #[arg(long, help_heading = LOAD)]
    tcp: bool,

    /// Send from this port instead of one that the system chooses. Most devices answer to port 3610, wherever the
    /// request came from: use `-c 1 --local-port 3610` for them. The answers may then come from any port
    #[arg(long, value_name = "PORT", conflicts_with = "tcp", help_heading = LOAD)]
    local_port: Option<u16>,
}

impl Drive for Echonet {
    fn load_args(&self) -> &LoadArgs {
        &self.load
    }

    fn scenario(&self) -> Result<Scenario, Invalid> {
        self.load.target.without_login()?;
        let operations = self.operations()?;
        let carrier = if self.tcp { Carrier::Stream } else { Carrier::Datagrams };
        let transport = Transport { port: PORT, carrier, ..Transport::default() };
        let mut load = self.load.load(transport)?;
        if load.depth > LARGEST_WINDOW {
            return Err(Invalid::new("--window", load.depth, format!("at most {LARGEST_WINDOW}: a TID has 16 bits")));
        }
        if let (Endpoint::Udp(server), Some(port)) = (&load.endpoint, self.local_port) {
            if load.connections > 1 {
                let expected = "1 with --local-port, because the port can be used by one socket only";
                return Err(Invalid::new("--connections", load.connections, expected));
            }
            let any =
                if server.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
            load.local = Some(SocketAddr::new(any, port));
        }
        let what = operations.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let weights: Vec<String> =
            operations.iter().map(|operation| format!("{}:{operation}", operation.weight)).collect();
        let settings = [
            ("transport", json!(if self.tcp { "tcp" } else { "udp" })),
            ("requests", json!(weights)),
            ("local_port", json!(self.local_port)),
        ];
        let (window, verify) = (load.depth, self.load.verify);
        Ok(if self.tcp {
            let protocol = EchonetTcp::new(operations, window, verify).map_err(Invalid::because)?;
            self.load.scenario(load, "echonet", &what, settings, protocol)
        } else {
            let protocol = EchonetUdp::new(operations, window, verify).map_err(Invalid::because)?;
            self.load.scenario(load, "echonet", &what, settings, protocol)
        })
    }
}

impl Echonet {
    fn operations(&self) -> Result<Vec<Operation>, Invalid> {
        if !self.mix.is_empty() {
            return Ok(self.mix.clone());
        }
        let text = if self.words.is_empty() { "get 0EF001 80".to_owned() } else { self.words.join(" ") };
        Ok(vec![text.parse().map_err(Invalid::because)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::scenario;

    #[test]
    fn command_lines_become_scenarios() {
        #[track_caller]
        fn check(line: &str, expected: Result<&str, &str>) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let found = scenario(&words).map(|scenario| scenario.description);
            assert_eq!(found.as_deref().map_err(String::as_str), expected);
        }
        let description = "echonet udp 127.0.0.1:3610, 1 connection, 1 thread, closed loop, 10s: Get 0EF001 80";
        check("echonet 127.0.0.1 -c 1 -t 1", Ok(description));
        let description = "echonet 127.0.0.1:1, 2 connections, 8 deep, 1 thread, closed loop, 10s: SetC 013001 80=30";
        check("echonet 127.0.0.1:1 -t1 -c2 --tcp --window 8 set 013001 80=30", Ok(description));
        let problem =
            "--connections is `2`, expected 1 with --local-port, because the port can be used by one socket only";
        check("echonet 127.0.0.1 -c 2 --local-port 3610", Err(problem));
        check(
            "echonet 127.0.0.1 --window 20000",
            Err("--window is `20000`, expected at most 16384: a TID has 16 bits"),
        );
        check(
            "echonet a:b@127.0.0.1",
            Err("TARGET's user is `a`, expected none: this protocol has no place for a user and a password"),
        );
        check("echonet 127.0.0.1 put", Err("`put` is not a request, expected get, set or setget"));
    }
}
