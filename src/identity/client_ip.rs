//! The client IP of a request: [`ClientIp`].

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use http::HeaderName;
use ipnet::IpNet;

use super::forwarded_header::ForwardedHeader;
use super::nat64::Nat64;
use super::networks::{Trusted, network};
use super::single_header::SingleHeader;
use super::{forwarded, peer};
use crate::error::{ValidationError, ValidationErrors};
use crate::head::RequestHead;

/// Most hops that are walked. Beyond, the last hop that was walked is the client.
const MAX_HOPS: usize = 128;

/// Finds the client IP of a request.
///
/// By default this is the peer address, and no header is read. Behind proxies, name them:
///
/// ```
/// use http::Request;
/// use tollgate::RequestHead;
/// use tollgate::identity::{ClientIp, PeerAddr};
///
/// let client_ip = ClientIp::builder()
///     .trusted_proxies(["10.0.0.0/8", "127.0.0.1"])
///     .build()?;
///
/// let mut request = Request::get("/")
///     .header("x-forwarded-for", "6.6.6.6, 203.0.113.9, 10.0.0.7")
///     .body(())
///     .unwrap();
/// request.extensions_mut().insert(PeerAddr("10.0.0.1:443".parse().unwrap()));
///
/// // The proxy has appended 203.0.113.9. The client controls everything to the left of it.
/// let client = client_ip.locate(&RequestHead::of(&request)).unwrap();
/// assert_eq!(client.ip().to_string(), "203.0.113.9");
/// # Ok::<(), tollgate::ValidationErrors>(())
/// ```
///
/// Lists (`X-Forwarded-For`, `Forwarded`) are read over all their lines and from the right, as
/// long as each hop is a trusted proxy; the first that is not is the client. At an
/// entry that is not an address (`unknown`, `_hidden`), the walk ends at the hop to the right of it:
/// neither the entry nor anything left of it is used. Empty entries are skipped. At
/// most 128 hops are walked.
///
/// Single values (`X-Real-IP`, `CF-Connecting-IP`, `True-Client-IP`) are used as a trusted peer sends
/// them. With several lines, a list or an invalid value, the peer is the client.
///
/// IPv6 addresses are [grouped](ClientAddress::group) by /64, the usual size of one customer's
/// network. IPv4-mapped addresses and NAT64 addresses (`64:ff9b::/96` and
/// [configured prefixes](ClientIpBuilder::nat64_prefixes)) are folded to IPv4.
#[derive(Clone, Debug)]
pub struct ClientIp {
    trusted: Trusted,
    header: ForwardedHeader,
    /// Name of `header`, parsed once.
    name: HeaderName,
    ipv6_mask: u128,
    nat64: Nat64,
}

impl ClientIp {
    /// Starts with the default settings: the peer address, no proxy.
    pub fn builder() -> ClientIpBuilder {
        ClientIpBuilder::default()
    }

    /// Returns the client IP. `None` if the request has no peer address; see
    /// [`PeerAddr`](super::PeerAddr).
    #[inline]
    #[must_use]
    pub fn locate(&self, head: &RequestHead<'_>) -> Option<ClientAddress> {
        let peer = peer::address(head).map(|address| self.fold(address.ip()));
        let (ip, is_proxy) = match peer {
            Some(peer) if !self.trusted.contains(peer) => (peer, false),
            Some(peer) => self.forwarded_address(head).unwrap_or((peer, true)),
            // If every proxy is trusted, so is a peer without an address: a Unix socket.
            None if matches!(self.trusted, Trusted::All) => self.forwarded_address(head)?,
            None => return None,
        };
        Some(ClientAddress {
            ip,
            group: self.group(ip),
            is_proxy,
        })
    }

