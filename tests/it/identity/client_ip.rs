//! From where a request comes, also when its headers lie.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderValue, Request};
use proptest::prelude::*;
use tollgate::RequestHead;
use tollgate::identity::{ClientIp, ForwardedHeader, PeerAddr};

const PROXY: &str = "10.0.0.1";

fn from_peer(peer: &str, header: &str, lines: &[&[u8]]) -> Request<()> {
    let mut request = Request::get("/").body(()).unwrap();
    let peer: IpAddr = peer.parse().unwrap();
    request.extensions_mut().insert(PeerAddr((peer, 1).into()));
    for line in lines {
        let value = HeaderValue::from_bytes(line).unwrap();
        request.headers_mut().append(
            http::HeaderName::from_bytes(header.as_bytes()).unwrap(),
            value,
        );
    }
    request
}

fn behind(header: ForwardedHeader) -> ClientIp {
    ClientIp::builder()
        .trusted_proxies(["10.0.0.0/8", "fd00::/8"])
        .header(header)
        .build()
        .unwrap()
}

fn locate(client_ip: &ClientIp, request: &Request<()>) -> String {
    let found = client_ip.locate(&RequestHead::of(request)).unwrap();
    found.ip().to_string()
}

/// The client behind a trusted proxy that sends these lines of `X-Forwarded-For`.
fn x_forwarded_for(lines: &[&str]) -> String {
    let lines: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
    let request = from_peer(PROXY, "x-forwarded-for", &lines);
    locate(&behind(ForwardedHeader::XForwardedFor), &request)
}

