//! Networks as people write them: `10.0.0.0/8`, or one address.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::error::Invalid;

/// A network in CIDR notation, or a single address.
pub(crate) fn parse(text: &str) -> Result<IpNet, Invalid> {
    let trimmed = text.trim();
    let network = match trimmed.parse::<IpAddr>() {
        Ok(address) => Some(IpNet::from(address.to_canonical())),
        Err(_) => trimmed.parse::<IpNet>().ok(),
    };
    network.map(|network| network.trunc()).ok_or_else(|| {
        let expected = "an address or a network such as `10.0.0.0/8` or `2001:db8::/32`";
        Invalid::new("network", text, expected)
    })
}
