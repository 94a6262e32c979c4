//! From where a request comes: [`ClientIp`].

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use http::HeaderName;

use super::forwarded_header::ForwardedHeader;
use super::line::Line;
use super::nat64::Nat64;
use super::networks::{Trusted, network};
use super::{forwarded, peer};
use crate::error::{ValidationError, ValidationErrors};
use crate::head::RequestHead;

/// The most hops that are walked back. Who has more of them is known by the last one seen.
const MAX_HOPS: usize = 128;

/// Finds the address of the client.
///
/// By default that is the peer of the connection, and no header is believed. Behind proxies,
/// say which:
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
/// // The proxy saw 203.0.113.9. What stands left of that, the client has made up.
/// let client = client_ip.locate(&RequestHead::of(&request)).unwrap();
/// assert_eq!(client.ip().to_string(), "203.0.113.9");
/// # Ok::<(), tollgate::ValidationErrors>(())
/// ```
///
/// Lists (`X-Forwarded-For`, `Forwarded`) are read over all their lines and from the right, as
/// long as each hop is a trusted proxy; the first that is not is the client. Where an entry
/// is no address (`unknown`, `_hidden`, garbage), the walk ends at the nearest hop that
/// vouched: neither the garbage nor anything left of it counts. Empty entries are skipped. At
/// most 128 hops are walked.
///
/// Single values (`X-Real-IP`, `CF-Connecting-IP`, `True-Client-IP`) are taken from a trusted
/// peer as they are. Several lines, a list or garbage are not its work: then the peer counts.
///
/// IPv6 addresses are [grouped](ClientAddress::group) by /64, because that is what one
/// customer has. IPv4-mapped addresses and NAT64 addresses (`64:ff9b::/96` and
/// [configured prefixes](ClientIpBuilder::nat64_prefixes)) are folded to IPv4.
#[derive(Clone, Debug)]
pub struct ClientIp {
    trusted: Trusted,
    header: ForwardedHeader,
    /// Its name, ready to be looked up by.
    name: HeaderName,
    ipv6_mask: u128,
    nat64: Nat64,
}

impl ClientIp {
    /// The peer address behind no proxy, unless told otherwise.
    pub fn builder() -> ClientIpBuilder {
        ClientIpBuilder::default()
    }

    /// Where a request comes from. `None` if nobody has told the peer's address; see
    /// [`PeerAddr`](super::PeerAddr).
    #[inline]
    #[must_use]
    pub fn locate(&self, head: &RequestHead<'_>) -> Option<ClientAddress> {
        let peer = peer::told(head).map(|address| self.fold(address.ip()));
        let (ip, is_proxy) = match peer {
            Some(peer) if !self.trusted.contains(peer) => (peer, false),
            Some(peer) => self.vouched_for(head).unwrap_or((peer, true)),
            // Who believes everybody also believes a peer without address: a Unix socket.
            None if matches!(self.trusted, Trusted::Everybody) => self.vouched_for(head)?,
            None => return None,
        };
        Some(ClientAddress {
            ip,
            group: self.group(ip),
            is_proxy,
        })
    }

    /// The address that the headers of a trusted peer tell, if they do, and whether it is that
    /// of another proxy, behind which the client is hidden.
    fn vouched_for(&self, head: &RequestHead<'_>) -> Option<(IpAddr, bool)> {
        match self.header {
            ForwardedHeader::XForwardedFor => self.walk(head, forwarded::node),
            ForwardedHeader::Forwarded => self.walk(head, forwarded::forwarded_for),
            _ => match Line::of(head, &self.name) {
                Line::Only(line) => {
                    forwarded::node(line).map(|address| (self.fold(address), false))
                }
                Line::Absent | Line::Identical(_) | Line::Different => None,
            },
        }
    }

    /// The last hop that a trusted one vouches for, from the right.
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
                // There is more, which a trusted hop has seen and nobody looks at.
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
        // A stranger; or one of ours of whom all that is known is that it has asked.
        nearest.map(|hop| (hop, false))
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

/// The peer address, behind no proxy.
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

/// The settings of a [`ClientIp`].
#[derive(Clone, Debug)]
#[must_use]
pub struct ClientIpBuilder {
    trusted_proxies: Vec<String>,
    trust_all: bool,
    header: ForwardedHeader,
    ipv6_prefix: u32,
    nat64_prefixes: Vec<String>,
}

impl ClientIpBuilder {
    const IPV6_PREFIX: u32 = 64;

    /// Proxies whose forwarding headers are believed: addresses or networks in CIDR notation.
    /// Adds to those named before.
    pub fn trusted_proxies(
        mut self,
        networks: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let networks = networks.into_iter().map(Into::into);
        self.trusted_proxies.extend(networks);
        self
    }

    /// The header that the proxies write; `X-Forwarded-For` by default. Only this one is
    /// looked at: a proxy passes on the others as the client sent them.
    pub const fn header(mut self, header: ForwardedHeader) -> Self {
        self.header = header;
        self
    }

    /// How many bits of an IPv6 address make one client, 1 to 128; 64 by default.
    pub const fn ipv6_prefix(mut self, bits: u32) -> Self {
        self.ipv6_prefix = bits;
        self
    }

    /// Prefixes of NAT64 gateways besides the well-known `64:ff9b::/96`: IPv6 networks of 96
    /// bits, such as `64:ff9b:1::/96`, at most 16. Addresses in them are folded to IPv4. Adds to
    /// those named before.
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

    /// Believes the header whoever sends it. **Every client can then pick its own address**,
    /// and a fresh counter with it, unless something else keeps all of them from reaching
    /// this server directly and clears the header first.
    pub const fn trust_all_proxies_insecure(mut self) -> Self {
        self.trust_all = true;
        self
    }

    /// Checks the settings.
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
        if !(1..=128).contains(&self.ipv6_prefix) {
            let error = ValidationError::new("IPv6 prefix", self.ipv6_prefix, "1 to 128 bits");
            errors.push(error.at("ipv6_prefix"));
        }
        errors.or(ClientIp {
            trusted: if self.trust_all {
                Trusted::Everybody
            } else {
                Trusted::Networks(networks.into())
            },
            header: self.header,
            name: self.header.into(),
            ipv6_mask: mask(self.ipv6_prefix),
            nat64,
        })
    }
}

impl Default for ClientIpBuilder {
    fn default() -> Self {
        Self {
            trusted_proxies: Vec::new(),
            trust_all: false,
            header: ForwardedHeader::default(),
            ipv6_prefix: Self::IPV6_PREFIX,
            nat64_prefixes: Vec::new(),
        }
    }
}

/// Where a request comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientAddress {
    ip: IpAddr,
    group: IpAddr,
    is_proxy: bool,
}

impl ClientAddress {
    /// The address itself. IPv4-mapped and NAT64 addresses are folded to IPv4.
    #[must_use]
    pub const fn ip(&self) -> IpAddr {
        self.ip
    }

    /// What is counted: the address, or the network of an IPv6 address.
    #[must_use]
    pub const fn group(&self) -> IpAddr {
        self.group
    }

    /// Whether it is the address of a trusted proxy itself, because that did not tell whom it
    /// has seen: the header was missing, or had garbage for the client. Such a client is
    /// counted, but is not exempt by the network that its proxy is in.
    #[must_use]
    pub const fn is_proxy(&self) -> bool {
        self.is_proxy
    }
}

/// Shows of which kind it is, and not which.
impl fmt::Debug for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.ip {
            IpAddr::V4(_) => "ClientAddress(IPv4)",
            IpAddr::V6(_) => "ClientAddress(IPv6)",
        })
    }
}
