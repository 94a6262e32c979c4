//! `[identity.ip]`

use super::{PolicyReader, TableSpec, ValueKind, keys, set_if};
use crate::config::tree::Setting;
use crate::identity::{ClientIp, ClientIpBuilder, ForwardedHeader};

pub(super) const NETWORK: &str = "an address or a network such as `\"10.0.0.0/8\"`";

pub(super) static IP: TableSpec = TableSpec::new(keys! {
    /// Proxies whose forwarding headers are trusted.
    "trusted_proxies": ValueKind::Texts(NETWORK), aliases ["proxies", "trusted"];
    /// Header in which proxies send the client IP.
    "header": ValueKind::Choice(ForwardedHeader::NAMES), default "\"x-forwarded-for\"";
    /// Bits of an IPv6 address that identify one client.
    "ipv6_prefix": ValueKind::Whole("1 to 128 bits"), default "64";
    /// Prefixes of NAT64 gateways besides `64:ff9b::/96`. Addresses in them are folded to IPv4.
    "nat64_prefixes": ValueKind::Texts("an IPv6 network of 96 bits such as `\"64:ff9b:1::/96\"`"),
        aliases ["nat64_prefix", "nat64"];
});

impl PolicyReader<'_> {
    pub(super) fn client_ip(&mut self, table: &Setting<'_>) -> Option<ClientIp> {
        let prefix = table.get("ipv6_prefix").and_then(|value| value.whole());
        // A number that does not fit is out of the allowed range as well.
        let prefix = prefix.map(|bits| u32::try_from(bits).unwrap_or(u32::MAX));
        let builder = ClientIp::builder()
            .trusted_proxies(table.texts_of("trusted_proxies"))
            .nat64_prefixes(table.texts_of("nat64_prefixes"));
        let builder = set_if(builder, table.parse("header"), ClientIpBuilder::header);
        let builder = set_if(builder, prefix, ClientIpBuilder::ipv6_prefix);
        self.report.check_all(table, builder.build())
    }
}
