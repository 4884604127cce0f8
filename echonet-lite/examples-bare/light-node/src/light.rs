//! The light itself: on or off, and how bright. The lamp is not there; a real one would follow `on` and `level`.

use echonet_lite::class::{Data, GENERAL_LIGHTING};
use echonet_lite::node::{CommonProperties, Config, Identity, Object, PropertyAccess, Refused, put};
use echonet_lite::wire::Eoj;

/// The code for makers that have none is 00 00 00; experiments use FF FF FF.
const MAKER: [u8; 3] = [0xFF, 0xFF, 0xFF];

/// The node's own part: who it is.
pub(crate) const CONFIG: Config = Config::new(Identity::new(MAKER, 0x0002_9001));

const LEVEL: u8 = 0xB0;
const MODE: u8 = 0xB6;
/// The only mode that this light has: normal lighting.
const NORMAL: u8 = 0x42;

/// A light of the class general lighting (0x0290).
pub(crate) struct Light {
    common: CommonProperties,
    /// Percent.
    level: u8,
}

impl Light {
    pub(crate) const EOJ: Eoj = GENERAL_LIGHTING.code.instance(1);

    pub(crate) const fn new() -> Self {
        Self { common: CommonProperties::new(MAKER), level: 100 }
    }
}

impl Object for Light {
    fn eoj(&self) -> Eoj {
        Self::EOJ
    }

    fn access(&self) -> &PropertyAccess {
        // What the class requires of every light, and the level, of which it tells everyone too.
        const OWN: PropertyAccess = PropertyAccess::new(&[], &[], &[LEVEL]);
        const ACCESS: PropertyAccess = GENERAL_LIGHTING.offering(&[LEVEL]).union(OWN);
        &ACCESS
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        match epc {
            LEVEL => put(edt, &[self.level]),
            MODE => put(edt, &[NORMAL]),
            _ => self.common.get(epc, edt),
        }
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        check(epc, edt)?;
        match (epc, edt) {
            (LEVEL, &[level]) => self.level = level,
            (MODE, &[NORMAL]) => {}
            (MODE, _) => return Err(Refused::Value),
            _ => return self.common.set(epc, edt),
        }
        Ok(())
    }
}

/// Refuses what the class's table does not allow, for one-byte numbers and states.
fn check(epc: u8, edt: &[u8]) -> Result<(), Refused> {
    let property = GENERAL_LIGHTING.property(epc).ok_or(Refused::NoProperty)?;
    let &[value] = edt else { return Err(Refused::Length) };
    let allowed = match property.data {
        Data::Number(number) => (number.minimum..=number.maximum).contains(&value.into()),
        Data::State(states) => states.all.iter().any(|state| state.code == u64::from(value) && !state.read_only),
        _ => true,
    };
    if allowed { Ok(()) } else { Err(Refused::Value) }
}
