//! The output of defmt (feature `defmt`), where it is not that of the fields.

use defmt::{Format, Formatter, write};

use super::{ClassCode, Eoj, Message, PropertySet};

impl Format for ClassCode {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{=u16:04X}", self.to_u16());
    }
}

impl Format for Eoj {
    fn format(&self, f: Formatter<'_>) {
        let [group, class, instance] = self.to_bytes();
        write!(f, "{=u8:02X}{=u8:02X}{=u8:02X}", group, class, instance);
    }
}

/// The bits, the lowest for 0x80.
impl Format for PropertySet {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "{=u128:#034x}", self.to_bits());
    }
}

/// The header, and the bytes of its lists.
impl Format for Message<'_> {
    fn format(&self, f: Formatter<'_>) {
        let lists = self.as_bytes().get(super::HEADER_LEN - 1..).unwrap_or_default();
        write!(f, "tid {=u16:04X} {} > {} {} {=[u8]:02X}", self.tid(), self.seoj(), self.deoj(), self.esv(), lists);
    }
}
