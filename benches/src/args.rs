//! Command line of the benchmarks.

/// The arguments of a benchmark, as they follow `cargo bench … --`.
#[derive(Clone, Debug, Default)]
pub struct Args {
    /// One JSON array on stdout instead of a table.
    pub json: bool,
    /// Also the rows that take long.
    pub full: bool,
    /// Whether this is `cargo bench`, which passes `--bench`; `cargo test` builds and starts the same
    /// program, and does not.
    pub bench: bool,
    /// Only rows whose id contains one of these; all, if there are none.
    pub filters: Vec<String>,
}

impl Args {
    /// Reads words of a command line, without the program's name.
    ///
    /// # Errors
    /// On an option that there is not.
    pub fn read(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut args = Self::default();
        for word in words {
            match word.as_str() {
                "--json" => args.json = true,
                "--full" => args.full = true,
                "--bench" => args.bench = true,
                option if option.starts_with('-') => {
                    return Err(format!("{option}: only --json, --full and parts of ids"));
                }
                _ => args.filters.push(word),
            }
        }
        Ok(args)
    }

    /// Whether a row is selected.
    #[must_use]
    pub fn wants(&self, id: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| id.contains(filter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Args, String> {
        Args::read(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn filters_are_parts_of_ids() {
        let args = read("--bench one/string --json hot").unwrap();
        assert!(args.bench && args.json && !args.full);
        assert!(args.wants("token-bucket/one/string/1k/uniform/1t"));
        assert!(args.wants("token-bucket/hot/2t"));
        assert!(!args.wants("token-bucket/three/string/1k/uniform/1t"));
        assert!(read("").unwrap().wants("anything"));
    }

    #[test]
    fn unknown_options_are_refused() {
        assert!(read("--jsn").is_err());
    }
}
