//! Hides secrets that were written into a policy file by mistake, in the lines that messages show.

/// Returns whether the value of a key is a secret. `secret_env` and `secret_file` name the place of
/// a secret, and are none.
pub(super) fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let key = key.replace('-', "_");
    let ends = [
        "secret",
        "password",
        "passwd",
        "token",
        "private_key",
        "secret_key",
        "api_key",
        "hmac",
    ];
    ends.iter()
        .any(|end| key == *end || key.ends_with(&format!("_{end}")))
}

/// Returns whether a text looks like the name of an environment variable. A secret in its place
/// rarely does.
pub(super) fn is_variable_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    text.len() <= 64
        && text.bytes().all(plain)
        && text.starts_with(|first: char| first.is_ascii_uppercase() || first == '_')
}

/// Replaces the bytes of secrets by `*`, so that all positions stay the same.
///
/// Works on lines, not on the tree, because the text may not be parsable.
pub(super) fn redact(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    // End of a value that continues on the next line.
    let mut open_value: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        let from = open_value.map_or_else(|| secret_in(line), |_| Some(0));
        let Some(from) = from else {
            shown.push_str(line);
            continue;
        };
        let (open, secret) = line.split_at(from);
        shown.push_str(open);
        mask(secret, &mut shown);
        open_value = match open_value {
            Some(end) if !secret.contains(end) => Some(end),
            Some(_) => None,
            // On the next line.
            None if secret.trim().is_empty() => Some(""),
            None => ["\"\"\"", "'''"]
                .into_iter()
                .find(|quotes| secret.matches(quotes).count() == 1),
        };
    }
    shown
}

fn mask(secret: &str, shown: &mut String) {
    for letter in secret.chars() {
        if letter.is_ascii_whitespace() || letter == '"' || letter == '\'' {
            shown.push(letter);
        } else {
            shown.extend(std::iter::repeat_n('*', letter.len_utf8()));
        }
    }
}

/// Returns where on a line the value of a secret key begins.
fn secret_in(line: &str) -> Option<usize> {
    let mut separators = line.match_indices(['=', ':']);
    separators.find_map(|(at, _)| {
        let before = line[..at].trim_end().trim_end_matches(['"', '\'']);
        let key = before.rsplit(|letter: char| !letter.is_alphanumeric() && !"_-".contains(letter));
        let key = key.into_iter().next()?;
        let value = line[at + 1..].trim().trim_matches(['"', '\'', ',']);
        let is_misplaced = key == "secret_env" && !is_variable_name(value);
        (is_secret(key) || is_misplaced).then_some(at + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked() {
        for (text, shown) in [
            ("secret = \"hunter2\"\n", "secret = \"*******\"\n"),
            (
                "jwt = { secret = 'hunter2' }",
                "jwt = { secret = '*******' *",
            ),
            ("  \"secret\": \"hün\"", "  \"secret\": \"****\""),
            (
                "jwt.client_secret = \"x y\"\r\nb = 1",
                "jwt.client_secret = \"* *\"\r\nb = 1",
            ),
            ("secret_env = \"hunter2\"", "secret_env = \"*******\""),
            (
                "secret = \"\"\"\nhunter\n2\"\"\"\nuser = 'sub'",
                "secret = \"\"\"\n******\n*\"\"\"\nuser = 'sub'",
            ),
            (
                "{\"secret\":\n\"hunter2\",\n\"a\": 1}",
                "{\"secret\":\n\"*******\"*\n\"a\": 1}",
            ),
        ] {
            assert_eq!(redact(text), shown);
            assert_eq!(redact(text).len(), text.len());
        }
    }

    #[test]
    fn other_text_is_unchanged() {
        for text in [
            "secret_env = \"JWT_SECRET\"\n",
            "secret_file = \"keys/jwt\"\n",
            "[categories.secrets]\nlimit = \"500/hour\"",
            "route = \"POST /auth/v1/token\"",
            "",
        ] {
            assert_eq!(redact(text), text);
        }
    }
}
