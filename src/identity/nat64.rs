//! IPv4 addresses inside IPv6 addresses: mapped ones and NAT64 (RFC 6052).

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use ipnet::{IpNet, Ipv6Net};

use crate::error::{ValidationError, ValidationErrors};
use crate::network;

/// The most prefixes that can be configured: each costs a comparison per IPv6 address.
const MAX_PREFIXES: usize = 16;

/// NAT64 prefixes of 96 bits, in addition to the well-known `64:ff9b::/96`.
#[derive(Clone, Debug, Default)]
pub(super) struct Nat64 {
    /// The upper 96 bits of each prefix.
    prefixes: Option<Arc<[u128]>>,
}

impl Nat64 {
    /// Parses the prefixes, and adds what is wrong with them to `errors`.
    pub(super) fn new(texts: &[String], errors: &mut ValidationErrors) -> Self {
        if texts.len() > MAX_PREFIXES {
            let expected = format!("at most {MAX_PREFIXES} prefixes");
            let error = ValidationError::new("NAT64 prefixes", texts.len(), expected);
            errors.push(error.at("nat64_prefixes"));
        }
        let mut prefixes = Vec::with_capacity(texts.len());
        for (index, text) in texts.iter().enumerate() {
            let prefix = prefix(text).map_err(|error| error.at(format!("nat64_prefixes[{index}]")));
            prefixes.extend(errors.note(prefix));
        }
        Self {
            prefixes: (!prefixes.is_empty()).then(|| prefixes.into()),
        }
    }

    /// Returns the IPv4 address that an IPv6 address stands for, else the address itself.
    #[inline]
    pub(super) fn fold(&self, ip: IpAddr) -> IpAddr {
        match ip {
            IpAddr::V4(_) => ip,
            IpAddr::V6(v6) => self.fold_v6(v6),
        }
    }

    fn fold_v6(&self, ip: Ipv6Addr) -> IpAddr {
        if let Some(v4) = network::to_ipv4(ip) {
            return IpAddr::V4(v4);
        }
        let (upper, v4) = network::split_96(ip);
        let mut prefixes = self.prefixes.iter().flat_map(|prefixes| prefixes.iter());
        if prefixes.any(|prefix| *prefix == upper) {
            return IpAddr::V4(v4);
        }
        IpAddr::V6(ip)
    }

    /// Folds a network inside a prefix, so that it contains the folded addresses.
    pub(super) fn fold_network(&self, of: IpNet) -> IpNet {
        if let IpNet::V6(v6) = of
            && let Some(length) = v6.prefix_len().checked_sub(96)
            && let IpAddr::V4(v4) = self.fold(IpAddr::V6(v6.addr()))
        {
            return network::v4(v4, length).unwrap_or(of);
        }
        of
    }
}

/// Parses a prefix, and returns its upper 96 bits.
fn prefix(text: &str) -> Result<u128, ValidationError> {
    let parsed = text.trim().parse::<Ipv6Net>().ok();
    let fits = |net: &Ipv6Net| net.prefix_len() == 96 && net.addr() == net.trunc().addr();
    match parsed.filter(fits) {
        Some(net) => Ok(network::split_96(net.addr()).0),
        None => Err(ValidationError::new(
            "NAT64 prefix",
            text,
            "an IPv6 network of 96 bits such as 64:ff9b:1::/96",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nat64(prefixes: &[&str]) -> Result<Nat64, ValidationErrors> {
        let prefixes: Vec<String> = prefixes.iter().map(|&text| text.to_owned()).collect();
        let mut errors = ValidationErrors::default();
        let nat64 = Nat64::new(&prefixes, &mut errors);
        errors.or(nat64)
    }

    #[test]
    fn only_known_prefixes_are_folded() {
        let plain = Nat64::default();
        let configured = nat64(&["64:ff9b:1::/96", "2001:db8:64::/96"]).unwrap();
        for (text, by_default, with_prefixes) in [
            ("203.0.113.9", "203.0.113.9", "203.0.113.9"),
            ("::ffff:203.0.113.9", "203.0.113.9", "203.0.113.9"),
            ("64:ff9b::8.8.8.9", "8.8.8.9", "8.8.8.9"),
            ("64:ff9b::808:809", "8.8.8.9", "8.8.8.9"),
            ("64:ff9b::a00:1", "64:ff9b::a00:1", "64:ff9b::a00:1"),
            ("64:ff9b:1::a00:1", "64:ff9b:1::a00:1", "10.0.0.1"),
            (
                "64:ff9b:1::cb00:7109",
                "64:ff9b:1::cb00:7109",
                "203.0.113.9",
            ),
            (
                "2001:db8:64::cb00:7109",
                "2001:db8:64::cb00:7109",
                "203.0.113.9",
            ),
            ("64:ff9b:0:1::1", "64:ff9b:0:1::1", "64:ff9b:0:1::1"),
            ("::203.0.113.9", "::203.0.113.9", "::203.0.113.9"),
            (
                "2001:db8::203.0.113.9",
                "2001:db8::203.0.113.9",
                "2001:db8::203.0.113.9",
            ),
        ] {
            let ip: IpAddr = text.parse().unwrap();
            assert_eq!(
                plain.fold(ip),
                by_default.parse::<IpAddr>().unwrap(),
                "{text}"
            );
            let expected: IpAddr = with_prefixes.parse().unwrap();
            assert_eq!(configured.fold(ip), expected, "{text}");
        }
    }

    #[test]
    fn prefixes_have_96_bits() {
        for text in [
            "",
            "64:ff9b:1::/48",
            "64:ff9b:1::",
            "64:ff9b:1::1/96",
            "10.0.0.0/8",
            "::/0",
        ] {
            let errors = nat64(&[text]).unwrap_err();
            let error = errors.iter().next().unwrap();
            assert_eq!((error.field(), error.value()), ("NAT64 prefix", text));
            assert_eq!(error.path(), Some("nat64_prefixes[0]"));
        }
        assert!(nat64(&["64:ff9b:1::/96"; 17]).is_err());
    }

    #[test]
    fn networks_inside_a_prefix_are_folded() {
        let configured = nat64(&["2001:db8:64::/96"]).unwrap();
        for (text, folded) in [
            ("2001:db8:64::a00:0/104", "10.0.0.0/8"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("10.0.0.0/8", "10.0.0.0/8"),
        ] {
            let network: IpNet = text.parse().unwrap();
            assert_eq!(configured.fold_network(network).to_string(), folded);
        }
    }
}
