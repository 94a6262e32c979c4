//! TOML, put together line by line.

use toml_writer::{ToTomlKey as _, ToTomlValue as _, TomlKeyBuilder, TomlStringBuilder};

/// A file that is being written: sections with an empty line between them.
#[derive(Debug, Default)]
pub(super) struct Page(String);

/// What stands under one heading.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Section(String);

impl Page {
    /// Adds a section with its heading, unless there is nothing in it.
    pub(super) fn add(&mut self, heading: &str, section: &Section) {
        if section.0.is_empty() {
            return;
        }
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0.push_str(heading);
        self.0.push('\n');
        self.0.push_str(&section.0);
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

impl Section {
    /// `value` is TOML already.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.0.push_str(&key(name));
        self.0.push_str(" = ");
        self.0.push_str(value);
        self.0.push('\n');
    }

    /// A comment on one line.
    pub(super) fn remark(&mut self, remark: &str) {
        self.0.push_str("# ");
        self.0.push_str(remark);
        self.0.push('\n');
    }
}

/// The heading of a table: `[categories.secrets]`.
pub(super) fn heading(path: &[&str]) -> String {
    let keys: Vec<String> = path.iter().copied().map(key).collect();
    format!("[{}]", keys.join("."))
}

fn key(name: &str) -> String {
    TomlKeyBuilder::new(name).as_default().to_toml_key()
}

/// A text on one line, whatever is in it, and easy to read where it can be.
pub(super) fn text(text: &str) -> String {
    let builder = TomlStringBuilder::new(text);
    let pretty = builder.as_basic_pretty().or_else(|| builder.as_literal());
    pretty.unwrap_or_else(|| builder.as_basic()).to_toml_value()
}

/// Of values that are TOML already.
pub(super) fn list(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<String> = items.into_iter().collect();
    format!("[{}]", items.join(", "))
}

/// A table on one line, of values that are TOML already.
pub(super) fn inline<'a>(entries: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let entry = |(name, value)| format!("{} = {value}", key(name));
    let entries: Vec<String> = entries.into_iter().map(entry).collect();
    match entries.as_slice() {
        [] => "{}".to_owned(),
        entries => format!("{{ {} }}", entries.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_as_easy_to_read_as_they_can_be() {
        for (plain, written) in [
            ("500/hour", "\"500/hour\""),
            ("You've", "\"You've\""),
            ("say \"please\"", "'say \"please\"'"),
            ("C:\\keys", "'C:\\keys'"),
            ("it's \"so\"", "\"it's \\\"so\\\"\""),
            ("two\nlines", "\"two\\nlines\""),
            ("", "\"\""),
        ] {
            assert_eq!(text(plain), written);
        }
        assert_eq!(heading(&["tiers", "a b", ""]), "[tiers.\"a b\".\"\"]");
    }
}
