//! An object that keeps the values of its properties itself.

use core::fmt;

use super::{CommonProperties, Node, NotifyError, Object, Objects, PropertyAccess, Refused, check, put};
use crate::class::{Class, Property};
use crate::wire::{EDT_MAX, Eoj};

/// Bytes that [`Stored`] has for values unless its type says otherwise: each takes two and its own length.
pub const DEFAULT_ROOM: usize = 64;

/// The bytes before each value: its EPC and its length.
const HEAD: usize = 2;

/// An object of a class that keeps values: those that it is made with, and those of every device. It accepts all that
/// the table of its class allows, and no more. A node of several classes is an array of these. To compute a value when
/// it is asked for, or to refuse one that the class allows, implement [`Object`].
///
/// ```
/// use echonet_lite::class::general_lighting::{GENERAL_LIGHTING, LightLevel, OperationMode};
/// use echonet_lite::class::temperature_sensor::{TEMPERATURE_SENSOR, Value};
/// use echonet_lite::node::{Config, Identity, Node, Stored};
///
/// let maker = [0, 0, 0x77];
/// let light = Stored::new(&GENERAL_LIGHTING, 1, maker).with(LightLevel::of::<100>()).with(OperationMode::Normal);
/// let sensor = Stored::new(&TEMPERATURE_SENSOR, 1, maker).with(Value::of::<215>());
/// let mut node = Node::new(Config::new(Identity::new(maker, 1)), [light, sensor]);
///
/// node.change(TEMPERATURE_SENSOR.code.instance(1), Value::of::<216>())?;
/// assert_eq!(node.objects()[1].value(), Some(Value::of::<216>()));
/// # Ok::<(), echonet_lite::node::NotifyError>(())
/// ```
#[derive(Clone)]
pub struct Stored<const ROOM: usize = DEFAULT_ROOM> {
    class: &'static Class,
    instance: u8,
    access: PropertyAccess,
    told: fn(&Self, u8),
    /// 0x80, 0x81, 0x82, 0x88, 0x8A.
    pub common: CommonProperties,
    used: usize,
    bytes: [u8; ROOM],
}

impl Stored {
    /// An object with what every device of the class offers; the values of its own mandatory properties are still to be given.
    /// It has room for values of [`DEFAULT_ROOM`] bytes; [`with_room`](Self::with_room) takes the room from its type.
    pub const fn new(class: &'static Class, instance: u8, maker: [u8; 3]) -> Self {
        Self::with_room(class, instance, maker)
    }
}

impl<const ROOM: usize> Stored<ROOM> {
    /// The same with another room, which its type names: `Stored::<6>::with_room(…)`.
    pub const fn with_room(class: &'static Class, instance: u8, maker: [u8; 3]) -> Self {
        let (access, common) = (class.mandatory(), CommonProperties::new(maker));
        Self { class, instance, access, told: |_, _| {}, common, used: 0, bytes: [0; ROOM] }
    }

    /// With this value of a property, which others may then read, write and be told of, where the class has that.
    ///
    /// # Panics
    /// The class has no such property, or there is no room for the value.
    #[must_use]
    pub fn with<P: Property>(mut self, value: P) -> Self {
        let mut edt = [0; EDT_MAX];
        let length = value.encode(&mut edt).ok();
        let edt = length.and_then(|length| edt.get(..length));
        assert!(
            edt.is_some_and(|edt| self.offer(P::EPC, edt)),
            "an object has room for the values that it is made with"
        );
        self
    }

    /// The part of [`with`](Self::with) that is the same for all properties: once on the chip.
    #[inline(never)]
    fn offer(&mut self, epc: u8, edt: &[u8]) -> bool {
        let announced = self.class.property(epc).is_some_and(|spec| spec.access.inf.is_applicable());
        self.access = self.access.union(self.class.offering(&[epc])).with(epc, [false, false, announced]);
        self.store(epc, edt).is_ok()
    }

    /// With a function that is called when others have set a property, which it gets the code of.
    #[must_use]
    pub fn on_set(self, told: fn(&Self, u8)) -> Self {
        Self { told, ..self }
    }

    /// The value of a property, if it has one.
    pub fn value<P: Property>(&self) -> Option<P> {
        let mut edt = [0; EDT_MAX];
        let length = self.get(P::EPC, &mut edt).ok()?;
        P::decode(&edt[..length]).ok()
    }

