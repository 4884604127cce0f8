//! A controller's answers, notifications and knowledge of nodes.

use serde_core::ser::{SerializeStruct, Serializer};
use serde_core::{Deserialize, Deserializer, Serialize};

use super::{Bytes, Epc, List, list, text};
use crate::controller::{Answer, NodeAddr, NodeInfo, Notification, ObjectInfo, Outcome, PropertyMaps, Status};
use crate::wire::Property;

impl Serialize for NodeAddr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for NodeAddr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "the address of a node, such as \"192.168.1.5\" or \"fe80::5%2\"", |text| text.parse().ok())
    }
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::KnownRefused => "knownRefused",
            Self::Omitted => "omitted",
        })
    }
}

impl Serialize for Outcome<'_> {
    /// `{"epc": "0xB0", "written": false, "status": "done", "edt": "64"}`
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut outcome = serializer.serialize_struct("Outcome", 4)?;
        outcome.serialize_field("epc", &Epc(self.epc))?;
        outcome.serialize_field("written", &self.written)?;
        outcome.serialize_field("status", &self.status)?;
        outcome.serialize_field("edt", &self.value.map(Bytes))?;
        outcome.end()
    }
}

impl Serialize for Answer {
    /// `{"node": …, "eoj": …, "service": "Get", "seconds": 0.001, "outcomes": […]}`
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut answer = serializer.serialize_struct("Answer", 5)?;
        answer.serialize_field("node", &self.node)?;
        answer.serialize_field("eoj", &self.eoj)?;
        answer.serialize_field("service", &self.service)?;
        answer.serialize_field("seconds", &self.response_time.as_secs_f64())?;
        answer.serialize_field("outcomes", &Outcomes(self))?;
        answer.end()
    }
}

struct Outcomes<'a>(&'a Answer);

impl Serialize for Outcomes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        list(serializer, self.0.outcomes())
    }
}

impl Serialize for Notification {
    /// `{"node": …, "eoj": …, "deoj": …, "confirmed": false, "properties": [{"epc": "0x80", "edt": "30"}]}`
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut notification = serializer.serialize_struct("Notification", 5)?;
        notification.serialize_field("node", &self.node)?;
        notification.serialize_field("eoj", &self.eoj)?;
        notification.serialize_field("deoj", &self.deoj)?;
        notification.serialize_field("confirmed", &self.confirmed)?;
        notification.serialize_field("properties", &Announced(self))?;
        notification.end()
    }
}

struct Announced<'a>(&'a Notification);

impl Serialize for Announced<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        list(serializer, self.0.properties().map(|(epc, edt)| Property { epc, edt }))
    }
}

impl Serialize for PropertyMaps {
    /// `{"get": […], "set": […], "announce": […]}`
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut maps = serializer.serialize_struct("PropertyMaps", 3)?;
        maps.serialize_field("get", &self.readable)?;
        maps.serialize_field("set", &self.writable)?;
        maps.serialize_field("announce", &self.announced)?;
        maps.end()
    }
}

impl Serialize for ObjectInfo {
    /// `{"eoj": …, "maps": …}`, null where they are not known.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("ObjectInfo", 2)?;
        object.serialize_field("eoj", &self.eoj)?;
        object.serialize_field("maps", &self.maps)?;
        object.end()
    }
}

impl Serialize for NodeInfo {
    /// `{"addr": …, "addrs": […], "profile": …, "objects": […], "identification": "FE…", "maker": "000077"}`
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut node = serializer.serialize_struct("NodeInfo", 6)?;
        node.serialize_field("addr", &self.addr)?;
        node.serialize_field("addrs", &List(self.addrs.iter()))?;
        node.serialize_field("profile", &self.profile)?;
        node.serialize_field("objects", &List(self.objects.iter()))?;
        node.serialize_field("identification", &self.identification.as_deref().map(Bytes))?;
        node.serialize_field("maker", &self.maker.as_ref().map(|code| Bytes(code)))?;
        node.end()
    }
}
