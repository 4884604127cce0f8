//! The settings of the driver: module, credentials, where the meter is.

use core::fmt;
use core::ops::RangeInclusive;

/// The modules, by what differs in their commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Module {
    /// ROHM BP35A1 and its kin (Wi-SUN HAT with it, BP35A7A).
    Bp35a1,
    /// ROHM BP35C0, BP35C1, BP35C2: two networks, so SKSCAN, SKSENDTO, EVENT, EPANDESC and ERXUDP carry a side; Route B is side 0.
    Bp35c0,
    /// Tessera RL7023 Stick-D/IPS.
    Rl7023,
    /// Tessera RL7023 Stick-D/DSS, the dual stack: with sides, as BP35C0.
    Rl7023Dss,
}

impl Module {
    /// Every module.
    pub const ALL: [Self; 4] = [Self::Bp35a1, Self::Bp35c0, Self::Rl7023, Self::Rl7023Dss];

    /// Whether commands name the network that they mean.
    pub(crate) const fn has_side(self) -> bool {
        match self {
            Self::Bp35c0 | Self::Rl7023Dss => true,
            Self::Bp35a1 | Self::Rl7023 => false,
        }
    }

    /// The name as in the maker's list.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bp35a1 => "BP35A1",
            Self::Bp35c0 => "BP35C0",
            Self::Rl7023 => "RL7023",
            Self::Rl7023Dss => "RL7023-DSS",
        }
    }

    /// The module of this name, in any case: [`name`](Self::name), or the name of a product with the same commands.
    pub fn by_name(name: &str) -> Option<Self> {
        let product =
            PRODUCTS.iter().find(|(product, _)| product.eq_ignore_ascii_case(name)).map(|(_, module)| *module);
        product.or_else(|| Self::ALL.into_iter().find(|module| module.name().eq_ignore_ascii_case(name)))
    }
}

/// Products with the commands of a module.
const PRODUCTS: [(&str, Module); 6] = [
    ("BP35A7A", Module::Bp35a1),
    ("BP35C1", Module::Bp35c0),
    ("BP35C2", Module::Bp35c0),
    ("RL7023 Stick-D/IPS", Module::Rl7023),
    ("RL7023 Stick-D/DSS", Module::Rl7023Dss),
    ("RL7023-IPS", Module::Rl7023),
];

/// The Route-B id and password that the grid operator gave out. Never shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    id: [u8; ID_LENGTH],
    password: [u8; PASSWORD_MAX],
    password_length: usize,
}

const ID_LENGTH: usize = 32;
/// The longest password that SKSETPWD takes; grid operators give 12 characters.
const PASSWORD_MAX: usize = 32;

impl Credentials {
    /// Checks the form of both; spaces in the id, as it is printed on paper, are skipped.
    ///
    /// # Errors
    /// Names the one that is malformed, without repeating it.
    pub fn new(id: &str, password: &str) -> Result<Self, CredentialsError> {
        let mut credentials = Self { id: [0; ID_LENGTH], password: [0; PASSWORD_MAX], password_length: password.len() };
        let mut digits = id.bytes().filter(|&byte| byte != b' ');
        for slot in &mut credentials.id {
            *slot = digits.next().filter(u8::is_ascii_hexdigit).ok_or(CredentialsError::Id)?.to_ascii_uppercase();
        }
        if digits.next().is_some() {
            return Err(CredentialsError::Id);
        }
        if password.is_empty() || !password.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(CredentialsError::Password);
        }
        credentials
            .password
            .get_mut(..password.len())
            .ok_or(CredentialsError::Password)?
            .copy_from_slice(password.as_bytes());
        Ok(credentials)
    }

    pub(crate) fn id(&self) -> &[u8] {
        &self.id
    }

    pub(crate) fn password(&self) -> &[u8] {
        &self.password[..self.password_length]
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

/// Which of the credentials is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialsError {
    /// The id.
    Id,
    /// The password.
    Password,
}

impl fmt::Display for CredentialsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Id => "the Route-B id must be 32 hexadecimal digits",
            Self::Password => "the Route-B password must be 1 to 32 printable ASCII characters without spaces",
        })
    }
}

