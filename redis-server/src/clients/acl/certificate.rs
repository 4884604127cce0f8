//! The names in a client's certificate (RFC 5280) by which it may be a user.

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

/// The field of a certificate that names the user: `tls-auth-clients-user`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameField {
    /// The first common name of the subject.
    CommonName,
    /// Each URI among the alternative names of the subject.
    Uri,
}

/// The names in this field of a certificate in DER; none if it has none, or cannot be read.
pub fn certificate_names(certificate: &[u8], field: NameField) -> Vec<Vec<u8>> {
    let certificate = CertificateDer::from(certificate);
    let Ok(certificate) = EndEntityCert::try_from(&certificate) else { return Vec::new() };
    match field {
        NameField::CommonName => common_name(certificate.subject()).into_iter().map(<[u8]>::to_vec).collect(),
        NameField::Uri => {
            let uris = certificate.valid_uri_names().filter(|uri| !uri.is_empty() && !uri.contains('\0'));
            uris.map(|uri| uri.as_bytes().to_vec()).collect()
        }
    }
}

/// The type of attribute that is a common name, 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// The tag of an object identifier.
const OID: u8 = 0x06;

/// The first common name of a subject, as it was signed: all of it, whatever bytes are in it. A subject is a sequence of sets of
/// sequences of a type and a value (RFC 5280, section 4.1.2.4), of which the outermost tag and length are not there.
fn common_name(subject: &[u8]) -> Option<&[u8]> {
    let value = |attribute| {
        let mut parts = Elements(attribute);
        let kind = parts.next()?;
        let (_, value) = parts.next()?;
        (kind == (OID, COMMON_NAME)).then_some(value)
    };
    let mut attributes = Elements(subject).flat_map(|(_, set)| Elements(set));
    attributes.find_map(|(_, attribute)| value(attribute)).filter(|name| !name.is_empty())
}

/// The elements of a run of DER with their tags, up to the first that is broken.
struct Elements<'a>(&'a [u8]);

impl<'a> Iterator for Elements<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let [tag, length, rest @ ..] = self.0 else { return None };
        let (length, rest) = match *length {
            short @ ..=0x7f => (usize::from(short), rest),
            // More than the length of four bytes is no certificate's.
            long @ 0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, content))
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

    use super::*;

    fn certificate(subject: &[(DnType, &str)], uris: &[&str]) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name = DistinguishedName::new();
        subject.iter().for_each(|(kind, text)| params.distinguished_name.push(kind.clone(), *text));
        params.subject_alt_names.extend(uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap())));
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn a_certificate_has_the_names_that_were_signed() {
        let check = |subject: &[(DnType, &str)], uris: &[&str], common: &[&str], expected: &[&str]| {
            let made = certificate(subject, uris);
            let text = |field| {
                let names = certificate_names(&made, field).into_iter();
                names.map(|name| String::from_utf8(name).unwrap()).collect::<Vec<_>>()
            };
            assert_eq!(text(NameField::CommonName), common, "{subject:?}");
            assert_eq!(text(NameField::Uri), expected, "{uris:?}");
        };
        let long = "n".repeat(300);
        check(&[], &[], &[], &[]);
        check(&[(DnType::OrganizationName, "org")], &["urn:a"], &[], &["urn:a"]);
        check(&[(DnType::OrganizationName, "org"), (DnType::CommonName, "bob")], &[], &["bob"], &[]);
        check(&[(DnType::CommonName, "bob\0x")], &["urn:b", "urn:a\0", "", "urn:a"], &["bob\0x"], &["urn:b", "urn:a"]);
        check(&[(DnType::CommonName, "")], &[], &[], &[]);
        check(&[(DnType::CommonName, &long)], &[&long], &[&long], &[&long]);
    }

    #[test]
    fn truncated_certificates_have_no_names() {
        let whole = certificate(&[(DnType::CommonName, "bob")], &["urn:a"]);
        for end in 0..whole.len() {
            for field in [NameField::CommonName, NameField::Uri] {
                assert!(certificate_names(&whole[..end], field).is_empty(), "{end}");
            }
        }
        let subject = [&[0x31, 12, 0x30, 10][..], &[OID, 3], COMMON_NAME, &[0x0c, 3], b"bob"].concat();
        assert_eq!(common_name(&subject), Some(&b"bob"[..]));
        assert!((0..subject.len()).all(|end| common_name(&subject[..end]).is_none()));
        assert_eq!(Elements(&[0x0c, 0x85, 0, 0, 0, 0, 0]).next(), None);
        assert_eq!(Elements(&[0x0c, 0x80, 0, 0]).next(), None);
        assert_eq!(Elements(&[0x0c, 0x84, 0xff, 0xff, 0xff, 0xff]).next(), None);
        assert_eq!(Elements(&[0x0c, 0x82, 0, 1, 7]).next(), Some((0x0c, &[7][..])));
    }
}
