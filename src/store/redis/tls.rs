//! TLS with `rustls`. The certificate is verified before credentials are sent.

use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::error::ValidationError;

/// TLS settings of a store.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

impl Tls {
    /// Trusts these root certificates, or those of the system.
    pub(super) fn new(roots: Option<&[u8]>) -> Result<Self, ValidationError> {
        let trusted = match roots {
            Some(pem) => given(pem)?,
            None => of_the_system()?,
        };
        // Named explicitly: another provider in the program must not change it.
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| ValidationError::new("redis TLS", error, "TLS 1.2 or 1.3"))?
            .with_root_certificates(trusted)
            .with_no_client_auth();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// Does the handshake.
    pub(super) async fn secure(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.0.connect(name, stream).await
    }
}

fn given(pem: &[u8]) -> Result<RootCertStore, ValidationError> {
    let wrong = |found: String| {
        let expected = "certificates in PEM, each from BEGIN CERTIFICATE to END CERTIFICATE";
        ValidationError::new("redis root certificates", found, expected)
    };
    let mut trusted = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        let added = trusted.add(certificate);
        added.map_err(|error| wrong(error.to_string()))?;
    }
    if trusted.is_empty() {
        return Err(wrong("no certificate".to_owned()));
    }
    Ok(trusted)
}

/// Certificates that cannot be parsed are skipped.
fn of_the_system() -> Result<RootCertStore, ValidationError> {
    let mut trusted = RootCertStore::empty();
    trusted.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if trusted.is_empty() {
        let expected = "certificates that the system trusts, or some that are given with \
                        `root_certificates`";
        return Err(ValidationError::new(
            "redis root certificates",
            "none",
            expected,
        ));
    }
    Ok(trusted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_certificates_are_rejected() {
        for wrong in [
            "",
            "hello",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            let Err(refused) = Tls::new(Some(wrong.as_bytes())) else {
                panic!("{wrong}");
            };
            assert_eq!(refused.field(), "redis root certificates");
        }
    }
}
