//! Suggestions of similar names: "did you mean …?"

/// Longer names are not compared, because the cost grows with the square of the length.
const LONGEST: usize = 64;

/// Returns the most similar name, if one is similar enough.
pub(super) fn nearest<'a>(
    written: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    if written.len() > LONGEST {
        return None;
    }
    let written = plain(written);
    // Two letters of six, one of three.
    let most = (written.chars().count() / 3).max(1);
    let names = names.into_iter().filter(|name| name.len() <= LONGEST);
    let near = names.filter_map(|name| {
        let distance = strsim::damerau_levenshtein(&written, &plain(name));
        (distance <= most).then_some((distance, name))
    });
    // The first of several, so that the message is always the same.
    let best = near.min_by_key(|(distance, _)| *distance);
    best.map(|(_, name)| name)
}

/// Returns `did you mean …?` if a name is similar enough.
pub(super) fn did_you_mean<'a>(
    written: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let meant = nearest(written, names)?;
    Some(format!("did you mean `{meant}`?"))
}

/// Normalizes a name: lower case, and `_` for everything but letters and digits.
pub(super) fn plain(name: &str) -> String {
    let letters = name.chars().map(|letter| match letter {
        letter if letter.is_alphanumeric() => letter.to_ascii_lowercase(),
        _ => '_',
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_recognized() {
        let keys = ["limit", "per", "scale", "on_store_failure"];
        for (written, meant) in [
            ("limt", Some("limit")),
            ("LIMIT", Some("limit")),
            ("limits", Some("limit")),
            ("on-store-failure", Some("on_store_failure")),
            ("pre", Some("per")),
            ("scael", Some("scale")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, keys), meant, "{written}");
        }
    }

    #[test]
    fn long_names_are_not_compared() {
        assert_eq!(nearest(&"x".repeat(1 << 20), ["limit"]), None);
    }
}
