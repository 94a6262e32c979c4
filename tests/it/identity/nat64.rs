//! NAT64 addresses are folded to IPv4 wherever an address is compared or counted.

use std::net::IpAddr;

use http::Request;
use tollgate::identity::{ClientIp, ClientIpBuilder, ForwardedHeader, PeerAddr};
use tollgate::policy::Policy;
use tollgate::{ManualClock, Override, RateLimitLayer, RequestHead};

use crate::support::http::{Answer, echo, send_from};

/// A prefix of our own network, besides the well-known one.
const OWN: &str = "2001:db8:64::/96";

fn client(builder: ClientIpBuilder, peer: &str, header: (&str, &str)) -> String {
    let mut request = Request::get("/").header(header.0, header.1);
    let peer = PeerAddr((peer.parse::<IpAddr>().unwrap(), 1).into());
    request.extensions_mut().unwrap().insert(peer);
    let request = request.body(()).unwrap();
    let client_ip = builder.build().unwrap();
    client_ip
        .locate(&RequestHead::of(&request))
        .unwrap()
        .ip()
        .to_string()
}

#[test]
fn peers_and_forwarded_addresses_are_folded() {
    let builder = || ClientIp::builder().trusted_proxies(["10.0.0.0/8"]);
    let (none, xff) = (("x-other", ""), "x-forwarded-for");
    for (builder, peer, header, expected) in [
        (builder(), "64:ff9b::8.8.8.9", none, "8.8.8.9"),
        (builder(), "10.0.0.1", (xff, "64:ff9b::808:809"), "8.8.8.9"),
        (
            builder().trusted_proxies(["8.8.4.0/24"]),
            "64:ff9b::8.8.4.4",
            (xff, "203.0.113.9, [64:ff9b::8.8.4.7]:80"),
            "203.0.113.9",
        ),
        (
            builder().header(ForwardedHeader::XRealIp),
            "10.0.0.1",
            ("x-real-ip", "64:ff9b::8.8.8.9"),
            "8.8.8.9",
        ),
        (
            builder().header(ForwardedHeader::Forwarded),
            "10.0.0.1",
            ("forwarded", "for=\"[64:ff9b::8.8.8.9]:1\""),
            "8.8.8.9",
        ),
        // Not global: only if configured.
        (
            builder(),
            "64:ff9b:1::cb00:7109",
            none,
            "64:ff9b:1::cb00:7109",
        ),
        (
            builder().nat64_prefixes(["64:ff9b:1::/96", OWN]),
            "64:ff9b:1::cb00:7109",
            none,
            "203.0.113.9",
        ),
        (
            builder().nat64_prefixes([OWN]),
            "2001:db8:64::a00:1",
            (xff, "2001:db8:64::cb00:7109"),
            "203.0.113.9",
        ),
    ] {
        assert_eq!(client(builder, peer, header), expected, "{peer} {header:?}");
    }
}

#[test]
fn trusted_proxies_may_be_written_as_nat64_addresses() {
    for (network, peer) in [
        ("64:ff9b::8.8.4.0/120", "8.8.4.4"),
        ("64:ff9b::10.0.0.0/104", "64:ff9b::10.0.0.1"),
        ("64:ff9b::10.0.0.1", "64:ff9b::10.0.0.1"),
        ("2001:db8:64::a00:0/104", "2001:db8:64::a00:1"),
        ("2001:db8:64::a00:1", "10.0.0.1"),
    ] {
        let builder = ClientIp::builder()
            .nat64_prefixes([OWN])
            .trusted_proxies([network]);
        let header = ("x-forwarded-for", "203.0.113.9");
        assert_eq!(client(builder, peer, header), "203.0.113.9", "{network}");
    }
}

/// RFC 6052, section 3.1: the well-known prefix never stands for an address that is not global.
#[test]
fn well_known_prefix_never_makes_a_client_a_trusted_proxy() {
    let header = ("x-forwarded-for", "203.0.113.9");
    for (network, peer) in [
        ("127.0.0.0/8", "64:ff9b::7f00:1"),
        ("10.0.0.0/8", "64:ff9b::a00:1"),
        ("172.16.0.0/12", "64:ff9b::ac1f:1"),
        ("192.168.0.0/16", "64:ff9b::c0a8:1"),
        ("169.254.0.0/16", "64:ff9b::a9fe:1"),
        ("100.64.0.0/10", "64:ff9b::647f:1"),
    ] {
        let builder = || ClientIp::builder().trusted_proxies([network]);
        assert_eq!(client(builder(), peer, header), peer, "{network}");
        // If the operator configures the prefix, every address in it is folded.
        let configured = builder().nat64_prefixes(["64:ff9b::/96"]);
        assert_eq!(client(configured, peer, header), "203.0.113.9", "{network}");
    }
}