    /// Returns the address in the header of a trusted peer, and whether it is that of another proxy,
    /// because the address of the client is missing.
    fn forwarded_address(&self, head: &RequestHead<'_>) -> Option<(IpAddr, bool)> {
        match self.header {
            ForwardedHeader::XForwardedFor => self.walk(head, forwarded::node),
            ForwardedHeader::Forwarded => self.walk(head, forwarded::forwarded_for),
            _ => match SingleHeader::of(head, &self.name) {
                SingleHeader::Only(line) => {
                    forwarded::node(line).map(|address| (self.fold(address), false))
                }
                SingleHeader::Absent | SingleHeader::Identical(_) | SingleHeader::Different => None,
            },
        }
    }

    /// Returns the leftmost hop that a trusted proxy has appended, walking from the right.
    fn walk(
        &self,
        head: &RequestHead<'_>,
        address: fn(&[u8]) -> Option<IpAddr>,
    ) -> Option<(IpAddr, bool)> {
        let lines = head.headers().get_all(&self.name);
        let elements = lines
            .iter()
            .rev()
            .flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
        let mut nearest = None;
        for (walked, element) in elements.enumerate() {
            if walked == MAX_HOPS {
                // A trusted hop has appended more addresses, which are not read.
                return nearest.map(|hop| (hop, true));
            }
            if element.trim_ascii().is_empty() {
                continue;
            }
            let Some(hop) = address(element).map(|hop| self.fold(hop)) else {
                return nearest.map(|hop| (hop, true));
            };
            nearest = Some(hop);
            if !self.trusted.contains(hop) {
                break;
            }
        }
        // Not a trusted proxy, or the leftmost entry: a trusted host that sent the request itself.
        nearest.map(|hop| (hop, false))
    }

    /// Returns the name of a forwarding header of a request that is ignored because no proxy is
    /// trusted.
    pub(crate) fn ignored_header(&self, head: &RequestHead<'_>) -> Option<HeaderName> {
        let names = ForwardedHeader::NAMES
            .iter()
            .map(|name| HeaderName::from_static(name));
        let mut names = names.filter(|_| self.trusted.is_none());
        names.find(|name| head.headers().contains_key(name))
    }

    /// Returns a trusted network that is half of the internet or more.
    pub(crate) fn trusted_part_of_internet(&self) -> Option<IpNet> {
        self.trusted.part_of_internet()
    }

    /// Returns the IPv4 address that a mapped or NAT64 address stands for, else the address
    /// itself.
    #[inline]
    pub(crate) fn fold(&self, ip: IpAddr) -> IpAddr {
        self.nat64.fold(ip)
    }

    /// Returns what counts as one client: the folded address, or the network of an IPv6 address.
    #[inline]
    pub(crate) fn group(&self, ip: IpAddr) -> IpAddr {
        match self.fold(ip) {
            folded @ IpAddr::V4(_) => folded,
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & self.ipv6_mask)),
        }
    }
}

/// The peer address, no proxy.
impl Default for ClientIp {
    fn default() -> Self {
        Self {
            trusted: Trusted::Networks([].into()),
            header: ForwardedHeader::default(),
            name: ForwardedHeader::default().into(),
            ipv6_mask: mask(ClientIpBuilder::IPV6_PREFIX),
            nat64: Nat64::default(),
        }
    }
}

const fn mask(prefix: u32) -> u128 {
    match u128::MAX.checked_shl(128_u32.saturating_sub(prefix)) {
        Some(mask) => mask,
        None => 0,
    }
}

/// Settings of a [`ClientIp`].
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ClientIpBuilder {
    trusted_proxies: Vec<String>,
    trust_all: bool,
    header: ForwardedHeader,
    ipv6_prefix: Option<u32>,
    nat64_prefixes: Vec<String>,
}

impl ClientIpBuilder {
    const IPV6_PREFIX: u32 = 64;

    /// Adds proxies whose forwarding header is trusted: addresses, or networks in CIDR notation.
    pub fn trusted_proxies(
        mut self,
        networks: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let networks = networks.into_iter().map(Into::into);
        self.trusted_proxies.extend(networks);
        self
    }

