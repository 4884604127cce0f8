//! Certificates that are their own authority.
//!
//! `openssl req -x509` makes a certificate that says of itself that it is an authority (`CA:TRUE`). OpenSSL accepts it from
//! its holder where the file of authorities contains it; webpki refuses every authority at the end of a chain.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

/// Which end of a connection shows a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shower {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// Whether `certificate` is self-signed, one of `authorities` to the byte, in force at `now`, and made for this use as far as it says.
/// OpenSSL accepts the same certificates. That its holder has the key is for the handshake to prove.
pub fn is_own_authority(
    certificate: &CertificateDer<'_>,
    authorities: &[CertificateDer<'_>],
    now: UnixTime,
    shower: Shower,
) -> bool {
    authorities.contains(certificate)
        && Certificate::read(certificate).is_some_and(|read| {
            read.issuer == read.subject
                && (read.not_before..=read.not_after).contains(&(now.as_secs() as i64))
                && read.is_for(shower)
        })
}

/// Verifies as another does, and accepts certificates that are their own authority.
pub(crate) struct OwnAuthorities {
    pub(crate) others: Arc<dyn ClientCertVerifier>,
    pub(crate) authorities: Vec<CertificateDer<'static>>,
}

impl fmt::Debug for OwnAuthorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnAuthorities").field("authorities", &self.authorities.len()).finish_non_exhaustive()
    }
}

impl ClientCertVerifier for OwnAuthorities {
    fn offer_client_auth(&self) -> bool {
        self.others.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.others.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.others.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.others.verify_client_cert(end_entity, intermediates, now).or_else(|error| {
            let is_trusted = is_own_authority(end_entity, &self.authorities, now, Shower::Client);
            if is_trusted { Ok(ClientCertVerified::assertion()) } else { Err(error) }
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.others.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.others.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.others.supported_verify_schemes()
    }
}

/// The parts of a certificate that matter here (RFC 5280, section 4.1).
struct Certificate<'a> {
    issuer: &'a [u8],
    subject: &'a [u8],
    /// Seconds of Unix time, both included.
    not_before: i64,
    not_after: i64,
    /// The bits of "key usage", if it has that extension.
    key_usage: Option<u8>,
    /// The identifiers of "extended key usage", one after the other, if it has that extension.
    extended_usage: Option<&'a [u8]>,
}

/// Tags of DER (X.690).
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const IDENTIFIER: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// Object identifiers, as DER has them.
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const EXTENDED_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];
const SERVER_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];

/// Bits of "key usage".
const DIGITAL_SIGNATURE: u8 = 0x80;
const KEY_ENCIPHERMENT: u8 = 0x20;
const KEY_AGREEMENT: u8 = 0x08;

impl<'a> Certificate<'a> {
    fn read(der: &'a [u8]) -> Option<Self> {
        let mut body = Der(Der(Der(der).content(SEQUENCE)?).content(SEQUENCE)?);
        if body.0.first() == Some(&VERSION) {
            body.content(VERSION)?;
        }
        body.content(INTEGER)?;
        body.content(SEQUENCE)?;
        let issuer = body.content(SEQUENCE)?;
        let mut validity = Der(body.content(SEQUENCE)?);
        let (not_before, not_after) = (validity.time()?, validity.time()?);
        let subject = body.content(SEQUENCE)?;
        body.content(SEQUENCE)?;
        let mut read = Self { issuer, subject, not_before, not_after, key_usage: None, extended_usage: None };
        while let Some((tag, content)) = body.element() {
            if tag == EXTENSIONS {
                read.extensions(Der(content).content(SEQUENCE)?)?;
            }
        }
        Some(read)
    }

    fn extensions(&mut self, all: &'a [u8]) -> Option<()> {
        let mut all = Der(all);
        while !all.0.is_empty() {
            let mut extension = Der(all.content(SEQUENCE)?);
            let name = extension.content(IDENTIFIER)?;
            // A word whether it is critical may stand in between.
            let value = std::iter::from_fn(|| extension.element()).find(|(tag, _)| *tag == OCTET_STRING)?.1;
            if name == KEY_USAGE {
                // The first byte is the number of bits that are unused; the last of nine is not asked for here.
                self.key_usage = Some(Der(value).content(BIT_STRING)?.get(1).copied().unwrap_or(0));
            } else if name == EXTENDED_USAGE {
                self.extended_usage = Some(Der(value).content(SEQUENCE)?);
            }
        }
        Some(())
    }

    /// An extension that is not there allows everything.
    fn is_for(&self, shower: Shower) -> bool {
        let (purpose, bits) = match shower {
            Shower::Client => (CLIENT_AUTH, DIGITAL_SIGNATURE | KEY_AGREEMENT),
            Shower::Server => (SERVER_AUTH, DIGITAL_SIGNATURE | KEY_ENCIPHERMENT | KEY_AGREEMENT),
        };
        let named = |all| {
            let mut all = Der(all);
            std::iter::from_fn(move || all.element()).any(|(_, purposes)| purposes == purpose)
        };
        self.key_usage.is_none_or(|usage| usage & bits != 0) && self.extended_usage.is_none_or(named)
    }
}