#[tokio::test]
async fn well_known_prefix_does_not_exempt_private_addresses() {
    let policy = Policy::builder()
        .everyone("1/hour")
        .exempt_network("127.0.0.0/8");
    let limits = RateLimitLayer::builder(policy).clock(ManualClock::new());
    let app = echo().layer(limits.build().unwrap());
    let peer = "[64:ff9b::127.0.0.1]:1";
    assert_eq!(send_from(&app, peer, "GET /", &[]).await.status, 200);
    assert_eq!(send_from(&app, peer, "GET /", &[]).await.status, 429);
}

#[test]
fn only_prefixes_of_96_bits_are_accepted() {
    for text in ["64:ff9b:1::/48", "10.0.0.0/8", "64:ff9b:1::1/96", "nat64"] {
        let refused = ClientIp::builder().nat64_prefixes([text]).build();
        let refused = refused.unwrap_err();
        let refused = refused.iter().next().unwrap();
        assert_eq!((refused.field(), refused.value()), ("NAT64 prefix", text));
    }
}

fn remaining(answer: &Answer) -> Option<u64> {
    answer.header("x-ratelimit-remaining")?.parse().ok()
}

#[tokio::test]
async fn a_client_has_one_counter_in_every_form_of_its_address() {
    let forms = ["8.8.8.9:1", "[::ffff:8.8.8.9]:1", "[64:ff9b::8.8.8.9]:1"];
    // One quota and nothing else; a policy with more; proxies that are trusted.
    let plain = RateLimitLayer::builder("100/hour");
    let policy = Policy::builder()
        .everyone("100/hour")
        .endpoint("GET /items", "10/hour");
    let with_routes = RateLimitLayer::builder(policy);
    let behind_proxies = RateLimitLayer::builder("100/hour").trusted_proxies(["10.0.0.0/8"]);
    for builder in [plain, with_routes, behind_proxies] {
        let app = echo().layer(builder.clock(ManualClock::new()).build().unwrap());
        for (form, left) in forms.iter().zip([99, 98, 97]) {
            let answer = send_from(&app, form, "GET /", &[]).await;
            assert_eq!(remaining(&answer), Some(left), "{form}");
        }
        // Two IPv4 clients never share a counter.
        let other = send_from(&app, "[64:ff9b::8.8.8.10]:1", "GET /", &[]).await;
        assert_eq!(remaining(&other), Some(99));
    }
}

#[tokio::test]
async fn exempt_networks_contain_nat64_addresses() {
    let client_ip = ClientIp::builder().nat64_prefixes([OWN]).build().unwrap();
    for network in ["8.8.4.0/24", "64:ff9b::8.8.4.0/120"] {
        let policy = Policy::builder()
            .everyone("100/hour")
            .exempt_network(network);
        let layer = RateLimitLayer::builder(policy).client_ip(client_ip.clone());
        let app = echo().layer(layer.build().unwrap());
        for (peer, is_exempt) in [
            ("8.8.4.7:1", true),
            ("[64:ff9b::8.8.4.7]:1", true),
            ("[2001:db8:64::808:407]:1", true),
            ("[64:ff9b::8.8.8.9]:1", false),
            ("[64:ff9b:1::808:407]:1", false),
        ] {
            let answer = send_from(&app, peer, "GET /", &[]).await;
            assert_eq!(remaining(&answer).is_none(), is_exempt, "{network} {peer}");
        }
    }
}

#[tokio::test]
async fn an_override_for_a_nat64_address_applies() {
    let builder = RateLimitLayer::builder("100/hour").clock(ManualClock::new());
    let limits = builder.build().unwrap();
    let ip: IpAddr = "64:ff9b::8.8.8.9".parse().unwrap();
    let new = Override::new([("ip", ip)], "global", "7/hour").unwrap();
    limits.set_override(new).await.unwrap();
    let app = echo().layer(limits);
    let answer = send_from(&app, "8.8.8.9:1", "GET /", &[]).await;
    assert_eq!(remaining(&answer), Some(6));
}
