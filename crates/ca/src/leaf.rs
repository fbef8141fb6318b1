//! Certificates of users and servers, DER (RFC 5280).
//!
//! They are written here because rcgen cannot write a subject with several organizational units, which are the groups
//! of a user.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{KeyPair, SigningKey as _};
use time::OffsetDateTime;
use x509_parser::prelude::X509Certificate;
use yasna::models::{GeneralizedTime, ObjectIdentifier, UTCTime};
use yasna::{DERWriter, DERWriterSeq, Tag};

use crate::index::CertificateRole;
use crate::names::HostName;

const ECDSA_WITH_SHA256: &[u64] = &[1, 2, 840, 10045, 4, 3, 2];
const COMMON_NAME: &[u64] = &[2, 5, 4, 3];
const ORGANIZATIONAL_UNIT: &[u64] = &[2, 5, 4, 11];
const KEY_USAGE: &[u64] = &[2, 5, 29, 15];
const SUBJECT_ALT_NAME: &[u64] = &[2, 5, 29, 17];
const BASIC_CONSTRAINTS: &[u64] = &[2, 5, 29, 19];
const AUTHORITY_KEY_IDENTIFIER: &[u64] = &[2, 5, 29, 35];
const EXTENDED_KEY_USAGE: &[u64] = &[2, 5, 29, 37];
const SERVER_AUTH: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 3, 1];
const CLIENT_AUTH: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 3, 2];

/// Contents of a certificate.
pub(crate) struct Leaf<'a> {
    pub serial: &'a [u8],
    pub role: CertificateRole,
    pub name: &'a str,
    pub groups: &'a [String],
    pub hosts: &'a [HostName],
    pub from: OffsetDateTime,
    pub until: OffsetDateTime,
    /// Public key (SubjectPublicKeyInfo), DER.
    pub public_key: &'a [u8],
}

impl Leaf<'_> {
    /// The certificate, signed by an authority with an ECDSA P-256 key.
    pub(crate) fn sign(
        &self,
        authority: &X509Certificate<'_>,
        key: &KeyPair,
    ) -> Result<Vec<u8>, rcgen::Error> {
        let contents = yasna::construct_der(|writer| self.write(writer, authority));
        let signature = key.sign(&contents)?;
        Ok(yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                writer.next().write_der(&contents);
                write_algorithm(writer.next());
                writer.next().write_bitvec_bytes(&signature, signature.len() * 8);
            });
        }))
    }

    fn write(&self, writer: DERWriter<'_>, authority: &X509Certificate<'_>) {
        writer.write_sequence(|writer| {
            // Version 3.
            writer.next().write_tagged(Tag::context(0), |writer| writer.write_u8(2));
            writer.next().write_bigint_bytes(self.serial, true);
            write_algorithm(writer.next());
            writer.next().write_der(authority.subject().as_raw());
            writer.next().write_sequence(|writer| {
                write_time(writer.next(), self.from);
                write_time(writer.next(), self.until);
            });
            writer.next().write_sequence(|writer| {
                for group in self.groups {
                    write_name(writer.next(), ORGANIZATIONAL_UNIT, group);
                }
                write_name(writer.next(), COMMON_NAME, self.name);
            });
            writer.next().write_der(self.public_key);
            writer.next().write_tagged(Tag::context(3), |writer| {
                writer.write_sequence(|writer| self.write_extensions(writer, authority));
            });
        });
    }

    fn write_extensions(&self, writer: &mut DERWriterSeq<'_>, authority: &X509Certificate<'_>) {
        // Not an authority.
        write_extension(writer.next(), BASIC_CONSTRAINTS, true, |writer| {
            writer.write_sequence(|_| ());
        });
        // Digital signature is the first bit.
        write_extension(writer.next(), KEY_USAGE, true, |writer| {
            writer.write_bitvec_bytes(&[0b1000_0000], 1);
        });
        let purpose = match self.role {
            CertificateRole::User => CLIENT_AUTH,
            CertificateRole::Server => SERVER_AUTH,
        };
        write_extension(writer.next(), EXTENDED_KEY_USAGE, false, |writer| {
            writer.write_sequence(|writer| {
                writer.next().write_oid(&ObjectIdentifier::from_slice(purpose));
            });
        });
        if let Some(identifier) = key_identifier(authority) {
            write_extension(writer.next(), AUTHORITY_KEY_IDENTIFIER, false, |writer| {
                writer.write_sequence(|writer| {
                    let tag = Tag::context(0);
                    writer
                        .next()
                        .write_tagged_implicit(tag, |writer| writer.write_bytes(identifier));
                });
            });
        }
        if !self.hosts.is_empty() {
            write_extension(writer.next(), SUBJECT_ALT_NAME, false, |writer| {
                writer.write_sequence(|writer| {
                    self.hosts.iter().for_each(|host| write_host(writer.next(), host));
                });
            });
        }
    }
}

/// The subject key identifier of the authority.
fn key_identifier<'a>(authority: &'a X509Certificate<'_>) -> Option<&'a [u8]> {
    authority.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        x509_parser::extensions::ParsedExtension::SubjectKeyIdentifier(identifier) => {
            Some(identifier.0)
        }
        _ => None,
    })
}

fn write_algorithm(writer: DERWriter<'_>) {
    writer.write_sequence(|writer| {
        writer.next().write_oid(&ObjectIdentifier::from_slice(ECDSA_WITH_SHA256));
    });
}

fn write_name(writer: DERWriter<'_>, kind: &[u64], name: &str) {
    writer.write_set(|writer| {
        writer.next().write_sequence(|writer| {
            writer.next().write_oid(&ObjectIdentifier::from_slice(kind));
            writer.next().write_utf8_string(name);
        });
    });
}

fn write_host(writer: DERWriter<'_>, host: &HostName) {
    match host {
        HostName::Dns(name) => {
            writer.write_tagged_implicit(Tag::context(2), |writer| writer.write_ia5_string(name));
        }
        HostName::Ip(address) => {
            let bytes = match address {
                IpAddr::V4(v4) => v4.octets().to_vec(),
                IpAddr::V6(v6) => v6.octets().to_vec(),
            };
            writer.write_tagged_implicit(Tag::context(7), |writer| writer.write_bytes(&bytes));
        }
    }
}

fn write_extension(
    writer: DERWriter<'_>,
    kind: &[u64],
    is_critical: bool,
    write_value: impl FnOnce(DERWriter<'_>),
) {
    let value = yasna::construct_der(write_value);
    writer.write_sequence(|writer| {
        writer.next().write_oid(&ObjectIdentifier::from_slice(kind));
        if is_critical {
            writer.next().write_bool(true);
        }
        writer.next().write_bytes(&value);
    });
}

/// Dates from 2050 on need the longer form.
fn write_time(writer: DERWriter<'_>, time: OffsetDateTime) {
    match UTCTime::from_datetime_opt(time) {
        Some(short) => writer.write_utctime(&short),
        None => writer.write_generalized_time(&GeneralizedTime::from_datetime(time)),
    }
}

/// A certificate in PEM format.
pub(crate) fn encode(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let lines: Vec<&str> = (0..text.len())
        .step_by(64)
        .filter_map(|start| text.get(start..text.len().min(start + 64)))
        .collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}