    /// Changes a value without telling anybody; [`Node::change`] tells. False if there is no room for it.
    pub fn put<P: Property>(&mut self, value: P) -> bool {
        let mut edt = [0; EDT_MAX];
        value.encode(&mut edt).is_ok_and(|length| self.store(P::EPC, &edt[..length]).is_ok())
    }

    /// Changes a value that the object has; says whether it is another one now.
    #[inline(never)]
    fn replace(&mut self, epc: u8, edt: &[u8]) -> Result<bool, NotifyError> {
        let mut before = [0; EDT_MAX];
        let had = self.get(epc, &mut before).map_err(|_| NotifyError::NoSuchProperty)?;
        self.store(epc, edt).map_err(|_| NotifyError::NoSuchProperty)?;
        Ok(before[..had] != *edt)
    }

    /// Where the value of a property is, with its head.
    fn place(&self, epc: u8) -> Option<core::ops::Range<usize>> {
        let mut at = 0;
        while at < self.used {
            let end = at + HEAD + usize::from(self.bytes[at + 1]);
            if self.bytes[at] == epc {
                return Some(at..end);
            }
            at = end;
        }
        None
    }

    fn store(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        if self.common.store(epc, edt) {
            return Ok(());
        }
        let before = self.place(epc);
        if let Some(place) = before.clone().filter(|place| place.len() == HEAD + edt.len()) {
            self.bytes[place.start + HEAD..place.end].copy_from_slice(edt);
            return Ok(());
        }
        let freed = before.clone().map_or(0, |place| place.len());
        if self.used - freed + HEAD + edt.len() > ROOM {
            return Err(Refused::NotNow);
        }
        if let Some(place) = before {
            self.bytes.copy_within(place.end..self.used, place.start);
            self.used -= freed;
        }
        let place = &mut self.bytes[self.used..][..HEAD + edt.len()];
        (place[0], place[1]) = (epc, edt.len() as u8);
        place[HEAD..].copy_from_slice(edt);
        self.used += place.len();
        Ok(())
    }
}

impl<const ROOM: usize> Object for Stored<ROOM> {
    fn eoj(&self) -> Eoj {
        self.class.code.instance(self.instance)
    }

    fn access(&self) -> &PropertyAccess {
        &self.access
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        match self.place(epc) {
            Some(place) => put(edt, &self.bytes[place][HEAD..]),
            None => self.common.get(epc, edt),
        }
    }

    fn check(&self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        check(self.class, epc, edt)
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        match self.common.set(epc, edt) {
            Err(Refused::NoProperty) => self.store(epc, edt)?,
            done => done?,
        }
        (self.told)(self, epc);
        Ok(())
    }
}

impl<const ROOM: usize> fmt::Debug for Stored<ROOM> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored").field("eoj", &self.eoj()).field("common", &self.common).finish_non_exhaustive()
    }
}

