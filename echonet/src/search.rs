//! The search for nodes: by multicast, and address by address where no multicast comes through, as in containers and
//! behind routers.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use echonet_lite::controller::{NodeAddr, NodeInfo, Request};
use echonet_lite::net::{Endpoint, Error};
use echonet_lite::wire::Eoj;
#[cfg(any(feature = "mqtt", feature = "web"))]
use echonet_lite::wire::PropertySet;
use tokio::task::JoinSet;

use crate::commands::Options;
use crate::failure::Failure;
use crate::names;

/// Addresses of one subnet: a /22.
const ADDRESSES: u32 = 1024;
/// Addresses that are asked at a time. The kernel keeps a datagram for each absent address until ARP gives up, and a socket
/// has room for about 270 of them.
const AT_ONCE: usize = 64;
/// How long one of many addresses may take to answer.
const SWEPT: Duration = Duration::from_secs(1);
/// How long a node that is named by its address may take: two tries.
const NAMED: Duration = Duration::from_secs(5);
/// How long a smart meter may take, with a radio line of a low rate.
#[cfg(feature = "serial")]
const METER_ANSWERED: Duration = Duration::from_secs(20);
/// How long a found node may take to list its objects.
const LISTED: Duration = Duration::from_secs(10);
/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(20);

/// An address to ask.
#[derive(Clone, Copy, Debug)]
struct Place {
    addr: NodeAddr,
    /// How long its answer is waited for.
    patience: Duration,
    /// True if announcements of its node may not arrive here.
    #[cfg_attr(not(any(feature = "mqtt", feature = "web")), expect(dead_code, reason = "only servers follow values"))]
    is_deaf: bool,
}

/// The addresses that are asked besides the multicast group.
#[derive(Clone, Debug)]
pub(crate) struct Places(Arc<[Place]>);

impl Places {
    /// Reads addresses (`192.168.5.7`, `fe80::5%eth0`) and subnets (`192.168.5.0/24`).
    pub(crate) fn of(texts: &[String], options: &Options) -> Result<Self, Failure> {
        let mut places = Vec::new();
        #[cfg(feature = "serial")]
        if options.meter.is_some() {
            places.push(Place { addr: crate::route_b::METER.into(), patience: METER_ANSWERED, is_deaf: false });
        }
        for text in texts {
            match text.split_once('/') {
                Some((network, length)) => places.extend(subnet(text, network, length)?),
                None => places.push(Place { addr: names::target(text, options)?, patience: NAMED, is_deaf: true }),
            }
        }
        Ok(Self(places.into()))
    }

    /// Searches for nodes by multicast for as long as given, and at each of the addresses. Returns the nodes that answered.
    pub(crate) async fn search(&self, endpoint: &Endpoint, time: Duration) -> Result<Vec<NodeInfo>, Error> {
        let (found, asked) = tokio::join!(endpoint.discover(time), self.ask(endpoint));
        let mut found = found?;
        let end = tokio::time::Instant::now() + LISTED;
        while asked.iter().any(|addr| !is_known(endpoint, *addr)) && tokio::time::Instant::now() < end {
            tokio::time::sleep(LOOK).await;
        }
        for info in asked.into_iter().filter_map(|addr| endpoint.node(addr)) {
            found.retain(|other| other.addr != info.addr);
            found.push(info);
        }
        found.sort_by_key(|node| node.addr);
        Ok(found)
    }

    /// The facts about a node, for programs that ask it for values: announcements of a node that was named do not arrive where
    /// no multicast comes through, so it announces nothing.
    #[cfg(any(feature = "mqtt", feature = "web"))]
    pub(crate) fn mended(&self, mut info: NodeInfo) -> NodeInfo {
        if self.0.iter().any(|place| place.addr == info.addr && place.is_deaf) {
            let maps = info.objects.iter_mut().filter_map(|object| object.maps.as_mut());
            maps.for_each(|maps| maps.announced = PropertySet::EMPTY);
        }
        info
    }

