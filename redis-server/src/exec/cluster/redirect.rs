//! Where clients are sent for a slot that another node has.

use crate::clients::client::{ClientShared, flag};
use crate::cluster::Endpoint;
use crate::config::settings;
use crate::exec::core::Instance;
use crate::protocol::error::Error;
/// The error for a call whose keys another node has, or no node.
pub(crate) fn moved(instance: &Instance, client: &ClientShared, slot: u16, owner: u16) -> Error {
    redirect(instance, client, "MOVED", slot, owner)
}

pub(crate) fn redirect(instance: &Instance, client: &ClientShared, word: &str, slot: u16, node: u16) -> Error {
    let routing = instance.cluster.routing();
    let Some(node) = routing.node(node) else {
        return Error::Elsewhere("CLUSTERDOWN Hash slot not served".to_owned());
    };
    let port = port_for(client, node);
    Error::Elsewhere(format!("{word} {slot} {}:{port}", preferred(instance, node)))
}

/// By what name clients are sent to a node (`cluster-preferred-endpoint-type`).
pub(crate) fn preferred<'n>(instance: &Instance, node: &'n Endpoint) -> &'n str {
    match instance.config.word(settings::CLUSTER_PREFERRED_ENDPOINT_TYPE) {
        "ip" => &node.ip,
        "hostname" if node.hostname.is_empty() => "?",
        "hostname" => &node.hostname,
        _ => "",
    }
}

/// The port at which a client reaches a node as it has reached this one: with TLS or without, if the node serves both.
pub(crate) fn port_for(client: &ClientShared, node: &Endpoint) -> u16 {
    let (wanted, other) =
        if client.has_flag(flag::TLS) { (node.tls_port, node.port) } else { (node.port, node.tls_port) };
    if wanted == 0 { other } else { wanted }
}
