//! Frames as one line of text, in the manner of tcpdump.

use core::fmt;

use super::{Esv, Frame, Message, Properties};

/// `tid 0001 05FF01 > 029001 Get 80`; values in hexadecimal: `80=30`; the lists of a SetGet are divided by `/`.
impl fmt::Display for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let esv: Esv = self.esv();
        write!(f, "tid {:04X} {} > {} {esv}", self.tid(), self.seoj(), self.deoj())?;
        list(f, self.properties())?;
        if esv.has_two_lists() {
            f.write_str(" /")?;
            list(f, self.get_properties())?;
        }
        Ok(())
    }
}

/// As its message, or `tid 0001 format 2, 3 bytes: 01 02 03`.
impl fmt::Display for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format1(message) => message.fmt(f),
            Self::Format2 { tid, edata } => {
                write!(f, "tid {tid:04X} format 2, {} bytes", edata.len())?;
                for (i, byte) in edata.iter().enumerate() {
                    write!(f, "{}{byte:02X}", if i == 0 { ": " } else { " " })?;
                }
                Ok(())
            }
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, properties: Properties<'_>) -> fmt::Result {
    for property in properties {
        write!(f, " {:02X}", property.epc)?;
        if !property.edt.is_empty() {
            f.write_str("=")?;
        }
        for byte in property.edt {
            write!(f, "{byte:02X}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn one_line_each() {
        for (bytes, text) in [
            (&b"\x10\x81\x00\x01\x05\xff\x01\x02\x90\x01\x62\x01\x80\x00"[..], "tid 0001 05FF01 > 029001 Get 80"),
            (
                b"\x10\x81\x00\x02\x02\x90\x01\x05\xff\x01\x72\x02\x80\x01\x30\x82\x04\x00\x00\x52\x00",
                "tid 0002 029001 > 05FF01 Get_Res 80=30 82=00005200",
            ),
            (
                b"\x10\x81\x00\x07\x05\xff\x01\x01\x30\x01\x6e\x01\x80\x01\x30\x01\xbb\x00",
                "tid 0007 05FF01 > 013001 SetGet 80=30 / BB",
            ),
            (b"\x10\x81\x00\x07\x01\x30\x01\x05\xff\x01\x5e\x00\x00", "tid 0007 013001 > 05FF01 SetGet_SNA /"),
            (b"\x10\x82\x00\x09\x01\x02", "tid 0009 format 2, 2 bytes: 01 02"),
            (b"\x10\x82\x00\x09", "tid 0009 format 2, 0 bytes"),
        ] {
            assert_eq!(Frame::parse(bytes).unwrap().to_string(), text);
        }
    }
}
