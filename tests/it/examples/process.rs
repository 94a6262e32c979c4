//! Examples as processes, which never outlive the test that started them.

use std::env;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::timeout;

use crate::support::sockets::{Client, Version};

/// Longer than any operation takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A server that runs until it is dropped.
pub(crate) struct Example {
    child: Child,
    address: SocketAddr,
    stdout: Option<Lines<BufReader<ChildStdout>>>,
    stderr: Option<Lines<BufReader<ChildStderr>>>,
}

/// Exit code and output of a program.
pub(crate) struct End {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Returns the path of a built example.
///
/// The directory above that of the test binaries contains the programs of all packages. Its
/// directory `examples` contains the examples of the library.
fn binary(name: &str) -> PathBuf {
    let tests = env::current_exe().unwrap();
    let directory = tests.ancestors().nth(2).unwrap();
    let file = format!("{name}{}", env::consts::EXE_SUFFIX);
    let paths = [directory.join("examples").join(&file), directory.join(file)];
    let built = paths.into_iter().find(|path| path.exists());
    built.unwrap_or_else(|| {
        panic!("example `{name}` is not built: run the tests with `scripts/test --quick`")
    })
}

/// Returns whether an example reads a variable.
fn is_setting(name: &str) -> bool {
    let names = [
        "ADMIN_TOKEN",
        "ADMIN_TOKENS",
        "ALLOWED_USERS",
        "CALLS",
        "CLIENTS",
        "HOSTNAME",
        "JWT_SECRET",
        "LOG_FORMAT",
        "LOG_IDENTITIES",
        "LOG_LEVEL",
        "REDIS_URL",
        "TARGET_URL",
        "TELEGRAM_API_URL",
        "TENANT_CONFIG",
        "TRUSTED_PROXIES",
    ];
    let families = [
        "ALERT_",
        "GLOBAL_SEND_RATE_LIMIT_",
        "MERCURY_",
        "RATE_LIMIT_",
        "TOLLGATE_",
    ];
    names.contains(&name) || families.iter().any(|family| name.starts_with(family))
}

/// Returns a command on a free port, without the settings of this machine.
fn command(name: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(binary(name));
    let ours = env::vars_os().map(|(name, _)| name);
    for name in ours.filter(|name| is_setting(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    command
        .env("PORT", "0")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Starts the example with each of these invalid values, and verifies the error.
pub(crate) async fn refuses(name: &str, wrong: &[(&str, &str, &str)]) {
    for (variable, value, allowed) in wrong {
        let end = ended(name, &[(variable, value)]).await;
        assert_eq!(end.code, Some(2), "{variable}={value}: {}", end.stderr);
        assert_eq!(end.stdout, "", "{variable}={value} and it listened");
        // A secret is not printed, even if it is rejected.
        let secrets = ["_SECRET", "_TOKEN", "_TOKENS", "_KEY", "_WEBHOOK_URL"];
        let is_secret = secrets.iter().any(|end| variable.ends_with(end));
        let shown = if is_secret { "…" } else { value };
        let expected = format!("{variable}={shown:?} cannot be used");
        assert!(!is_secret || value.is_empty() || !end.stderr.contains(value));
        for expected in [&*expected, allowed] {
            assert!(end.stderr.contains(expected), "{variable}: {}", end.stderr);
        }
    }
}

/// Runs a program until it exits.
pub(crate) async fn ended(name: &str, variables: &[(&str, &str)]) -> End {
    let output = command(name, variables).stderr(Stdio::piped()).output();
    let output = timeout(PATIENCE, output)
        .await
        .unwrap_or_else(|_| panic!("{name} does not end"))
        .unwrap();
    End {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Example {
    /// Starts an example. Returns when it listens.
    pub(crate) async fn start(name: &str, variables: &[(&str, &str)]) -> Self {
        Self::start_as(name, &mut command(name, variables)).await
    }

    /// Starts an example with standard error captured for [`stderr_line`](Self::stderr_line).
    pub(crate) async fn start_with_stderr(name: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = command(name, variables);
        Self::start_as(name, command.stderr(Stdio::piped())).await
    }

    async fn start_as(name: &str, command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stderr = child.stderr.take().map(BufReader::new);
        let stdout = child.stdout.take().unwrap();
        let mut stdout = BufReader::new(stdout).lines();
        let first = timeout(PATIENCE, stdout.next_line())
            .await
            .unwrap_or_else(|_| panic!("{name} prints nothing"))
            .unwrap()
            .unwrap_or_else(|| panic!("{name} ended without a word"));
        let address = first
            .strip_prefix("listening on http://")
            .and_then(|address| address.parse().ok())
            .unwrap_or_else(|| panic!("{name} begins with {first:?}"));
        Self {
            child,
            address,
            stdout: Some(stdout),
            stderr: stderr.map(AsyncBufReadExt::lines),
        }
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn version_1(&self) -> Client {
        Client::new(Version::Http1, self.address)
    }

    /// Returns the next line on standard output.
    pub(crate) async fn line(&mut self) -> String {
        let lines = self.stdout.as_mut().unwrap();
        let line = timeout(PATIENCE, lines.next_line()).await;
        line.expect("a line in time").unwrap().expect("one more")
    }

    /// Returns the next line on standard error that contains `with`.
    pub(crate) async fn stderr_line(&mut self, with: &str) -> String {
        let lines = self.stderr.as_mut().unwrap();
        loop {
            let line = timeout(PATIENCE, lines.next_line()).await;
            let line = line.expect("a line in time").unwrap().expect("one more");
            if line.contains(with) {
                return line;
            }
        }
    }

    pub(crate) fn stop_reading(&mut self) {
        self.stdout = None;
    }

    /// Stops the process and returns the rest of its standard error.
    #[cfg(unix)]
    pub(crate) async fn into_stderr(mut self) -> Vec<String> {
        let mut lines = self.stderr.take().unwrap();
        assert_eq!(self.terminate().await, Some(0));
        let mut rest = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            rest.push(line);
        }
        rest
    }

    /// Sends SIGTERM and returns the exit code.
    #[cfg(unix)]
    pub(crate) async fn terminate(mut self) -> Option<i32> {
        let id = self.child.id().unwrap();
        let kill = format!("kill -TERM {id}");
        let sent = Command::new("sh").args(["-c", &kill]).status();
        assert!(sent.await.unwrap().success());
        let status = timeout(PATIENCE, self.child.wait()).await;
        status.expect("an end in time").unwrap().code()
    }
}