#[test]
fn x_forwarded_for_is_walked_from_the_right() {
    let cases: [(&[&str], &str); 22] = [
        (&[], PROXY),
        (&[""], PROXY),
        (&[" , ,"], PROXY),
        (&["203.0.113.9"], "203.0.113.9"),
        (&["203.0.113.9:4711"], "203.0.113.9"),
        (&["[2001:db8::9]:4711"], "2001:db8::9"),
        (&["2001:db8::9"], "2001:db8::9"),
        (&["fe80::9%eth0"], "fe80::9"),
        (&["::ffff:203.0.113.9"], "203.0.113.9"),
        // What is left of the first stranger is made up.
        (&["6.6.6.6, 203.0.113.9"], "203.0.113.9"),
        (&["10.0.0.9, 203.0.113.9"], "203.0.113.9"),
        (&["6.6.6.6, 203.0.113.9, 10.0.0.7"], "203.0.113.9"),
        (&["203.0.113.9,10.0.0.7 ,\t10.0.0.8"], "203.0.113.9"),
        (&["203.0.113.9, , 10.0.0.7,"], "203.0.113.9"),
        // A proxy in an IPv6 coat is a proxy.
        (&["203.0.113.9, ::ffff:10.0.0.7"], "203.0.113.9"),
        // All of them ours: a request from inside.
        (&["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        // All lines count, the last of them last.
        (&["6.6.6.6", "203.0.113.9"], "203.0.113.9"),
        (&["203.0.113.9", "10.0.0.7", "10.0.0.8"], "203.0.113.9"),
        (&["203.0.113.9, 10.0.0.6", "", "10.0.0.8"], "203.0.113.9"),
        // Garbage ends the walk at the nearest hop that vouched.
        (&["203.0.113.9, unknown, 10.0.0.7"], "10.0.0.7"),
        (&["203.0.113.9, _hidden"], PROXY),
        (&["203.0.113.9", "10.0.0.7:99999"], PROXY),
    ];
    for (lines, expected) in cases {
        assert_eq!(x_forwarded_for(lines), expected, "{lines:?}");
    }
}

#[test]
fn forwarded_is_read_like_it() {
    let client_ip = behind(ForwardedHeader::Forwarded);
    let cases: [(&[&str], &str); 10] = [
        (&["for=203.0.113.9"], "203.0.113.9"),
        (&["For=\"[2001:db8::9]:4711\";proto=https"], "2001:db8::9"),
        (&["for=6.6.6.6, for=203.0.113.9;by=10.0.0.1"], "203.0.113.9"),
        (
            &["for=203.0.113.9", "for=10.0.0.7, for=10.0.0.8"],
            "203.0.113.9",
        ),
        (&["for=203.0.113.9, for=_hidden, for=10.0.0.7"], "10.0.0.7"),
        (&["for=203.0.113.9, for=unknown"], PROXY),
        (&["for=203.0.113.9, proto=https"], PROXY),
        (&["203.0.113.9"], PROXY),
        // A quote that is never closed swallows nothing.
        (&["for=\"6.6.6.6, for=203.0.113.9"], "203.0.113.9"),
        (&["for=6.6.6.6;x=\"", "for=203.0.113.9"], "203.0.113.9"),
    ];
    for (lines, expected) in cases {
        let bytes: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
        let request = from_peer(PROXY, "forwarded", &bytes);
        assert_eq!(locate(&client_ip, &request), expected, "{lines:?}");
    }
}

#[test]
fn address_of_a_proxy_without_header_is_marked_as_proxy() {
    let is_proxy = |header: ForwardedHeader, peer: &str, line: &str| {
        let request = from_peer(peer, header.name(), &[line.as_bytes()]);
        let found = behind(header).locate(&RequestHead::of(&request)).unwrap();
        found.is_proxy()
    };
    let hops = "10.0.0.7,".repeat(200);
    for line in [
        "",
        "unknown",
        "6.6.6.6, _hidden",
        "6.6.6.6, unknown, 10.0.0.7",
        &hops,
    ] {
        assert!(
            is_proxy(ForwardedHeader::XForwardedFor, PROXY, line),
            "{line}"
        );
        assert!(!is_proxy(
            ForwardedHeader::XForwardedFor,
            "198.51.100.1",
            line
        ));
    }
    // A client, also one in our own network.
    for line in ["203.0.113.9", "unknown, 203.0.113.9, 10.0.0.7", "10.0.0.7"] {
        assert!(
            !is_proxy(ForwardedHeader::XForwardedFor, PROXY, line),
            "{line}"
        );
    }
    assert!(is_proxy(ForwardedHeader::XRealIp, PROXY, "unknown"));
    assert!(!is_proxy(ForwardedHeader::XRealIp, PROXY, "10.0.0.7"));
}

/// A proxy passes on the `Host` of the client, correctly quoted.
#[test]
fn nothing_that_a_proxy_quotes_is_taken_for_an_element() {
    let client_ip = behind(ForwardedHeader::Forwarded);
    for host in [
        "evil,for=6.6.6.6;x=",
        "evil,for=6.6.6.6",
        "evil,for=6.6.6.6;x=\"",
        "evil,for=6.6.6.6;x=\"y\"",
        "evil,for=6.6.6.6;x=\\",
        "evil,for=6.6.6.6,",
        "evil,for=6.6.6.6;x=\",for=6.6.6.6;y=",
    ] {
        let quoted = host.replace('\\', "\\\\").replace('"', "\\\"");
        for line in [
            format!("for=203.0.113.9;host=\"{quoted}\""),
            format!("for=203.0.113.9;host=\"{quoted}\";proto=https"),
            format!("for=203.0.113.9;host=\"{quoted}\";by=\"{quoted}\""),
        ] {
            let request = from_peer(PROXY, "forwarded", &[line.as_bytes()]);
            assert_eq!(locate(&client_ip, &request), PROXY, "{line}");
        }
    }
    let plain = b"for=203.0.113.9;host=\"a \\\"quoted\\\" name\";proto=https";
    let request = from_peer(PROXY, "forwarded", &[plain]);
    assert_eq!(locate(&client_ip, &request), "203.0.113.9");
}

#[test]
fn single_values_are_single() {
    for header in [
        ForwardedHeader::XRealIp,
        ForwardedHeader::CfConnectingIp,
        ForwardedHeader::TrueClientIp,
    ] {
        let client_ip = behind(header);
        let cases: [(&[&[u8]], &str); 7] = [
            (&[b"203.0.113.9"], "203.0.113.9"),
            (&[b" 2001:db8::9 "], "2001:db8::9"),
            // A client inside our own network is a client.
            (&[b"10.0.0.7"], "10.0.0.7"),
            (&[b"203.0.113.9", b"203.0.113.9"], PROXY),
            (&[b"203.0.113.9, 6.6.6.6"], PROXY),
            (&[b"unknown"], PROXY),
            (&[b"\xff"], PROXY),
        ];
        for (lines, expected) in cases {
            let request = from_peer(PROXY, header.name(), lines);
            assert_eq!(locate(&client_ip, &request), expected, "{header} {lines:?}");
            let request = from_peer("198.51.100.1", header.name(), lines);
            assert_eq!(locate(&client_ip, &request), "198.51.100.1");
        }
    }
}

#[test]
fn only_the_header_that_was_named_counts() {
    let request = from_peer(PROXY, "x-real-ip", &[b"203.0.113.9"]);
    assert_eq!(
        locate(&behind(ForwardedHeader::XForwardedFor), &request),
        PROXY
    );
}

#[test]
fn no_proxy_is_trusted_by_default() {
    let request = from_peer("127.0.0.1", "x-forwarded-for", &[b"203.0.113.9"]);
    assert_eq!(locate(&ClientIp::default(), &request), "127.0.0.1");
    let unchanged = ClientIp::builder().build().unwrap();
    assert_eq!(locate(&unchanged, &request), "127.0.0.1");
}

#[test]
fn a_peer_in_an_ipv6_coat_is_trusted_and_counted_as_ipv4() {
    let client_ip = behind(ForwardedHeader::XForwardedFor);
    let request = from_peer("::ffff:10.0.0.1", "x-forwarded-for", &[b"203.0.113.9"]);
    assert_eq!(locate(&client_ip, &request), "203.0.113.9");
    let request = from_peer("::ffff:198.51.100.1", "x-forwarded-for", &[b"6.6.6.6"]);
    assert_eq!(locate(&client_ip, &request), "198.51.100.1");
}

#[test]
fn a_hundred_hops_are_walked_and_a_thousand_are_not() {
    let hops = |count: usize| format!("203.0.113.9{}", ", 10.0.0.7".repeat(count));
    assert_eq!(x_forwarded_for(&[&hops(100)]), "203.0.113.9");
    assert_eq!(x_forwarded_for(&[&hops(1_000)]), "10.0.0.7");
    assert_eq!(x_forwarded_for(&[&",".repeat(30_000)]), PROXY);
    assert_eq!(x_forwarded_for(&[&"9".repeat(30_000)]), PROXY);
}

#[test]
fn trusting_all_proxies_lets_every_client_choose_its_address() {
    let client_ip = ClientIp::builder()
        .trust_all_proxies_insecure()
        .build()
        .unwrap();
    let request = from_peer(
        "198.51.100.1",
        "x-forwarded-for",
        &[b"6.6.6.6, 203.0.113.9"],
    );
    assert_eq!(locate(&client_ip, &request), "6.6.6.6");
    let request = from_peer("198.51.100.1", "x-forwarded-for", &[]);
    assert_eq!(locate(&client_ip, &request), "198.51.100.1");

    // A Unix socket has no address; the header has.
    let bare = super::request(&[("x-forwarded-for", "203.0.113.9")]);
    assert_eq!(locate(&client_ip, &bare), "203.0.113.9");
    assert!(
        client_ip
            .locate(&RequestHead::of(&super::request(&[])))
            .is_none()
    );
}

#[test]
fn without_a_peer_there_is_no_client_ip() {
    let request = super::request(&[("x-forwarded-for", "203.0.113.9")]);
    assert!(
        ClientIp::default()
            .locate(&RequestHead::of(&request))
            .is_none()
    );
    let client_ip = behind(ForwardedHeader::XForwardedFor);
    assert!(client_ip.locate(&RequestHead::of(&request)).is_none());
}

#[test]
fn peer_address_is_read_from_several_extensions() {
    let address = |last: u8| SocketAddr::from(([203, 0, 113, last], 80));
    let mut request = super::request(&[]);
    let located = |request: &Request<()>| locate(&ClientIp::default(), request);

    {
        let info = tonic::transport::server::TcpConnectInfo {
            local_addr: None,
            remote_addr: Some(address(1)),
        };
        request.extensions_mut().insert(info);
        assert_eq!(located(&request), "203.0.113.1");
    }
    request.extensions_mut().insert(address(2));
    assert_eq!(located(&request), "203.0.113.2");
    {
        use axum::extract::connect_info::{ConnectInfo, MockConnectInfo};

        request.extensions_mut().insert(MockConnectInfo(address(3)));
        assert_eq!(located(&request), "203.0.113.3");
        request.extensions_mut().insert(ConnectInfo(address(4)));
        assert_eq!(located(&request), "203.0.113.4");
    }
    request.extensions_mut().insert(PeerAddr(address(5)));
    assert_eq!(located(&request), "203.0.113.5");
}

#[test]
fn ipv6_is_counted_by_network() {
    let group = |prefix: u32, peer: &str| {
        let client_ip = ClientIp::builder().ipv6_prefix(prefix).build().unwrap();
        let request = from_peer(peer, "x-forwarded-for", &[]);
        let client = client_ip.locate(&RequestHead::of(&request)).unwrap();
        assert_eq!(client.ip(), peer.parse::<IpAddr>().unwrap().to_canonical());
        client.group().to_string()
    };
    let peer = "2001:db8:1:2:3:4:5:6";
    for (prefix, expected) in [
        (1, "::"),
        (3, "2000::"),
        (48, "2001:db8:1::"),
        (56, "2001:db8:1::"),
        (64, "2001:db8:1:2::"),
        (127, "2001:db8:1:2:3:4:5:6"),
        (128, "2001:db8:1:2:3:4:5:6"),
    ] {
        assert_eq!(group(prefix, peer), expected, "/{prefix}");
    }
    assert_eq!(group(64, "203.0.113.9"), "203.0.113.9");
    assert_eq!(group(64, "::ffff:203.0.113.9"), "203.0.113.9");
}

#[test]
fn wrong_settings_are_refused() {
    for network in ["", "10.0.0.0/40", "proxy.example.com", "0.0.0.0/0"] {
        let refused = ClientIp::builder()
            .trusted_proxies(["127.0.0.1", network])
            .build()
            .unwrap_err();
        let refused = refused.iter().next().unwrap();
        assert_eq!(refused.field(), "trusted proxy");
        assert_eq!(refused.value(), network);
        assert_eq!(refused.path(), Some("trusted_proxies[1]"));
    }
    for prefix in [0, 129] {
        let refused = ClientIp::builder().ipv6_prefix(prefix).build().unwrap_err();
        assert_eq!(refused.iter().next().unwrap().field(), "IPv6 prefix");
    }
    for name in ["X-Forwarded-For", "forwarded", " True-Client-IP "] {
        assert!(name.parse::<ForwardedHeader>().is_ok(), "{name}");
    }
}

#[test]
fn addresses_are_not_shown() {
    let request = from_peer("203.0.113.9", "x-forwarded-for", &[]);
    let client = ClientIp::default()
        .locate(&RequestHead::of(&request))
        .unwrap();
    assert_eq!(format!("{client:?}"), "ClientAddress(IPv4)");
}

fn any_header() -> impl Strategy<Value = ForwardedHeader> {
    prop::sample::select(vec![
        ForwardedHeader::XForwardedFor,
        ForwardedHeader::Forwarded,
        ForwardedHeader::XRealIp,
        ForwardedHeader::CfConnectingIp,
        ForwardedHeader::TrueClientIp,
    ])
}

/// Lines of anything that a header may hold, and of things that look like addresses.
fn any_lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let bytes = prop::collection::vec(any::<u8>(), 0..80);
    let alike = "(for=|For=\")?[0-9a-f:.%\\[\\], ;=_\"]{0,60}".prop_map(String::into_bytes);
    let line = prop_oneof![bytes, alike].prop_filter("a header value", |line| {
        HeaderValue::from_bytes(line).is_ok()
    });
    prop::collection::vec(line, 0..5)
}

proptest! {
    #[test]
    fn a_stranger_changes_nothing_with_headers(header in any_header(), lines in any_lines()) {
        let lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
        let request = from_peer("198.51.100.1", header.name(), &lines);
        prop_assert_eq!(locate(&behind(header), &request), "198.51.100.1");
    }

    #[test]
    fn nothing_panics_behind_a_proxy(header in any_header(), lines in any_lines()) {
        let lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
        let request = from_peer(PROXY, header.name(), &lines);
        prop_assert!(behind(header).locate(&RequestHead::of(&request)).is_some());
    }

    /// The proxy appends its peer to whatever the client has sent.
    #[test]
    fn entries_left_of_an_untrusted_hop_are_ignored(
        made_up in any_lines(),
        seen: std::net::Ipv4Addr,
        hops in prop::collection::vec(any::<u16>(), 0..4),
        same_line: bool,
    ) {
        prop_assume!(seen.octets()[0] != 10);
        let mut truth = seen.to_string();
        for hop in hops {
            truth = format!("{truth}, 10.1.{}.{}", hop >> 8, hop & 255);
        }
        let mut lines = made_up;
        match lines.last_mut() {
            Some(last) if same_line => {
                last.extend_from_slice(b", ");
                last.extend_from_slice(truth.as_bytes());
            }
            _ => lines.push(truth.into_bytes()),
        }
        let lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
        let request = from_peer(PROXY, "x-forwarded-for", &lines);
        let found = locate(&behind(ForwardedHeader::XForwardedFor), &request);
        prop_assert_eq!(found, seen.to_string());
    }
}
