//! Parser of networks and addresses in settings: `10.0.0.0/8`, `127.0.0.1`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};

use crate::error::ValidationError;

/// Parses a network in CIDR notation, or a single address.
///
/// A prefix of 0 bits is an error, because it is usually a mistake. The error contains `instead`, the
/// setting to use if it is intended.
pub(crate) fn parse(
    field: &'static str,
    text: &str,
    instead: &str,
) -> Result<IpNet, ValidationError> {
    let text = text.trim();
    let network = match IpAddr::from_str(text) {
        Ok(address) => IpNet::from(address),
        Err(_) => IpNet::from_str(text).map_err(|_| {
            let expected = "an address (127.0.0.1) or a network (10.0.0.0/8, fd00::/8)";
            ValidationError::new(field, text, expected)
        })?,
    };
    let network = unmapped(network).trunc();
    if network.prefix_len() == 0 {
        let expected = format!("a prefix of at least 1 bit; {instead}");
        return Err(ValidationError::new(field, text, expected));
    }
    Ok(network)
}

/// Returns whether a network is half of the internet or more: of all IPv4 addresses, or of `2000::/3`,
/// which has the global IPv6 addresses.
pub(crate) fn is_half_of_internet(network: &IpNet) -> bool {
    match network {
        IpNet::V4(v4) => v4.prefix_len() <= 1,
        IpNet::V6(v6) => {
            v6.prefix_len() <= 1 || (v6.prefix_len() <= 4 && v6.addr().segments()[0] >> 13 == 1)
        }
    }
}

/// Folds a network of mapped or NAT64 addresses: addresses are compared in their folded form.
fn unmapped(network: IpNet) -> IpNet {
    if let IpNet::V6(v6) = network
        && let Some(length) = v6.prefix_len().checked_sub(96)
        && let Some(v4) = to_ipv4_network(v6.addr(), length)
    {
        return IpNet::V4(v4);
    }
    network
}

/// The well-known NAT64 prefix `64:ff9b::/96` (RFC 6052), its upper 96 bits.
const WELL_KNOWN_NAT64: u128 = 0x0064_ff9b_u128 << 64;

/// IPv4 networks that are not global (RFC 6890), as address and length.
///
/// RFC 6052, section 3.1: they must not be translated by the well-known prefix. If they were folded,
/// a client could send from `64:ff9b::10.0.0.1` and be taken for a trusted proxy or an exempt host.
const NOT_GLOBAL: [(Ipv4Addr, u8); 13] = [
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    // Reserved, and broadcast.
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// Whether a network is inside one that is not global.
fn is_not_global(network: Ipv4Net) -> bool {
    let mut networks = NOT_GLOBAL
        .iter()
        .filter_map(|&(address, length)| Ipv4Net::new(address, length).ok());
    networks.any(|outer| outer.contains(&network))
}

/// Returns the IPv4 address that is mapped into an IPv6 address (`::ffff:0:0/96`) or translated by
/// the well-known NAT64 prefix (`64:ff9b::/96`). That prefix translates global addresses only.
pub(crate) fn to_ipv4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    to_ipv4_network(ip, 32).map(|network| network.addr())
}

/// Returns the IPv4 network that corresponds to a network of IPv6 addresses. `length` is that of the
/// IPv4 network.
fn to_ipv4_network(ip: Ipv6Addr, length: u8) -> Option<Ipv4Net> {
    let (upper, address) = split_96(ip);
    let network = Ipv4Net::new(address, length).ok()?;
    let is_translated = upper == WELL_KNOWN_NAT64 && !is_not_global(network);
    (is_translated || ip.to_ipv4_mapped().is_some()).then_some(network)
}

/// Returns the IPv4 address that [`to_ipv4`] finds, else the address itself.
pub(crate) fn fold(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(v6) => to_ipv4(v6).map_or(ip, IpAddr::V4),
    }
}

/// Splits an IPv6 address into its upper 96 bits and the rest as an IPv4 address.
pub(crate) const fn split_96(ip: Ipv6Addr) -> (u128, Ipv4Addr) {
    let bits = ip.to_bits();
    let [.., a, b, c, d] = bits.to_be_bytes();
    (bits >> 32, Ipv4Addr::new(a, b, c, d))
}

/// Returns an IPv4 network.
pub(crate) fn v4(address: Ipv4Addr, length: u8) -> Option<IpNet> {
    Ipv4Net::new(address, length).ok().map(IpNet::V4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_networks() {
        for (text, shown) in [
            ("127.0.0.1", "127.0.0.1/32"),
            (" 10.1.2.3/8 ", "10.0.0.0/8"),
            ("::1", "::1/128"),
            ("fd00::1/8", "fd00::/8"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("::ffff:10.0.0.1", "10.0.0.1/32"),
            ("::ffff:127.0.0.1", "127.0.0.1/32"),
            ("64:ff9b::8.8.8.0/120", "8.8.8.0/24"),
            ("64:ff9b::8.8.8.8", "8.8.8.8/32"),
            // Not global.
            ("64:ff9b::10.0.0.0/104", "64:ff9b::a00:0/104"),
            ("64:ff9b::127.0.0.1", "64:ff9b::7f00:1/128"),
            ("64:ff9b:1::/96", "64:ff9b:1::/96"),
        ] {
            assert_eq!(parse("network", text, "").unwrap().to_string(), shown);
        }
    }

    #[test]
    fn well_known_nat64_prefix_folds_global_addresses_only() {
        for text in [
            "0.0.0.0",
            "10.255.255.255",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.31.0.1",
            "192.0.2.1",
            "192.168.0.1",
            "198.19.0.1",
            "198.51.100.1",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
        ] {
            let translated: Ipv6Addr = format!("64:ff9b::{text}").parse().unwrap();
            assert_eq!(to_ipv4(translated), None, "{text}");
            let mapped: Ipv6Addr = format!("::ffff:{text}").parse().unwrap();
            assert_eq!(to_ipv4(mapped), Some(text.parse().unwrap()), "{text}");
        }
        for text in [
            "9.255.255.255",
            "11.0.0.0",
            "100.128.0.1",
            "172.32.0.1",
            "8.8.8.8",
        ] {
            let translated: Ipv6Addr = format!("64:ff9b::{text}").parse().unwrap();
            assert_eq!(to_ipv4(translated), Some(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn invalid_networks_are_errors() {
        for text in ["", "localhost", "10.0.0.0/33", "10.0.0/8", "10.0.0.0/"] {
            let refused = parse("network", text, "").unwrap_err();
            assert_eq!((refused.field(), refused.value()), ("network", text));
        }
    }

    #[test]
    fn prefix_of_zero_bits_is_an_error() {
        for text in [
            "0.0.0.0/0",
            "10.0.0.0/0",
            "::/0",
            "::ffff:0.0.0.0/96",
            "64:ff9b::/96",
        ] {
            let refused = parse("network", text, "do this").unwrap_err();
            assert_eq!(refused.value(), text);
            assert!(refused.to_string().contains("do this"), "{refused}");
        }
    }
}