    /// Asks at each address; returns those where a node answered.
    async fn ask(&self, endpoint: &Endpoint) -> Vec<NodeAddr> {
        let (mut found, mut under_way) = (Vec::new(), JoinSet::new());
        for &Place { addr, patience, .. } in self.0.iter() {
            if under_way.len() == AT_ONCE
                && let Some(Ok(answered)) = under_way.join_next().await
            {
                found.extend(answered);
            }
            under_way.spawn(ask(endpoint.clone(), addr, patience));
        }
        while let Some(answered) = under_way.join_next().await {
            // A task that panicked is no answer.
            found.extend(answered.ok().flatten());
        }
        found
    }
}

/// Asks at an address, and has a node that is new there interviewed.
async fn ask(endpoint: Endpoint, addr: NodeAddr, patience: Duration) -> Option<NodeAddr> {
    let request = Request::get(Eoj::NODE_PROFILE, &[0xD6, 0x83]).fresh().tries(2).timeout(patience);
    endpoint.request(addr, &request).await.ok()?;
    if !is_known(&endpoint, addr) {
        endpoint.interview(addr);
    }
    Some(addr)
}

fn is_known(endpoint: &Endpoint, addr: NodeAddr) -> bool {
    endpoint.node(addr).is_some_and(|info| info.is_ready)
}

/// The hosts of a subnet.
fn subnet(text: &str, network: &str, length: &str) -> Result<impl Iterator<Item = Place>, Failure> {
    let failed = |why: &str| Failure::Input(format!("`{text}`: {why}"));
    let network = match network.parse::<IpAddr>() {
        Ok(IpAddr::V4(network)) => u32::from(network),
        Ok(IpAddr::V6(_)) => return Err(failed("a subnet of IPv6 has too many addresses to ask each of them")),
        Err(_) => return Err(failed("no subnet; one is written 192.168.5.0/24")),
    };
    let length =
        length.parse::<u32>().ok().filter(|length| *length <= 32).ok_or_else(|| failed("a length is 0 to 32"))?;
    let count = 1_u64 << (32 - length);
    if count > u64::from(ADDRESSES) {
        return Err(failed(&format!("more than {ADDRESSES} addresses; the largest subnet is a /22")));
    }
    let first = network & !(count as u32).wrapping_sub(1);
    // The first and the last address of a subnet are no hosts, unless there is no room for others.
    let edge = u32::from(count > 2);
    let place = |ip| Place { addr: Ipv4Addr::from(ip).into(), patience: SWEPT, is_deaf: true };
    Ok((first + edge..=first + (count as u32 - 1) - edge).map(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_subnets() {
        for (text, expected) in [
            ("192.0.2.0/24", Ok((254, "192.0.2.1", "192.0.2.254"))),
            ("192.0.2.77/24", Ok((254, "192.0.2.1", "192.0.2.254"))),
            ("192.0.2.8/30", Ok((2, "192.0.2.9", "192.0.2.10"))),
            ("192.0.2.8/31", Ok((2, "192.0.2.8", "192.0.2.9"))),
            ("192.0.2.8/32", Ok((1, "192.0.2.8", "192.0.2.8"))),
            ("255.255.252.0/22", Ok((1022, "255.255.252.1", "255.255.255.254"))),
            ("10.0.0.0/21", Err("more than 1024")),
            ("10.0.0.0/0", Err("more than 1024")),
            ("10.0.0.0/33", Err("0 to 32")),
            ("10.0.0/24", Err("no subnet")),
            ("fe80::/64", Err("IPv6")),
        ] {
            let (network, length) = text.split_once('/').unwrap();
            match (subnet(text, network, length), expected) {
                (Ok(hosts), Ok((count, first, last))) => {
                    let hosts: Vec<_> = hosts.map(|place| place.addr.to_string()).collect();
                    let ends = (hosts.len(), hosts[0].as_str(), hosts[hosts.len() - 1].as_str());
                    assert_eq!(ends, (count, first, last), "{text}");
                }
                (Err(error), Err(why)) => assert!(error.to_string().contains(why), "{text}: {error}"),
                (other, _) => panic!("{text}: {:?}", other.map(Iterator::count).map_err(|error| error.to_string())),
            }
        }
    }
}
