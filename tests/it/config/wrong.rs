//! Invalid files, each with the expected error message.
//!
//! The error of `wrong/NN-name.toml` (or `.json`) must equal `wrong/NN-name.txt`. Lines that begin
//! with `#$ ` at the start of a file set environment variables. Run with `BLESS=1` to update the
//! messages, and review the difference.

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
    let read = Source::file(path).variables(variables).read();
    read.expect_err(&format!("{} has no error", path.display()))
}

/// Returns the message without the directory of the file.
fn shown(path: &Path, error: &ConfigError) -> String {
    let directory = format!("{}/", path.parent().unwrap().display());
    format!("{error}\n").replace(&directory, "")
}

#[test]
fn every_invalid_file_gives_its_expected_message() {
    let mut different = Vec::new();
    for path in files() {
        let message = shown(&path, &read(&path));
        let expected = path.with_extension("txt");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&expected, &message).unwrap();
        }
        let expected = fs::read_to_string(&expected).unwrap_or_default();
        if message != expected {
            different.push(format!("{}\n--- now\n{message}", path.display()));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(files().len() >= 30, "fewer than 30 files");
}

#[test]
fn line_and_column_of_a_problem_equal_those_in_the_message() {
    for path in files() {
        let error = read(&path);
        let message = error.to_string();
        for problem in error.problems() {
            if let (Some(line), Some(column)) = (problem.line(), problem.column()) {
                let position = format!("{}:{line}:{column}\n", path.display());
                assert!(
                    message.contains(&position),
                    "{position} is not in\n{message}"
                );
            }
            assert!(message.contains(&problem.message), "{problem}\n{message}");
        }
        let json: serde_json::Value = serde_json::from_str(&error.to_json()).unwrap();
        assert_eq!(
            json["problems"].as_array().unwrap().len(),
            error.problems().len()
        );
    }
}
