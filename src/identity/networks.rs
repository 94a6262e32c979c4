//! Networks of trusted proxies.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::error::ValidationError;
use crate::network;

/// Addresses that are trusted proxies.
#[derive(Clone, Debug)]
pub(super) enum Trusted {
    /// Addresses in these networks. Usually empty.
    Networks(Arc<[IpNet]>),
    /// Every address.
    All,
}

impl Trusted {
    /// Whether `address` is trusted. It must be folded: never an IPv4-mapped IPv6 address.
    #[inline]
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        match self {
            Self::Networks(networks) => networks.iter().any(|network| network.contains(&address)),
            Self::All => true,
        }
    }
}

/// Parses the network of a trusted proxy.
pub(super) fn network(text: &str) -> Result<IpNet, ValidationError> {
    let instead = "to trust all proxies, call trust_all_proxies_insecure()";
    network::parse("trusted proxy", text, instead)
}
