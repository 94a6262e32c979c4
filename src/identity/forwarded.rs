//! Parser of forwarding headers: returns the address in one element.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Longer than any address with brackets, zone and port. What is longer is not looked at.
const MAX_NODE: usize = 96;
/// Longer than any element of `Forwarded` that a proxy writes.
const MAX_ELEMENT: usize = 512;

/// The address in an element of `X-Forwarded-For` and its like: with or without port, brackets
/// and zone. `None` for anything else: `unknown`, `_hidden`, garbage.
pub(super) fn node(text: &[u8]) -> Option<IpAddr> {
    let text = text.trim_ascii();
    if text.len() > MAX_NODE {
        return None;
    }
    let text = str::from_utf8(text).ok()?;
    if let Some(rest) = text.strip_prefix('[') {
        let (inside, after) = rest.split_once(']')?;
        let port_is_fine = after.is_empty() || after.strip_prefix(':').is_some_and(is_port);
        return port_is_fine.then(|| v6(inside)).flatten();
    }
    match text.split_once(':') {
        None => v4(text),
        // A second colon: no IPv4 address with a port, but IPv6 without brackets.
        Some((_, rest)) if rest.contains(':') => v6(text),
        Some((address, port)) => is_port(port).then(|| v4(address)).flatten(),
    }
}

fn v4(text: &str) -> Option<IpAddr> {
    Ipv4Addr::from_str(text).ok().map(IpAddr::V4)
}

/// Without the zone, which means something only on the machine that wrote it. An
/// IPv4-mapped address is returned as IPv4.
fn v6(text: &str) -> Option<IpAddr> {
    let address = match text.split_once('%') {
        Some((_, "")) => return None,
        Some((address, _)) => address,
        None => text,
    };
    let address = Ipv6Addr::from_str(address).ok()?;
    Some(IpAddr::V6(address).to_canonical())
}