/// The rest of an element's content.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The next element's tag and content; `None` at the end, or if it is cut off.
    fn element(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, first], rest) = self.0.split_first_chunk()?;
        let (len, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            // So many bytes of length follow; four are more than any certificate needs.
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (bytes.iter().fold(0, |len, byte| len << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// The content of the next element, which must have this tag.
    fn content(&mut self, wanted: u8) -> Option<&'a [u8]> {
        self.element().filter(|(tag, _)| *tag == wanted).map(|(_, content)| content)
    }

    /// The next element as a time: `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`, in seconds of Unix time.
    fn time(&mut self) -> Option<i64> {
        let (tag, text) = self.element()?;
        let digits = text.strip_suffix(b"Z")?;
        let number = |digits: &[u8]| -> Option<i64> { std::str::from_utf8(digits).ok()?.parse().ok() };
        let (year, rest) = match tag {
            UTC_TIME => {
                let (year, rest) = digits.split_at_checked(2)?;
                // RFC 5280, section 4.1.2.5.1.
                (number(year).map(|year| if year < 50 { 2000 + year } else { 1900 + year })?, rest)
            }
            GENERALIZED_TIME => {
                let (year, rest) = digits.split_at_checked(4)?;
                (number(year)?, rest)
            }
            _ => return None,
        };
        let parts: Option<Vec<i64>> = rest.chunks(2).map(number).collect();
        let [month @ 1..=12, day @ 1..=31, hour, minute, second] = parts?[..] else { return None };
        Some(((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
    }
}

/// Days since 1970-01-01 of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that leap days are last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{
        BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose as Purpose, IsCa, KeyPair,
        KeyUsagePurpose as Usage, date_time_ymd,
    };

    use super::*;

    fn own(change: impl FnOnce(&mut CertificateParams)) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2060, 1, 1);
        change(&mut params);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    #[test]
    fn only_what_is_listed_in_force_and_for_this_use() {
        type Change = fn(&mut CertificateParams);
        const AT: u64 = 1_800_000_000;
        let cases: [(&str, Change, [bool; 2]); 8] = [
            ("plain", |_| (), [true, true]),
            ("over", |params| params.not_after = date_time_ymd(2027, 1, 15), [false, false]),
            ("not yet", |params| params.not_before = date_time_ymd(2027, 1, 16), [false, false]),
            ("for clients", |params| params.extended_key_usages = vec![Purpose::ClientAuth], [true, false]),
            ("for servers", |params| params.extended_key_usages = vec![Purpose::ServerAuth], [false, true]),
            ("for signing others", |params| params.key_usages = vec![Usage::KeyCertSign], [false, false]),
            ("for signatures", |params| params.key_usages = vec![Usage::DigitalSignature], [true, true]),
            ("for keys", |params| params.key_usages = vec![Usage::KeyEncipherment], [false, true]),
        ];
        let other = own(|_| ());
        let now = UnixTime::since_unix_epoch(Duration::from_secs(AT));
        for (name, change, expected) in cases {
            let certificate = own(change);
            let both = [other.clone(), certificate.clone()];
            let trusts = |authorities: &[CertificateDer<'_>]| {
                [Shower::Client, Shower::Server].map(|shower| is_own_authority(&certificate, authorities, now, shower))
            };
            assert_eq!(trusts(&both), expected, "{name}");
            assert_eq!(trusts(&both[..1]), [false, false], "{name}, by another's authority");
        }
    }

    #[test]
    fn issued_certificates_are_not_their_own_authority() {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "authority");
        let authority = rcgen::CertifiedIssuer::self_signed(params, key).unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let signed = params.signed_by(&KeyPair::generate().unwrap(), &authority).unwrap().der().clone();
        assert!(!is_own_authority(&signed, std::slice::from_ref(&signed), UnixTime::now(), Shower::Client));
    }

    #[test]
    fn truncated_and_corrupted_certificates_cause_no_panic() {
        let whole = own(|params| params.key_usages = vec![Usage::DigitalSignature]);
        for len in 0..whole.len() {
            assert!(Certificate::read(&whole[..len]).is_none(), "{len} bytes");
            let mut changed = whole.to_vec();
            changed[len] ^= 0xff;
            let _ = Certificate::read(&changed);
        }
    }

    #[test]
    fn days_as_the_calendar_has_them() {
        for (date, expected) in
            [((1970, 1, 1), 0), ((2000, 3, 1), 11_017), ((2024, 2, 29), 19_782), ((1969, 12, 31), -1)]
        {
            assert_eq!(days(date.0, date.1, date.2), expected, "{date:?}");
        }
    }
}
