//! Wrong files, each with what people are told about it.
//!
//! `wrong/NN-name.toml` (or `.json`) is read, and what it gets must be what is in
//! `wrong/NN-name.txt`. Variables that are set for it are in its first lines, after `#$ `. Run
//! with `BLESS=1` to write down what is said now, and look at the difference.

use std::fs;
use std::path::{Path, PathBuf};

use tollgate::config::{ConfigError, Source};

use crate::support::root;

fn files() -> Vec<PathBuf> {
    let directory = root().join("tests/it/config/wrong");
    let mut files: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension != "txt"))
        .collect();
    files.sort();
    files
}

fn read(path: &Path) -> ConfigError {
    let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    let lines = text.lines().map_while(|line| line.strip_prefix("#$ "));
    let variables = lines.filter_map(|line| line.split_once('='));
    let refused = Source::file(path).variables(variables).read();
    refused.expect_err(&format!("{} is not wrong", path.display()))
}

/// As it is said of a file in the current directory.
fn shown(path: &Path, error: &ConfigError) -> String {
    let directory = format!("{}/", path.parent().unwrap().display());
    format!("{error}\n").replace(&directory, "")
}

#[test]
fn every_wrong_file_is_told_what_is_wrong() {
    let mut different = Vec::new();
    for path in files() {
        let said = shown(&path, &read(&path));
        let expected = path.with_extension("txt");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&expected, &said).unwrap();
        }
        let expected = fs::read_to_string(&expected).unwrap_or_default();
        if said != expected {
            different.push(format!("{}\n--- now\n{said}", path.display()));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(files().len() >= 30, "there should be thirty of them");
}

/// What people see and what programs read must be the same place.
#[test]
fn lines_and_columns_are_those_that_are_shown() {
    for path in files() {
        let error = read(&path);
        let said = error.to_string();
        for problem in error.problems() {
            if let (Some(line), Some(column)) = (problem.line(), problem.column()) {
                let place = format!("{}:{line}:{column}\n", path.display());
                assert!(said.contains(&place), "{place} is not in\n{said}");
            }
            assert!(said.contains(problem.message()), "{problem}\n{said}");
        }
        let json: serde_json::Value = serde_json::from_str(&error.to_json()).unwrap();
        assert_eq!(
            json["problems"].as_array().unwrap().len(),
            error.problems().len()
        );
    }
}
