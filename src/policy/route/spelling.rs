//! Paths that somebody may take for another one.

/// Whether nobody could take the path for another one.
#[inline]
pub(super) fn is_plain(path: &str) -> bool {
    trimmed(path).is_none() && !path.contains('%')
}

/// The path without slashes too many at its ends, which a layer further in may take off before
/// it routes; `None` if it has none.
#[inline]
pub(super) fn trimmed(path: &str) -> Option<&str> {
    if path == "/" || !(path.ends_with('/') || path.starts_with("//")) {
        return None;
    }
    let path = path.trim_end_matches('/');
    let extra = path.bytes().take_while(|byte| *byte == b'/').count();
    let path = &path[extra.saturating_sub(1)..];
    Some(if path.is_empty() { "/" } else { path })
}

/// The path with its segments decoded, as handlers see them, if it is encoded at all.
pub(super) fn decoded(path: &str) -> Option<String> {
    if !path.contains('%') {
        return None;
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |digit: &u8| char::from(*digit).to_digit(16);
        let octet = match (first, tail) {
            (b'%', [high, low, ..]) => hex(high).zip(hex(low)),
            _ => None,
        };
        match octet.and_then(|(high, low)| u8::try_from(high << 4 | low).ok()) {
            // A slash that is encoded separates nothing.
            Some(octet) if octet != b'/' => {
                bytes.push(octet);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}
