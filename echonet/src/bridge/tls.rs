//! TLS to the broker: the certificates of the command line, and why a connection is not secure.

use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rumqttc::{ConnectionError, TlsConfiguration, TlsError, Transport};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore};

use crate::commands::Bridge as Args;
use crate::failure::Failure;

/// The transport to a broker of a URL: TLS for `mqtts://`.
///
/// # Errors
/// A file cannot be read or is none of certificates, or an option of TLS is there without TLS.
pub(super) fn transport(args: &Args, is_secure: bool) -> Result<Transport, Failure> {
    let options = [("--mqtt-ca", &args.mqtt_ca), ("--mqtt-cert", &args.mqtt_cert), ("--mqtt-key", &args.mqtt_key)];
    if !is_secure {
        let given = options.into_iter().find(|(_, file)| file.is_some());
        return given.map_or(Ok(Transport::Tcp), |(option, _)| {
            Err(Failure::Input(format!("{option}: only a broker at mqtts://HOST has a certificate")))
        });
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::Network(error.to_string()))?
        .with_root_certificates(roots(args.mqtt_ca.as_deref())?);
    let config = match (&args.mqtt_cert, &args.mqtt_key) {
        (Some(cert), Some(key)) => {
            let secret = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| unreadable("--mqtt-key", key, "a private key", &error))?;
            let chain = certificates("--mqtt-cert", cert)?;
            builder.with_client_auth_cert(chain, secret).map_err(|error| {
                Failure::Input(format!("--mqtt-key {}: not the key of --mqtt-cert: {error}", key.display()))
            })?
        }
        _ => builder.with_no_client_auth(),
    };
    Ok(Transport::Tls(TlsConfiguration::Rustls(Arc::new(config))))
}

/// The authorities of a file, or those that the system trusts.
fn roots(file: Option<&Path>) -> Result<RootCertStore, Failure> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        // Some of a system's files may be unreadable; an authority that is missing shows in the handshake.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            let none = "the system has no certificates of authorities: name those of the broker with --mqtt-ca FILE";
            return Err(Failure::Input(none.to_owned()));
        }
        return Ok(roots);
    };
    for certificate in certificates("--mqtt-ca", file)? {
        roots.add(certificate).map_err(|error| {
            Failure::Input(format!("--mqtt-ca {}: not a certificate of an authority: {error}", file.display()))
        })?;
    }
    Ok(roots)
}

/// The certificates of a PEM file, of which there is one at least.
fn certificates(option: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let wrong = |error: &pem::Error| unreadable(option, file, "a certificate", error);
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    let found = found.map_err(|error| wrong(&error))?;
    if found.is_empty() { Err(wrong(&pem::Error::NoItemsFound)) } else { Ok(found) }
}

fn unreadable(option: &str, file: &Path, wanted: &str, error: &pem::Error) -> Failure {
    let why = match error {
        pem::Error::NoItemsFound => format!("expected {wanted} in PEM form, there is none"),
        pem::Error::Io(error) => error.to_string(),
        _ => format!("expected {wanted} in PEM form, the PEM is damaged"),
    };
    Failure::Input(format!("{option} {}: {why}", file.display()))
}

/// Why there is no connection: the reason of TLS, if it is one, and the way out of it.
pub(super) fn reason(error: &ConnectionError) -> String {
    if let ConnectionError::Tls(TlsError::Io(ended)) = error
        && matches!(ended.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset)
    {
        return "the connection ends within the handshake of TLS: does the broker speak TLS at this port?".to_owned();
    }
    let mut cause: &(dyn Error + 'static) = error;
    loop {
        if let Some(error) = cause.downcast_ref::<rustls::Error>() {
            return of_tls(error);
        }
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        match inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| cause.source()) {
            Some(next) => cause = next,
            None => return error.to_string(),
        }
    }
}

fn of_tls(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(error) => of_certificate(error),
        rustls::Error::AlertReceived(
            alert @ (AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            | AlertDescription::AccessDenied),
        ) => format!("the broker refuses the certificate of the bridge (--mqtt-cert): {alert:?}"),
        rustls::Error::AlertReceived(alert) => format!("the broker ends TLS: {alert:?}"),
        rustls::Error::InvalidMessage(_) => "the broker does not speak TLS at this port".to_owned(),
        error => format!("TLS: {error}"),
    }
}

fn of_certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the certificate of the broker has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate of the broker is not valid yet: compare the clocks".to_owned()
        }
        CertificateError::UnknownIssuer => {
            "the authority of the broker's certificate is unknown: name it with --mqtt-ca FILE".to_owned()
        }
        CertificateError::NotValidForName => "the certificate of the broker is for another name".to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => format!(
            "the certificate of the broker is for another name: expected {}, it has {}",
            expected.to_str(),
            if presented.is_empty() { "none".to_owned() } else { presented.join(", ") },
        ),
        error => format!("the certificate of the broker is wrong: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(options: &[&str]) -> Args {
        use clap::Parser;
        let line = ["echonet", "bridge", "mqtts://broker"].iter().chain(options);
        let cli = crate::commands::Cli::try_parse_from(line).unwrap();
        let crate::commands::Command::Bridge(args) = cli.command else { panic!() };
        args
    }

    #[test]
    fn files_that_are_wrong_are_named_with_their_option() {
        let file = std::env::temp_dir().join(format!("echonet-tls-{}.pem", std::process::id()));
        let name = file.to_str().unwrap();
        let check = |options: &[&str], is_secure: bool, parts: &[&str]| {
            let failure = transport(&args(options), is_secure).map(drop).unwrap_err().to_string();
            assert!(parts.iter().all(|part| failure.contains(part)), "{options:?}: {failure}");
        };
        check(&["--mqtt-ca", name], false, &["--mqtt-ca", "mqtts://"]);
        check(&["--mqtt-ca", name], true, &["--mqtt-ca", name, "No such file"]);
        std::fs::write(&file, "no certificate").unwrap();
        check(&["--mqtt-ca", name], true, &["--mqtt-ca", name, "expected a certificate in PEM form"]);
        let made = rcgen::generate_simple_self_signed(["broker".to_owned()]).unwrap();
        std::fs::write(&file, made.cert.pem()).unwrap();
        let pair = ["--mqtt-ca", name, "--mqtt-cert", name, "--mqtt-key", name];
        check(&pair, true, &["--mqtt-key", name, "expected a private key in PEM form"]);
        let other = rcgen::generate_simple_self_signed(["other".to_owned()]).unwrap();
        std::fs::write(&file, made.cert.pem() + &other.signing_key.serialize_pem()).unwrap();
        check(&pair, true, &["--mqtt-key", name, "not the key of --mqtt-cert"]);
        std::fs::write(&file, made.cert.pem() + &made.signing_key.serialize_pem()).unwrap();
        assert!(matches!(transport(&args(&pair), true), Ok(Transport::Tls(_))));
        std::fs::remove_file(&file).unwrap();
        assert!(matches!(transport(&args(&[]), false), Ok(Transport::Tcp)));
    }
}
