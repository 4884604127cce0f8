//! Services (Part II, 3.2.5).

use core::fmt;

/// A service: the request, answer or notification that a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Esv {
    /// `SetI_SNA`: a write that wanted no answer was refused.
    SetISna = 0x50,
    /// `SetC_SNA`: a write was refused.
    SetCSna = 0x51,
    /// `Get_SNA`: a read was refused.
    GetSna = 0x52,
    /// `INF_SNA`: a request to notify was refused.
    InfSna = 0x53,
    /// `SetGet_SNA`: a write and read was refused.
    SetGetSna = 0x5E,
    /// `SetI`: write; an answer only if refused.
    SetI = 0x60,
    /// `SetC`: write, answered.
    SetC = 0x61,
    /// `Get`: read.
    Get = 0x62,
    /// `INF_REQ`: notify everyone.
    InfReq = 0x63,
    /// `SetGet`: write, then read.
    SetGet = 0x6E,
    /// `Set_Res`: written.
    SetRes = 0x71,
    /// `Get_Res`: read.
    GetRes = 0x72,
    /// `INF`: a notification.
    Inf = 0x73,
    /// `INFC`: a notification that wants an answer; never multicast.
    Infc = 0x74,
    /// `INFC_Res`: the answer to it.
    InfcRes = 0x7A,
    /// `SetGet_Res`: written and read.
    SetGetRes = 0x7E,
}

/// A byte that is no service of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct UnknownEsv(pub u8);

impl fmt::Display for UnknownEsv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ESV {:#04X} is unknown", self.0)
    }
}

impl core::error::Error for UnknownEsv {}

impl Esv {
    /// Every service, in the order of their codes.
    pub const ALL: [Self; 16] = [
        Self::SetISna,
        Self::SetCSna,
        Self::GetSna,
        Self::InfSna,
        Self::SetGetSna,
        Self::SetI,
        Self::SetC,
        Self::Get,
        Self::InfReq,
        Self::SetGet,
        Self::SetRes,
        Self::GetRes,
        Self::Inf,
        Self::Infc,
        Self::InfcRes,
        Self::SetGetRes,
    ];

    /// The byte on the wire.
    #[inline]
    pub const fn to_u8(self) -> u8 {
        self as u8
    }

    /// The service of a byte on the wire, if it is one.
    #[inline]
    pub const fn from_u8(byte: u8) -> Option<Self> {
        Some(match byte {
            0x50 => Self::SetISna,
            0x51 => Self::SetCSna,
            0x52 => Self::GetSna,
            0x53 => Self::InfSna,
            0x5E => Self::SetGetSna,
            0x60 => Self::SetI,
            0x61 => Self::SetC,
            0x62 => Self::Get,
            0x63 => Self::InfReq,
            0x6E => Self::SetGet,
            0x71 => Self::SetRes,
            0x72 => Self::GetRes,
            0x73 => Self::Inf,
            0x74 => Self::Infc,
            0x7A => Self::InfcRes,
            0x7E => Self::SetGetRes,
            _ => return None,
        })
    }

    /// Whether it asks a device: 0x6x.
    #[inline]
    pub const fn is_request(self) -> bool {
        self.to_u8() >> 4 == 6
    }

    /// Whether it answers a request or an INFC, with success or refusal. INF is a notification even when it was
    /// asked for by INF_REQ.
    #[inline]
    pub const fn is_answer(self) -> bool {
        !self.is_request() && !self.is_notification()
    }

    /// Whether it notifies: INF or INFC.
    #[inline]
    pub const fn is_notification(self) -> bool {
        matches!(self, Self::Inf | Self::Infc)
    }

    /// Whether it says that a request was refused, at least in part ("service not available"): 0x5x.
    #[inline]
    pub const fn is_sna(self) -> bool {
        self.to_u8() >> 4 == 5
    }

    /// Whether its messages carry two lists of properties, those written and those read.
    #[inline]
    pub const fn has_two_lists(self) -> bool {
        matches!(self, Self::SetGet | Self::SetGetRes | Self::SetGetSna)
    }

    /// The service that answers this one when everything was accepted; `None` where nothing answers.
    /// SetI has no such answer, and the one to INF_REQ is multicast.
    #[inline]
    pub const fn accepted(self) -> Option<Self> {
        Some(match self {
            Self::SetC => Self::SetRes,
            Self::Get => Self::GetRes,
            Self::InfReq => Self::Inf,
            Self::SetGet => Self::SetGetRes,
            Self::Infc => Self::InfcRes,
            _ => return None,
        })
    }

    /// The service that answers this one when it was refused, at least in part; `None` for all but requests.
    #[inline]
    pub const fn refused(self) -> Option<Self> {
        Some(match self {
            Self::SetI => Self::SetISna,
            Self::SetC => Self::SetCSna,
            Self::Get => Self::GetSna,
            Self::InfReq => Self::InfSna,
            Self::SetGet => Self::SetGetSna,
            _ => return None,
        })
    }

    /// The name in the specification: `Get_SNA`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SetISna => "SetI_SNA",
            Self::SetCSna => "SetC_SNA",
            Self::GetSna => "Get_SNA",
            Self::InfSna => "INF_SNA",
            Self::SetGetSna => "SetGet_SNA",
            Self::SetI => "SetI",
            Self::SetC => "SetC",
            Self::Get => "Get",
            Self::InfReq => "INF_REQ",
            Self::SetGet => "SetGet",
            Self::SetRes => "Set_Res",
            Self::GetRes => "Get_Res",
            Self::Inf => "INF",
            Self::Infc => "INFC",
            Self::InfcRes => "INFC_Res",
            Self::SetGetRes => "SetGet_Res",
        }
    }
}

impl TryFrom<u8> for Esv {
    type Error = UnknownEsv;

    fn try_from(byte: u8) -> Result<Self, UnknownEsv> {
        Self::from_u8(byte).ok_or(UnknownEsv(byte))
    }
}

impl fmt::Display for Esv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_a_service_or_unknown() {
        let known = (0..=u8::MAX).filter_map(Esv::from_u8);
        assert!(known.eq(Esv::ALL));
        for esv in Esv::ALL {
            assert_eq!(Esv::try_from(esv.to_u8()), Ok(esv));
            let kinds = [esv.is_request(), esv.is_answer(), esv.is_notification()];
            assert_eq!(kinds.iter().filter(|&&kind| kind).count(), 1, "{esv}");
            assert_eq!(esv.refused().is_some(), esv.is_request(), "{esv}");
        }
        assert_eq!(Esv::try_from(0x64), Err(UnknownEsv(0x64)));
    }
}