/// A port, or the obfuscated one that RFC 7239 allows.
fn is_port(text: &str) -> bool {
    match text.strip_prefix('_') {
        Some(rest) => !rest.is_empty() && rest.bytes().all(is_obfuscated),
        None => u16::from_str(text).is_ok() && text.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

const fn is_obfuscated(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

/// The address of `for=` in an element of `Forwarded` (RFC 7239). `None` if there is none, or
/// more than one, or if any pair of the element is not well formed.
///
/// Elements are cut at every comma and pairs at every semicolon, also inside quotes: a quote
/// that is never closed must not swallow what a proxy appends. So what is cut may be the tail
/// of a quoted string, whose text the client chose: `host="evil,for=6.6.6.6;x="`. Such a tail ends
/// with a quote that it does not open, because proxies escape quotes inside of quotes. Its last pair is
/// therefore malformed, and the whole element is rejected.
pub(super) fn forwarded_for(element: &[u8]) -> Option<IpAddr> {
    if element.len() > MAX_ELEMENT {
        return None;
    }
    let mut found = None;
    for pair in element.split(|byte| *byte == b';').map(<[u8]>::trim_ascii) {
        if pair.is_empty() {
            continue;
        }
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
        if name.is_empty() || !name.iter().copied().all(is_token) {
            return None;
        }
        let value = unquoted(value)?;
        if name.eq_ignore_ascii_case(b"for") && found.replace(node(value)?).is_some() {
            return None;
        }
    }
    found
}

/// What is inside one whole quoted string, or a bare value; `None` for anything in between.
fn unquoted(value: &[u8]) -> Option<&[u8]> {
    match value {
        [b'"', inside @ .., b'"'] => is_quotable(inside).then_some(inside),
        // Also what should be quoted, and often is not: `[2001:db8::1]:80`, `/a/path`.
        [_, ..] => {
            let bare = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
            value.iter().all(bare).then_some(value)
        }
        [] => None,
    }
}

/// Whether every quote has its backslash, and every backslash something to stand before.
fn is_quotable(inside: &[u8]) -> bool {
    let mut bytes = inside.iter();
    while let Some(byte) = bytes.next() {
        let fine = match byte {
            b'"' => false,
            b'\\' => bytes.next().is_some(),
            _ => true,
        };
        if !fine {
            return false;
        }
    }
    true
}

const fn is_token(byte: u8) -> bool {
    byte.is_ascii_graphic()
        && !matches!(
            byte,
            b'"' | b'(' | b')' | b',' | b'/' | b':'..=b'@' | b'['..=b']' | b'{' | b'}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn nodes_in_every_spelling() {
        for (text, expected) in [
            ("203.0.113.9", "203.0.113.9"),
            ("  203.0.113.9\t", "203.0.113.9"),
            ("203.0.113.9:443", "203.0.113.9"),
            ("203.0.113.9:_port", "203.0.113.9"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("[2001:db8::1]:8080", "2001:db8::1"),
            ("fe80::1%eth0", "fe80::1"),
            ("[fe80::1%25eth0]:1", "fe80::1"),
            ("::ffff:203.0.113.9", "203.0.113.9"),
            ("[::ffff:cb00:7109]:1", "203.0.113.9"),
        ] {
            assert_eq!(node(text.as_bytes()), Some(address(expected)), "{text}");
        }
    }

    #[test]
    fn invalid_addresses_are_rejected() {
        for text in [
            "",
            " ",
            "unknown",
            "_hidden",
            "example.com",
            "203.0.113",
            "203.0.113.9.1",
            "203.0.113.09",
            "203.0.113.256",
            "0x7f.0.0.1",
            "203.0.113.9:",
            "203.0.113.9:65536",
            "203.0.113.9:+80",
            "203.0.113.9:_",
            "203.0.113.9:80:80",
            "[203.0.113.9]",
            "[2001:db8::1",
            "2001:db8::1]",
            "[2001:db8::1]8080",
            "[2001:db8::1]:",
            "[]",
            "[[::1]]",
            "fe80::1%",
            "203.0.113.9%eth0",
            "203.0.113.9 198.51.100.1",
            "\"203.0.113.9\"",
            "::1\0",
            "٢٠٣.0.113.9",
        ] {
            assert_eq!(node(text.as_bytes()), None, "{text}");
        }
        assert_eq!(node(&[0xff, 0xfe]), None);
        assert_eq!(node(&[b'1'; 10_000]), None);
    }

    #[test]
    fn elements_of_forwarded() {
        for (text, expected) in [
            ("for=203.0.113.9", "203.0.113.9"),
            ("For=\"203.0.113.9:80\"", "203.0.113.9"),
            ("proto=https; for=203.0.113.9 ;by=10.0.0.1", "203.0.113.9"),
            ("for=\"[2001:db8::1]:4711\";host=example.com", "2001:db8::1"),
            ("for=[2001:db8::1]", "2001:db8::1"),
            ("for=203.0.113.9;", "203.0.113.9"),
            ("for=203.0.113.9;host=\"a \\\" b\";by=_x", "203.0.113.9"),
            ("host=\"\";for=203.0.113.9:80", "203.0.113.9"),
        ] {
            assert_eq!(
                forwarded_for(text.as_bytes()),
                Some(address(expected)),
                "{text}"
            );
        }
    }

    #[test]
    fn elements_without_a_valid_address() {
        for text in [
            "",
            "for",
            "for=",
            "for=\"\"",
            "for=unknown",
            "for=_gazonk",
            "for=\"_gazonk\"",
            "for=\"203.0.113.9",
            "for=203.0.113.9\"",
            "for=\"203.0.113\\.9\"",
            "by=203.0.113.9",
            "proto=https",
            "203.0.113.9",
            "for=203.0.113.9;for=198.51.100.1",
            "for=198.51.100.1;garbage",
            "for=198.51.100.1;=x",
            "for=198.51.100.1;a b=x",
            "for=198.51.100.1;host=",
            "for=198.51.100.1;host=a b",
            "for=198.51.100.1;host=\"a\"b",
            "for=198.51.100.1;host=\"a\"b\"",
            "for=198.51.100.1;host=\"a\\\"",
        ] {
            assert_eq!(forwarded_for(text.as_bytes()), None, "{text}");
        }
        let long = format!("for=203.0.113.9;pad={}", "x".repeat(MAX_ELEMENT));
        assert_eq!(forwarded_for(long.as_bytes()), None);
    }

    /// Whatever a client puts into a value that its proxy quotes, no tail of it is an element.
    #[test]
    fn no_tail_of_a_quoted_string_is_an_address() {
        for text in [
            "for=6.6.6.6;x=\"",
            "for=6.6.6.6\"",
            "for=6.6.6.6;x=\\\"\"",
            "for=6.6.6.6;x=\\\"y\\\"\"",
            "for=6.6.6.6;x=\\\\\"",
            "for=6.6.6.6;x=\";proto=https",
            "for=6.6.6.6;x=\";by=\"10.0.0.1\"",
            "for=6.6.6.6;x=\";by=\"\"",
            "for=6.6.6.6;x= \";by= \" ",
            "for=6.6.6.6;\"",
        ] {
            assert_eq!(forwarded_for(text.as_bytes()), None, "{text}");
        }
    }
}
