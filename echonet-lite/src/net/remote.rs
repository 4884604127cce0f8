//! Objects of other nodes, by typed properties.

use super::blocking;
use super::{Device, Endpoint, Error};
use crate::class::{EdtError, Property};
use crate::controller::{NodeAddr, PropertyError, Request};
use crate::wire::{EDT_MAX, Eoj};

/// An object of another node; from [`Endpoint::object`] or [`blocking::Endpoint::object`].
///
/// ```no_run
/// use echonet_lite::class::general_lighting::{GENERAL_LIGHTING, LightLevel, OperationStatus};
/// # use echonet_lite::net::{Endpoint, Error};
///
/// # async fn dim(endpoint: Endpoint, node: std::net::IpAddr) -> Result<(), Error> {
/// let light = endpoint.object(node, GENERAL_LIGHTING.code.instance(1));
/// println!("{}", light.get::<LightLevel>().await?);
/// light.set(LightLevel::of::<50>()).await?;
/// light.set(OperationStatus::On).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Remote<E> {
    endpoint: E,
    node: NodeAddr,
    eoj: Eoj,
}

impl<D: Device + Send + 'static> Endpoint<D> {
    /// An object of another node, to get and set properties by their types.
    pub fn object(&self, node: impl Into<NodeAddr>, eoj: Eoj) -> Remote<&Self> {
        Remote { endpoint: self, node: node.into(), eoj }
    }
}

impl<D: Device + Send + 'static> Remote<&Endpoint<D>> {
    /// Reads a property.
    ///
    /// # Errors
    /// The request failed, or the object gave no value of that type.
    pub async fn get<P: Property>(&self) -> Result<P, Error> {
        crate::controller::has::<P>(self.eoj)?;
        Ok(self.endpoint.request(self.node, &Request::get(self.eoj, &[P::EPC])).await?.read()?)
    }

    /// Writes a property and waits for the confirmation.
    ///
    /// # Errors
    /// The request failed, or the object refused.
    pub async fn set<P: Property>(&self, value: P) -> Result<(), Error> {
        let (edt, length) = edt(self.eoj, &value)?;
        let write = (P::EPC, &edt[..length]);
        Ok(self.endpoint.request(self.node, &Request::set(self.eoj, &[write])).await?.written::<P>()?)
    }
}

impl<D: Device> blocking::Endpoint<D> {
    /// An object of another node, to get and set properties by their types.
    pub fn object(&mut self, node: impl Into<NodeAddr>, eoj: Eoj) -> Remote<&mut Self> {
        Remote { endpoint: self, node: node.into(), eoj }
    }
}

impl<D: Device> Remote<&mut blocking::Endpoint<D>> {
    /// Reads a property.
    ///
    /// # Errors
    /// The request failed, or the object gave no value of that type.
    pub fn get<P: Property>(&mut self) -> Result<P, Error> {
        crate::controller::has::<P>(self.eoj)?;
        Ok(self.endpoint.request(self.node, &Request::get(self.eoj, &[P::EPC]))?.read()?)
    }

    /// Writes a property and waits for the confirmation.
    ///
    /// # Errors
    /// The request failed, or the object refused.
    pub fn set<P: Property>(&mut self, value: P) -> Result<(), Error> {
        let (edt, length) = edt(self.eoj, &value)?;
        let write = (P::EPC, &edt[..length]);
        Ok(self.endpoint.request(self.node, &Request::set(self.eoj, &[write]))?.written::<P>()?)
    }
}

/// A value as EDT, where the object may have its property.
fn edt<P: Property>(eoj: Eoj, value: &P) -> Result<([u8; EDT_MAX], usize), PropertyError> {
    crate::controller::has::<P>(eoj)?;
    if !value.is_settable() {
        return Err(PropertyError::Value(EdtError::Value));
    }
    let mut edt = [0; EDT_MAX];
    let length = value.encode(&mut edt).map_err(PropertyError::Value)?;
    Ok((edt, length))
}
