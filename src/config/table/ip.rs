//! `[identity.ip]`

use super::{KeySpec, PolicyReader, TableSpec, ValueKind, set_if};
use crate::config::tree::Setting;
use crate::identity::{ClientIp, ClientIpBuilder};

pub(super) const NETWORK: &str = "an address or a network such as `\"10.0.0.0/8\"`";
const FORWARDED: &[&str] = &[
    "x-forwarded-for",
    "forwarded",
    "x-real-ip",
    "cf-connecting-ip",
    "true-client-ip",
];

pub(super) static IP: TableSpec = TableSpec::new(&[
    KeySpec::new(
        "trusted_proxies",
        ValueKind::Texts(NETWORK),
        "Proxies whose forwarding headers are trusted.",
    )
    .aliases(&["proxies", "trusted"]),
    KeySpec::new(
        "header",
        ValueKind::Choice(FORWARDED),
        "Header in which proxies send the client IP.",
    )
    .default("\"x-forwarded-for\""),
    KeySpec::new(
        "ipv6_prefix",
        ValueKind::Whole("1 to 128 bits"),
        "Bits of an IPv6 address that identify one client.",
    )
    .default("64"),
    KeySpec::new(
        "nat64_prefixes",
        ValueKind::Texts("an IPv6 network of 96 bits such as `\"64:ff9b:1::/96\"`"),
        "Prefixes of NAT64 gateways besides `64:ff9b::/96`. Addresses in them are folded to IPv4.",
    )
    .aliases(&["nat64_prefix", "nat64"]),
]);

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::ForwardedHeader;

    #[test]
    fn every_header_is_one_of_the_model() {
        for name in FORWARDED {
            assert_eq!(name.parse::<ForwardedHeader>().unwrap().as_str(), *name);
        }
    }
}
