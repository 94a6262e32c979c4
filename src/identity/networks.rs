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

    /// Whether no address is trusted.
    pub(super) fn is_none(&self) -> bool {
        matches!(self, Self::Networks(networks) if networks.is_empty())
    }

    /// Returns a network that is half of the internet or more. `None` for [`Trusted::All`], which only
    /// a method with `insecure` in its name sets.
    pub(super) fn part_of_internet(&self) -> Option<IpNet> {
        let Self::Networks(networks) = self else {
            return None;
        };
        networks.iter().copied().find(network::is_half_of_internet)
    }
}

/// Parses the network of a trusted proxy.
pub(super) fn network(text: &str) -> Result<IpNet, ValidationError> {
    let instead = "to trust all proxies, call trust_all_proxies_insecure()";
    network::parse("trusted proxy", text, instead)
}
