//! Base64 as tokens have it: the URL-safe alphabet, no padding, one spelling per value.

/// The bytes, or `None` if there is anything else in it. Bits that are left over must be zero:
/// else one signature would have several spellings, each a token of its own.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    for group in text.chunks(4) {
        let mut bits = 0_u32;
        for letter in group {
            bits = bits << 6 | u32::from(value(*letter)?);
        }
        let [_, first, second, third] = match group.len() {
            4 => bits,
            3 if bits & 0b11 == 0 => bits << 6,
            2 if bits & 0b1111 == 0 => bits << 12,
            _ => return None,
        }
        .to_be_bytes();
        bytes.extend_from_slice(&[first, second, third][..group.len() - 1]);
    }
    Some(bytes)
}

const fn value(letter: u8) -> Option<u8> {
    Some(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn vectors_of_the_rfc() {
        for (text, bytes) in [
            ("", ""),
            ("Zg", "f"),
            ("Zm8", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg", "foob"),
            ("Zm9vYmE", "fooba"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(decode(text.as_bytes()).unwrap(), bytes.as_bytes());
        }
        assert_eq!(decode(b"-_-_").unwrap(), [0xfb, 0xff, 0xbf]);
    }

    #[test]
    fn one_spelling_only() {
        for text in [
            "Zg==", "Zh", "Zm9=", "Zm9", "Z", "Zm9vY", "Zm 9v", "+/+/", "Zm9v\n", "é",
        ] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }
}
