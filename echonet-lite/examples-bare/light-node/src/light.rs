//! The light itself: on or off, and how bright. The lamp is not there; a real one would follow `on` and `level`.

use echonet_lite::class::general_lighting::{
    GENERAL_LIGHTING, LIGHT_LEVEL, LightLevel, OPERATION_MODE, OperationMode,
};
use echonet_lite::node::{CommonProperties, Config, Identity, Object, PropertyAccess, Refused, accept, show};
use echonet_lite::wire::Eoj;

/// The code for makers that have none is 00 00 00; experiments use FF FF FF.
const MAKER: [u8; 3] = [0xFF, 0xFF, 0xFF];

/// The node's own part: its identity.
pub(crate) const CONFIG: Config = Config::new(Identity::new(MAKER, 0x0002_9001));

/// A light of the class general lighting (0x0290).
pub(crate) struct Light {
    common: CommonProperties,
    level: LightLevel,
}

impl Light {
    pub(crate) const EOJ: Eoj = GENERAL_LIGHTING.code.instance(1);

    pub(crate) const fn new() -> Self {
        Self { common: CommonProperties::new(MAKER), level: LightLevel::MAX }
    }
}

impl Object for Light {
    fn eoj(&self) -> Eoj {
        Self::EOJ
    }

    fn access(&self) -> &PropertyAccess {
        // The properties that the class requires of every light, and the level, which this light announces too.
        const OWN: PropertyAccess = PropertyAccess::new(&[], &[], &[LIGHT_LEVEL]);
        const ACCESS: PropertyAccess = GENERAL_LIGHTING.offering(&[LIGHT_LEVEL]).union(OWN);
        &ACCESS
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        match epc {
            LIGHT_LEVEL => show(&self.level, edt),
            // The only mode that this light has.
            OPERATION_MODE => show(&OperationMode::Normal, edt),
            _ => self.common.get(epc, edt),
        }
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        match epc {
            LIGHT_LEVEL => self.level = accept(edt)?,
            OPERATION_MODE if accept::<OperationMode>(edt)? != OperationMode::Normal => return Err(Refused::Value),
            OPERATION_MODE => {}
            _ => self.common.set(epc, edt)?,
        }
        Ok(())
    }
}