    /// Sets the header that the proxies write. Default: `X-Forwarded-For`. No other header is read: a
    /// proxy passes on the others as the client sent them.
    pub const fn header(mut self, header: ForwardedHeader) -> Self {
        self.header = header;
        self
    }

    /// Sets how many bits of an IPv6 address identify one client, 1 to 128. Default: 64.
    pub const fn ipv6_prefix(mut self, bits: u32) -> Self {
        self.ipv6_prefix = Some(bits);
        self
    }

    /// Adds prefixes of NAT64 gateways besides the well-known `64:ff9b::/96`: IPv6 networks of 96
    /// bits, such as `64:ff9b:1::/96`, at most 16. Addresses in them are folded to IPv4.
    ///
    /// Name only prefixes that your own network translates: a client that can send from such an
    /// address can choose its IPv4 address.
    ///
    /// Write exempt networks of a policy as IPv4: the addresses are folded before they are
    /// compared.
    pub fn nat64_prefixes(mut self, prefixes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let prefixes = prefixes.into_iter().map(Into::into);
        self.nat64_prefixes.extend(prefixes);
        self
    }

    /// Trusts the header of every peer. **Every client can then choose its own address**, and with it
    /// a new counter. Use it only if clients cannot reach this server directly and a proxy removes
    /// the header from their requests.
    pub const fn trust_all_proxies_insecure(mut self) -> Self {
        self.trust_all = true;
        self
    }

    /// Validates the settings.
    ///
    /// # Errors
    ///
    /// All wrong settings, each with its path: `trusted_proxies[1]`.
    pub fn build(self) -> Result<ClientIp, ValidationErrors> {
        let mut errors = ValidationErrors::default();
        let nat64 = Nat64::new(&self.nat64_prefixes, &mut errors);
        let mut networks = Vec::with_capacity(self.trusted_proxies.len());
        for (index, text) in self.trusted_proxies.iter().enumerate() {
            let network =
                network(text).map_err(|error| error.at(format!("trusted_proxies[{index}]")));
            networks.extend(
                errors
                    .note(network)
                    .map(|network| nat64.fold_network(network)),
            );
        }
        let ipv6_prefix = self.ipv6_prefix.unwrap_or(Self::IPV6_PREFIX);
        if !(1..=128).contains(&ipv6_prefix) {
            let error = ValidationError::new("IPv6 prefix", ipv6_prefix, "1 to 128 bits");
            errors.push(error.at("ipv6_prefix"));
        }
        errors.or(ClientIp {
            trusted: if self.trust_all {
                Trusted::All
            } else {
                Trusted::Networks(networks.into())
            },
            header: self.header,
            name: self.header.into(),
            ipv6_mask: mask(ipv6_prefix),
            nat64,
        })
    }
}

/// Client IP of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientAddress {
    ip: IpAddr,
    group: IpAddr,
    is_proxy: bool,
}

impl ClientAddress {
    /// Returns the address. IPv4-mapped and NAT64 addresses are folded to IPv4.
    #[must_use]
    pub const fn ip(&self) -> IpAddr {
        self.ip
    }

    /// Returns what limits count per: the address, or the network of an IPv6 address.
    #[must_use]
    pub const fn group(&self) -> IpAddr {
        self.group
    }

    /// Whether this is the address of a trusted proxy, because its header was missing or invalid. Such
    /// a request is limited by the address of the proxy, but an exempt network that contains the proxy
    /// does not exempt it.
    #[must_use]
    pub const fn is_proxy(&self) -> bool {
        self.is_proxy
    }
}

/// Shows the kind of address. Hides the address.
impl fmt::Debug for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.ip {
            IpAddr::V4(_) => "ClientAddress(IPv4)",
            IpAddr::V6(_) => "ClientAddress(IPv6)",
        })
    }
}
