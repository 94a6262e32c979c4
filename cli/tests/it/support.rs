//! Runs the program on the files of one test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Path of the program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_tollgate");

/// A policy file without problems. Maintenance ends at [`MAINTENANCE_END`].
pub(crate) const GOOD: &str = "
[tiers]
default = 'free'
free = 1
team = 5

[global]
authenticated = '1000/hour'
anonymous = '100/hour'

[categories.secrets]
limit = '500/hour'
suggestion = 'Send fewer requests.'

[[endpoints]]
route = 'GET /v1/secrets/{id}'
category = 'secrets'

[[endpoints]]
route = 'POST /login'
name = 'login'
limit = ['10/hour', '5/minute']
scale = false
count = 'failure'
on_store_failure = 'deny'
quiet = true

[[rules]]
name = 'tenant'
per = ['tenant']
scale = true
limit = '100_000/day'
mode = 'dry-run'

[exempt]
roles = ['service']
networks = ['10.0.0.0/8']
routes = ['GET /health']
subjects = { tenant = ['ourselves'] }

[maintenance]
disabled_until = '2026-12-01T06:00:00Z'
";

/// End of the maintenance in [`GOOD`].
pub(crate) const MAINTENANCE_END: &str = "2026-12-01T06:00:00Z";

/// A policy file with four problems.
pub(crate) const WRONG: &str = "
[global]
authenticated = '1000/fortnight'
anonymus = '100/hour'

[[endpoints]]
route = 'GET v1/items'
limit = 0
";

/// Exit code and output of one run.
#[derive(Debug)]
pub(crate) struct RunOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl RunOutput {
    /// Parses standard output as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Directory with the files of one test.
pub(crate) struct TestDir(PathBuf);

impl TestDir {
    /// Creates the directory. `test` must be unique: tests run in parallel.
    pub(crate) fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("cli")
            .join(test);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Adds a file.
    pub(crate) fn with(self, name: &str, text: &str) -> Self {
        fs::write(self.0.join(name), text).unwrap();
        self
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns a command that runs the program here, without the settings of the environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        let names = std::env::vars_os().map(|(name, _)| name);
        for name in names.filter(|name| name.to_string_lossy().starts_with("TOLLGATE_")) {
            command.env_remove(name);
        }
        command
            .args(args)
            .current_dir(&self.0)
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }

    /// Runs the program here.
    pub(crate) fn run(&self, args: &[&str]) -> RunOutput {
        run(&mut self.command(args))
    }
}

pub(crate) fn run(command: &mut Command) -> RunOutput {
    let output = command.output().unwrap();
    RunOutput {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
