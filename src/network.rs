//! Networks as people write them: `10.0.0.0/8`, or one address.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};

use crate::error::Invalid;

/// A network in CIDR notation, or a single address. Not the whole world, which is what a slip
/// looks like; whoever means it is told what to do `instead`.
pub(crate) fn parse(field: &'static str, text: &str, instead: &str) -> Result<IpNet, Invalid> {
    let text = text.trim();
    let network = match IpAddr::from_str(text) {
        Ok(address) => IpNet::from(address),
        Err(_) => IpNet::from_str(text).map_err(|_| {
            let expected = "an address (127.0.0.1) or a network (10.0.0.0/8, fd00::/8)";
            Invalid::new(field, text, expected)
        })?,
    };
    let network = unmapped(network).trunc();
    if network.prefix_len() == 0 {
        let expected = format!("a network that is not the whole world; {instead}");
        return Err(Invalid::new(field, text, expected));
    }
    Ok(network)
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
            assert_eq!(parse("network", text, "").unwrap().to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_network() {
        for text in ["", "localhost", "10.0.0.0/33", "10.0.0/8", "10.0.0.0/"] {
            let refused = parse("network", text, "").unwrap_err();
            assert_eq!((refused.field(), refused.value()), ("network", text));
        }
    }

    #[test]
    fn the_whole_world_is_none() {
        for text in ["0.0.0.0/0", "10.0.0.0/0", "::/0", "::ffff:0.0.0.0/96"] {
            let refused = parse("network", text, "do this").unwrap_err();
            assert_eq!(refused.value(), text);
            assert!(refused.to_string().contains("do this"), "{refused}");
        }
    }
}
