//! Networks whose word is trusted.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::error::ValidationError;
use crate::network;

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

/// The network of a trusted proxy.
pub(super) fn network(text: &str) -> Result<IpNet, ValidationError> {
    let instead = "to trust all proxies, call trust_all_proxies_insecure()";
    network::parse("trusted proxy", text, instead)
}