impl core::error::Error for CredentialsError {}

/// A network that a scan found: where a meter is on the air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pan {
    /// The radio channel.
    pub channel: u8,
    /// The number of the network.
    pub id: u16,
    /// The MAC address of the meter.
    pub address: u64,
    /// Link quality as the module counts it; higher is better.
    pub quality: u8,
}

/// How received payloads cross the serial line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PayloadMode {
    /// As the module is set: both forms are understood, and no flash cell is worn.
    #[default]
    Keep,
    /// As hexadecimal text.
    Text,
    /// As bytes.
    Binary,
}

impl PayloadMode {
    /// The argument of WOPT, and the answer of ROPT.
    pub(crate) const fn code(self) -> Option<&'static str> {
        match self {
            Self::Keep => None,
            Self::Text => Some("01"),
            Self::Binary => Some("00"),
        }
    }
}

/// Everything the driver needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) module: Module,
    pub(crate) credentials: Credentials,
    pub(crate) pan: Option<Pan>,
    pub(crate) payload: PayloadMode,
    pub(crate) scan: (u8, u8),
}

impl Config {
    /// Scans with durations 4 to 8 (a third of a minute at the longest useful one is 6) and keeps the module's payload form.
    pub const fn new(module: Module, credentials: Credentials) -> Self {
        Self { module, credentials, pan: None, payload: PayloadMode::Keep, scan: (4, 8) }
    }

    /// Joins this network, found earlier, without a scan; when that fails, scans.
    pub const fn pan(mut self, pan: Pan) -> Self {
        self.pan = Some(pan);
        self
    }

    /// Sets the form of received payloads. The module stores it in flash memory, which wears: it is written only if it differs.
    pub const fn payload(mut self, mode: PayloadMode) -> Self {
        self.payload = mode;
        self
    }

    /// The durations of successive scans, 0 to 14; each step doubles the time per channel (9.6 ms × (2ⁿ + 1)).
    pub fn scan_durations(mut self, durations: RangeInclusive<u8>) -> Self {
        let longest = (*durations.end()).min(SCAN_DURATION_MAX);
        self.scan = ((*durations.start()).min(longest), longest);
        self
    }
}

/// The longest that SKSCAN takes.
const SCAN_DURATION_MAX: u8 = 14;

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn credentials() {
        let id = "0123456789ABCDEF0123456789ABCDEF";
        let rows = [
            (id, "ABCDEFGHIJKL", None),
            ("0123 4567 89ab cdef 0123 4567 89AB CDEF", "1", None),
            ("0123", "ABCDEFGHIJKL", Some(CredentialsError::Id)),
            ("0123456789ABCDEF0123456789ABCDEF0", "ABCDEFGHIJKL", Some(CredentialsError::Id)),
            ("0123456789ABCDEF0123456789ABCDEG", "ABCDEFGHIJKL", Some(CredentialsError::Id)),
            (id, "", Some(CredentialsError::Password)),
            (id, "A\r\nSKTERM", Some(CredentialsError::Password)),
            (id, "123456789012345678901234567890123", Some(CredentialsError::Password)),
        ];
        for (id, password, expected) in rows {
            assert_eq!(Credentials::new(id, password).err(), expected, "{id} {password}");
        }
        let secret = Config::new(Module::Bp35a1, Credentials::new(id, "SECRETPASSWD").unwrap());
        let shown = format!("{secret:?}");
        assert!(!shown.contains("SECRET") && !shown.contains("0123") && !shown.contains("83, 69"), "{shown}");
    }

    #[test]
    fn modules_by_name() {
        for module in Module::ALL {
            assert_eq!(Module::by_name(module.name()), Some(module));
        }
        assert_eq!(Module::by_name("bp35c0"), Some(Module::Bp35c0));
        assert_eq!(Module::by_name("bp35c2"), Some(Module::Bp35c0));
        assert_eq!(Module::by_name("RL7023 Stick-D/DSS"), Some(Module::Rl7023Dss));
        assert_eq!(Module::by_name("BP35"), None);
    }
}
