//! "Did you mean …?"

/// Longer names are not compared: nobody mistypes those by hand.
const LONGEST: usize = 64;

/// The name that was most likely meant, if any is near enough.
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
    // Of several the first, so that the same file always gets the same answer.
    let best = near.min_by_key(|(distance, _)| *distance);
    best.map(|(_, name)| name)
}

/// `did you mean …?`, if any name is near enough.
pub(super) fn did_you_mean<'a>(
    written: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let meant = nearest(written, names)?;
    Some(format!("did you mean `{meant}`?"))
}

/// Without what people do not care about: case, and which line is between words.
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
    fn slips_of_the_finger() {
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
    fn what_is_too_long_is_not_compared() {
        assert_eq!(nearest(&"x".repeat(1 << 20), ["limit"]), None);
    }
}
