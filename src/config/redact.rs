//! Secrets that somebody has written into a file, where they do not belong, are not shown when
//! the line they are on is.

/// Whether a value of this key is nothing to show. Names of variables and files are no
/// secrets, unless somebody mistook them for the place of one.
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

/// Whether a text is the name of a variable, as people write them: a secret that was put in
/// its place hardly ever looks like this.
pub(super) fn is_variable_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    text.len() <= 64
        && text.bytes().all(plain)
        && text.starts_with(|first: char| first.is_ascii_uppercase() || first == '_')
}

/// The text with secrets painted over, byte by byte, so that all places stay where they are.
///
/// By lines and not by the tree, because it has to work for a text that cannot be read.
pub(super) fn redact(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    // What a value that goes on over lines ends with.
    let mut goes_on: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        let from = goes_on.map_or_else(|| secret_in(line), |_| Some(0));
        let Some(from) = from else {
            shown.push_str(line);
            continue;
        };
        let (open, secret) = line.split_at(from);
        shown.push_str(open);
        paint(secret, &mut shown);
        goes_on = match goes_on {
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

fn paint(secret: &str, shown: &mut String) {
    for letter in secret.chars() {
        if letter.is_ascii_whitespace() || letter == '"' || letter == '\'' {
            shown.push(letter);
        } else {
            shown.extend(std::iter::repeat_n('*', letter.len_utf8()));
        }
    }
}

/// Where on a line the value of a secret key begins.
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
    fn secrets_are_painted_over() {
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
    fn everything_else_is_shown() {
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
