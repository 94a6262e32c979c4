//! Networks whose word is trusted.

use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net};

use crate::error::Invalid;

/// Which addresses are proxies of ours.
#[derive(Clone, Debug)]
pub(super) enum Trusted {
    /// Those in one of these networks; none of them, usually.
    Networks(Arc<[IpNet]>),
    /// All of them.
    Everybody,
}

impl Trusted {
    /// `address` is canonical: never IPv4 in an IPv6 coat.
    #[inline]
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        match self {
            Self::Networks(networks) => networks.iter().any(|network| network.contains(&address)),
            Self::Everybody => true,
        }
    }
}

/// A network in CIDR notation, or a single address.
pub(super) fn network(text: &str) -> Result<IpNet, Invalid> {
    const FIELD: &str = "trusted proxy";
    let text = text.trim();
    let network = match IpAddr::from_str(text) {
        Ok(address) => IpNet::from(address),
        Err(_) => IpNet::from_str(text).map_err(|_| {
            let expected = "an address (127.0.0.1) or a network (10.0.0.0/8, fd00::/8)";
            Invalid::new(FIELD, text, expected)
        })?,
    };
    if network.prefix_len() == 0 {
        let expected = "a network that is not the whole world; to believe everybody, call \
                        trust_all_proxies_insecure()";
        return Err(Invalid::new(FIELD, text, expected));
    }
    Ok(unmapped(network).trunc())
}

/// Addresses are compared in their canonical form, so networks are kept in it.
fn unmapped(network: IpNet) -> IpNet {
    if let IpNet::V6(v6) = network
        && let Some(address) = v6.addr().to_ipv4_mapped()
        && let Some(length) = v6.prefix_len().checked_sub(96)
        && let Ok(v4) = Ipv4Net::new(address, length)
    {
        return IpNet::V4(v4);
    }
    network
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
        ] {
            assert_eq!(network(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_network() {
        for text in [
            "",
            "localhost",
            "10.0.0.0/33",
            "10.0.0/8",
            "0.0.0.0/0",
            "::/0",
            "10.0.0.0/",
        ] {
            let refused = network(text).unwrap_err();
            assert_eq!(refused.field(), "trusted proxy", "{text}");
            assert_eq!(refused.value(), text);
        }
    }
}