impl<O: Objects, const STORE: usize> Node<O, STORE> {
    /// Changes a value that a [`Stored`] object has, and announces it if it is another one than before.
    ///
    /// # Errors
    /// There is no such object, or it has no such property or no room for the value.
    pub fn change<P: Property, const ROOM: usize>(&mut self, eoj: Eoj, value: P) -> Result<(), NotifyError>
    where
        O: AsMut<[Stored<ROOM>]>,
    {
        let object = self.objects_mut().as_mut().iter_mut().find(|object| object.eoj() == eoj);
        let object = object.ok_or(NotifyError::NoSuchObject)?;
        let mut edt = [0; EDT_MAX];
        let length = value.encode(&mut edt).map_err(|_| NotifyError::NoSuchProperty)?;
        if object.replace(P::EPC, &edt[..length])? { self.notify(eoj, P::EPC) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::general_lighting::{
        GENERAL_LIGHTING, LIGHT_LEVEL, LightLevel, OPERATION_MODE, OperationMode, OperationStatus,
    };
    use crate::class::home_air_conditioner::InstallationLocation;
    use crate::node::{Config, Identity};

    const MAKER: [u8; 3] = [0, 0, 0x77];

    fn light() -> Stored<6> {
        Stored::with_room(&GENERAL_LIGHTING, 1, MAKER).with(LightLevel::of::<50>()).with(OperationMode::Normal)
    }

    #[test]
    fn an_object_needs_neither_its_room_named_nor_a_function() {
        let light = Stored::new(&GENERAL_LIGHTING, 1, MAKER).with(LightLevel::of::<50>()).with(OperationMode::Normal);
        let mut node = Node::new(Config::new(Identity::new(MAKER, 1)), [light]);
        node.change(GENERAL_LIGHTING.code.instance(1), LightLevel::of::<51>()).expect("it is there");
        assert_eq!(node.objects()[0].value(), Some(LightLevel::of::<51>()));
    }

    #[test]
    fn accepted_values_are_stored_and_reported() {
        use core::sync::atomic::{AtomicU8, Ordering};
        static TOLD: AtomicU8 = AtomicU8::new(0);
        let mut light = light().on_set(|light, epc| {
            assert!(light.value::<LightLevel>().is_some());
            TOLD.store(epc, Ordering::Relaxed);
        });
        for (epc, edt, expected) in [
            (LIGHT_LEVEL, &[7][..], Ok(())),
            (LIGHT_LEVEL, &[101], Err(Refused::Value)),
            (LIGHT_LEVEL, &[1, 1], Err(Refused::Length)),
            (0x80, &[0x31], Ok(())),
            (0x80, &[0x32], Err(Refused::Value)),
            (0x81, &[0x08], Ok(())),
        ] {
            TOLD.store(0, Ordering::Relaxed);
            let done = light.check(epc, edt).and_then(|()| light.set(epc, edt));
            assert_eq!(done, expected, "{epc:02X} {edt:02X?}");
            assert_eq!(TOLD.load(Ordering::Relaxed) == epc, done.is_ok(), "{epc:02X} {edt:02X?}");
        }
        assert_eq!(light.value(), Some(LightLevel::of::<7>()));
        assert_eq!(light.value(), Some(OperationStatus::Off));
        assert!(light.put(OperationStatus::On) && light.common.on);
    }

    #[test]
    fn values_of_any_length_replace_each_other_as_far_as_there_is_room() {
        let mut light = light();
        assert_eq!(light.store(LIGHT_LEVEL, &[1, 2, 3]), Err(Refused::NotNow), "6 bytes are taken of 6");
        assert_eq!(light.store(LIGHT_LEVEL, &[]), Ok(()));
        assert_eq!(light.store(OPERATION_MODE, &[0x43, 0x44]), Ok(()));
        let mut edt = [0; EDT_MAX];
        assert_eq!((light.get(LIGHT_LEVEL, &mut edt), light.get(OPERATION_MODE, &mut edt)), (Ok(0), Ok(2)));
        assert_eq!(edt[..2], [0x43, 0x44]);
        assert_eq!(light.get(0xC0, &mut edt), Err(Refused::NoProperty));
        assert!(light.value::<InstallationLocation>().is_some(), "what every device has, under any class");
    }

    #[test]
    fn it_is_whole_with_its_mandatory_values_and_tells_changes() {
        let faults = |light| {
            let mut faults = 0;
            Node::new(Config::new(Identity::new(MAKER, 1)), [light]).validate(&mut |_| faults += 1);
            faults
        };
        assert_eq!(faults(light()), 0);
        assert_ne!(faults(Stored::with_room(&GENERAL_LIGHTING, 1, MAKER)), 0, "0xB6 has no value");
        let mut node = Node::new(Config::new(Identity::new(MAKER, 1)), [light()]);
        let (eoj, mut buffer) = (GENERAL_LIGHTING.code.instance(1), [0; 512]);
        let mut told = |node: &mut Node<[Stored<6>; 1]>| {
            core::iter::from_fn(|| node.poll_transmit(crate::node::Instant::ZERO, &mut buffer)).count()
        };
        assert_eq!(told(&mut node), 1, "it announces itself");
        node.change(eoj, LightLevel::of::<50>()).expect("it is there");
        assert_eq!(told(&mut node), 0, "nothing has changed");
        node.change(eoj, LightLevel::of::<51>()).expect("it is there");
        assert_eq!(told(&mut node), 1);
        assert_eq!(node.change(eoj.with_instance(2), LightLevel::of::<51>()), Err(NotifyError::NoSuchObject));
    }
}
