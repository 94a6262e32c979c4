//! Comparison of `Cargo.toml` with packages, features, examples and benchmarks on pages.

use std::fs;

use toml::{Table, Value};

use crate::support::root;

/// Contents of a `Cargo.toml`.
pub(super) struct Manifest(Table);

/// Returns whether a piece of TOML is part of a `Cargo.toml`.
pub(super) fn is_manifest(text: &str) -> bool {
    text.contains("dependencies]")
}

impl Manifest {
    pub(super) fn of_the_library() -> Self {
        Self::read("Cargo.toml")
    }

    pub(super) fn of_the_benchmarks() -> Self {
        Self::read("benches/Cargo.toml")
    }

    /// Reads the manifest of the package with the program `tollgate`.
    pub(super) fn of_the_program() -> Self {
        Self::read("cli/Cargo.toml")
    }

    /// Reads the manifest of the package in a directory of the repository.
    pub(super) fn in_directory(directory: &str) -> Result<Self, String> {
        let path = root().join(directory).join("Cargo.toml");
        let text = fs::read_to_string(path).map_err(|error| format!("{directory}: {error}"))?;
        Ok(Self(text.parse().unwrap()))
    }

    /// Returns the program of an example that is a package of its own, and the package's default
    /// features.
    pub(super) fn of_example_package(package: &str) -> Result<(String, Vec<String>), String> {
        let unknown = || format!("there is no example package `{package}`");
        let directory = package.strip_prefix("example-").ok_or_else(unknown)?;
        let directory = format!("examples/{}", directory.replace('-', "_"));
        let manifest = Self::in_directory(&directory)?;
        if manifest.name() != package {
            return Err(unknown());
        }
        let program = manifest.0["bin"][0]["name"].as_str().unwrap();
        let features = manifest.features()["default"].as_array().unwrap();
        let features = features
            .iter()
            .map(|name| name.as_str().unwrap().to_owned());
        Ok((program.to_owned(), features.collect()))
    }

    fn read(path: &str) -> Self {
        Self(
            fs::read_to_string(root().join(path))
                .unwrap()
                .parse()
                .unwrap(),
        )
    }

    pub(super) fn name(&self) -> &str {
        self.0["package"]["name"].as_str().unwrap()
    }

    fn version(&self) -> &str {
        self.0["package"]["version"].as_str().unwrap()
    }

    fn features(&self) -> &Table {
        self.0["features"].as_table().unwrap()
    }

    pub(super) fn has_feature(&self, name: &str) -> bool {
        self.features().contains_key(name)
    }

    /// Returns whether the library, its tests or its examples use a package.
    pub(super) fn is_used(name: &str) -> bool {
        let manifests = [
            "Cargo.toml",
            "examples/gateway/Cargo.toml",
            "tests/Cargo.toml",
        ];
        manifests
            .iter()
            .map(|path| Self::read(path))
            .any(|manifest| {
                let tables = ["dependencies", "dev-dependencies"].into_iter();
                let mut tables = tables.filter_map(|table| manifest.0.get(table));
                tables.any(|table| table.get(name).is_some())
            })
    }

    /// Returns the table of a `[[bench]]`, `[[bin]]` or `[[example]]`.
    pub(super) fn target(&self, kind: &str, name: &str) -> Option<&Table> {
        let targets = self.0.get(kind)?.as_array()?.iter();
        let mut tables = targets.filter_map(Value::as_table);
        tables.find(|table| table["name"].as_str() == Some(name))
    }

    /// Returns the features that an example needs and that neither the command nor the defaults enable.
    pub(super) fn missing_features(&self, example: &str, given: &[&str]) -> Vec<String> {
        let mut enabled: Vec<&str> = vec!["default"];
        enabled.extend(given);
        // Features enable other features.
        for index in 0.. {
            let Some(name) = enabled.get(index) else {
                break;
            };
            let implied = self.features().get(*name).and_then(Value::as_array);
            enabled.extend(implied.into_iter().flatten().filter_map(Value::as_str));
        }
        let needed = self.target("example", example);
        let needed = needed.and_then(|table| table.get("required-features"));
        let needed = needed.and_then(Value::as_array).into_iter().flatten();
        let needed = needed.map(|name| name.as_str().unwrap().to_owned());
        needed.filter(|name| !enabled.contains(&&**name)).collect()
    }

    /// Checks a part of a user's `Cargo.toml`. Returns the error.
    pub(super) fn error_in(&self, text: &str) -> Option<String> {
        let table: Table = match text.parse() {
            Ok(table) => table,
            Err(error) => return Some(format!("{error}")),
        };
        let groups = table.values().filter_map(Value::as_table);
        let mut dependencies = groups.flatten();
        dependencies.find_map(|(name, dependency)| self.dependency_error(name, dependency))
    }

    fn dependency_error(&self, name: &str, dependency: &Value) -> Option<String> {
        if name != self.name() {
            let is_known = Self::is_used(name);
            return (!is_known).then(|| format!("`{name}` is not a dependency of this repository"));
        }
        let version = dependency.get("version").unwrap_or(dependency).as_str()?;
        if !self.version().starts_with(version) {
            return Some(format!("`{name}` is {}, not {version}", self.version()));
        }
        let features = dependency.get("features").and_then(Value::as_array);
        let mut features = features.into_iter().flatten().filter_map(Value::as_str);
        let unknown = features.find(|feature| !self.has_feature(feature))?;
        Some(format!("`{name}` has no feature `{unknown}`"))
    }
}

#[test]
fn missing_features_of_an_example_are_listed() {
    let manifest = Manifest::of_the_library();
    let client = |given: &[&str]| manifest.missing_features("polite_client", given);
    assert_eq!(client(&["admin", "metrics"]), ["client"]);
    assert!(client(&["full"]).is_empty());
    assert!(manifest.missing_features("quickstart", &[]).is_empty());
}
