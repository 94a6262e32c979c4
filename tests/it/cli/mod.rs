//! The program `tollgate`, as people and scripts meet it.

mod check;
mod explain;
mod guide;
mod manners;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// What a run of it has said.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A directory for the files of one test.
pub(crate) struct Place(PathBuf);

impl Place {
    /// A test is the only one that has this name.
    pub(crate) fn new(test: &str) -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("cli")
            .join(test);
        fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    pub(crate) fn with(self, name: &str, text: &str) -> Self {
        fs::write(self.0.join(name), text).unwrap();
        self
    }

    /// Ready to run here, with none of this machine's settings.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        let ours = std::env::vars_os().map(|(name, _)| name);
        for name in ours.filter(|name| name.to_string_lossy().starts_with("TOLLGATE_")) {
            command.env_remove(name);
        }
        command
            .args(args)
            .current_dir(&self.0)
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        run(&mut self.command(args))
    }
}

fn run(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

const GOOD: &str = "
[tiers]
default = 'free'
free = 1
team = 5

[global]
authenticated = '1000/hour'
anonymous = '100/hour'

[categories.secrets]
limit = '500/hour'
suggestion = 'Ask for less.'

[[endpoints]]
route = 'GET /v1/secrets/{id}'
category = 'secrets'

[[endpoints]]
route = 'POST /login'
name = 'login'
limit = ['10/hour', '3/minute']
scale = false
count = 'failure'
on_store_failure = 'deny'

[[rules]]
name = 'tenant'
per = ['tenant']
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

const WRONG: &str = "
[global]
authenticated = '1000/fortnight'
anonymus = '100/hour'

[[endpoints]]
route = 'GET v1/items'
limit = 0
";
