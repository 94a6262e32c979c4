//! Runs the program `tollgate` of the package `tollgate-cli`, as the commands of the guides do.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Returns the path of the built program.
///
/// Cargo sets `CARGO_BIN_EXE_tollgate` only for the tests of `tollgate-cli`. Its binaries are in
/// the directory above that of the test binaries.
fn binary() -> PathBuf {
    let tests = env::current_exe().unwrap();
    let directory = tests.ancestors().nth(2).unwrap();
    let path = directory.join(format!("tollgate{}", env::consts::EXE_SUFFIX));
    assert!(
        path.exists(),
        "{} does not exist: build it with `cargo build -p tollgate-cli`, or run the tests of both \
         packages with `-p tollgate -p tollgate-cli`",
        path.display()
    );
    path
}

/// Runs the program in a directory that contains `policy` as `limits.toml`.
///
/// The name of the directory must be unique: tests run in parallel.
pub(crate) fn run(directory: &str, policy: &str, arguments: &[&str]) -> Output {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("docs")
        .join(directory);
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("limits.toml"), policy).unwrap();
    let mut command = Command::new(binary());
    let names = env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| name.to_string_lossy().starts_with("TOLLGATE_")) {
        command.env_remove(name);
    }
    command
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}
