//! A Redis server for one test. It is killed at the end of the test.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

use redis::{Connection, FromRedisValue, Value};
use tollgate::{RedisStore, RedisStoreBuilder, Timestamp};

use super::PATIENCE;
use crate::support::root;

/// A server with its own socket.
pub(crate) struct Server {
    child: Option<Child>,
    directory: PathBuf,
    port: u16,
    is_tls: bool,
    /// Whether its clock can be set.
    has_own_clock: bool,
    settings: Vec<String>,
}

impl Server {
    /// Starts a server. Returns when it replies.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with settings such as `--requirepass`, `word`.
    pub(crate) fn start_with(settings: &[&str]) -> Self {
        let mut server = Self::absent(settings);
        server.launch();
        server
    }

    /// Starts a server that listens on a TCP port as well.
    pub(crate) fn start_on_tcp() -> Self {
        Self::start_on_tcp_with(&[])
    }

    pub(crate) fn start_on_tcp_with(settings: &[&str]) -> Self {
        Self::start_on(settings, |_| {})
    }

    /// Starts a server whose clock can be set.
    pub(crate) fn start_with_own_clock(settings: &[&str]) -> Self {
        Self::start_on(settings, |server| server.has_own_clock = true)
    }

    /// Stops the clock of the server at an instant.
    pub(crate) fn stop_clock(&self, at: Timestamp) {
        self.write_clock(&format!("={}", at.as_micros()));
    }

    /// Sets the clock of the server to that of the machine plus an offset.
    pub(crate) fn offset_clock(&self, millis: i64) {
        self.write_clock(&(millis * 1_000).to_string());
    }

    fn write_clock(&self, text: &str) {
        assert!(self.has_own_clock, "the server has the machine's clock");
        // Written by a rename, because the server can read the file at any time.
        let new = self.directory.join("clock.new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.directory.join("clock")).unwrap();
    }

    /// Returns the time of the server.
    pub(crate) fn time(&self) -> Timestamp {
        let (seconds, micros): (u64, u64) = self.run(&["TIME"]);
        Timestamp::from_micros(seconds * 1_000_000 + micros)
    }

    /// Starts a server with a TLS port and no plain one.
    pub(crate) fn start_on_tls_with(settings: &[&str]) -> Self {
        let tls = tls_settings();
        let settings = [&tls.each_ref().map(String::as_str), settings].concat();
        Self::start_on(&settings, |server| server.is_tls = true)
    }

    fn start_on(settings: &[&str], adjust: fn(&mut Self)) -> Self {
        // Another process may take the port in between. Then the next attempt uses another port.
        for _ in 0..20 {
            let mut server = Self::absent(settings);
            server.port = Self::free_port();
            adjust(&mut server);
            if server.try_launch() {
                return server;
            }
        }
        panic!("there is no free port");
    }

    /// Returns a port that is free at the moment.
    pub(crate) fn free_port() -> u16 {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port()
    }

    /// Returns a server that is not started.
    pub(crate) fn absent(settings: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = env::temp_dir().join(format!("tollgate-{}-{number}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        Self {
            child: None,
            directory,
            port: 0,
            is_tls: false,
            has_own_clock: false,
            settings: settings.iter().map(|&setting| setting.to_owned()).collect(),
        }
    }

    /// Starts the server at its address. Returns when it replies.
    pub(crate) fn launch(&mut self) {
        assert!(self.try_launch(), "redis-server does not start");
    }

    fn try_launch(&mut self) -> bool {
        let keeps_nothing = ["--save", "", "--appendonly", "no", "--dir", "."];
        self.spawn(&keeps_nothing)
    }

    /// Starts a sentinel with this file.
    pub(crate) fn launch_sentinel(&mut self, port: u16, file: &Path) -> bool {
        self.port = port;
        self.is_tls = fs::read_to_string(file).unwrap().contains("tls-cert-file");
        self.spawn(&[file.to_str().unwrap(), "--sentinel"])
    }

    fn spawn(&mut self, arguments: &[&str]) -> bool {
        let port = self.port.to_string();
        // Some servers are built without TLS.
        let listen = if self.is_tls {
            vec!["--port", "0", "--tls-port", &port]
        } else {
            vec!["--port", &port]
        };
        let here = ["--bind", "127.0.0.1", "--unixsocket", "redis.sock"];
        let binary = env::var_os("TOLLGATE_TEST_REDIS_SERVER");
        let child = Command::new(binary.unwrap_or_else(|| "redis-server".into()))
            .envs(
                self.has_own_clock
                    .then(|| ("LD_PRELOAD", self.clock_library())),
            )
            .args(arguments)
            .args(listen)
            .args(here)
            .args(&self.settings)
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is needed for these tests; scripts/test installs it");
        let child = self.child.insert(child);
        let started = Instant::now();
        loop {
            if answers(&format!(
                "redis+unix://{}",
                self.directory.join("redis.sock").display()
            )) {
                return true;
            }
            if child.try_wait().unwrap().is_some() || started.elapsed() > PATIENCE {
                return false;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Builds the library that replaces the clock of the server.
    fn clock_library(&self) -> PathBuf {
        let library = self.directory.join("clock.so");
        let source = root().join("tests/it/redis/clock.c");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&library, &source])
            .status();
        assert!(built.expect("cc links Rust programs, too").success());
        library
    }

    /// Kills the server, as a crash would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// `STOP` freezes the server: it accepts connections and does not reply. `CONT` resumes it.
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{signal}"), &id])
            .status();
        assert!(sent.unwrap().success());
    }

    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Port of the cluster bus.
    pub(crate) fn bus_port(&self) -> String {
        let mut settings = self.settings.iter();
        settings.find(|setting| *setting == "--cluster-port");
        settings.next().unwrap().clone()
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn is_running(&self) -> bool {
        self.child.is_some()
    }

    pub(crate) fn url(&self) -> String {
        format!(
            "redis+unix://{}",
            self.directory.join("redis.sock").display()
        )
    }

    /// Returns a store with a prefix of its own and a long deadline.
    pub(crate) fn store(&self) -> RedisStoreBuilder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        RedisStore::builder(&self.url())
            .prefix(&format!("test-{number}"))
            .deadline(PATIENCE)
    }

    /// Opens a connection that does not belong to a store.
    pub(crate) fn connect(&self) -> Connection {
        let client = redis::Client::open(self.url()).unwrap();
        client.get_connection().unwrap()
    }

    /// Runs a command on a connection of its own.
    pub(crate) fn run<T: FromRedisValue>(&self, command: &[&str]) -> T {
        let (name, arguments) = command.split_first().unwrap();
        let mut connection = self.connect();
        let mut command = redis::cmd(name);
        command.arg(arguments).query(&mut connection).unwrap()
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.run(&["KEYS", "*"])
    }

    /// Asserts that every key has a time to live, except that of overrides without an end.
    pub(crate) fn assert_that_every_key_ends(&self) {
        for key in self.keys() {
            if key.ends_with(":overrides") {
                continue;
            }
            let left: i64 = self.run(&["PTTL", &key]);
            // -2: the key has expired meanwhile.
            assert!(left >= 0 || left == -2, "{key} does not expire");
        }
    }
}

/// Path of a test certificate.
pub(crate) fn certificate(name: &str) -> String {
    let path = root().join("tests/it/redis/certificates").join(name);
    path.to_str().unwrap().to_owned()
}

/// Settings with which a server, a cluster or a sentinel accepts TLS only.
pub(crate) fn tls_settings() -> [String; 12] {
    [
        ("--tls-cert-file", certificate("server.pem")),
        ("--tls-key-file", certificate("server.key")),
        ("--tls-ca-cert-file", certificate("authority.pem")),
        ("--tls-auth-clients", "no".to_owned()),
        ("--tls-cluster", "yes".to_owned()),
        ("--tls-replication", "yes".to_owned()),
    ]
    .map(|(name, value)| [name.to_owned(), value])
    .concat()
    .try_into()
    .unwrap()
}

/// Returns whether a server replies, even with an error.
fn answers(url: &str) -> bool {
    let client = redis::Client::open(url).unwrap();
    let Ok(mut connection) = client.get_connection() else {
        return false;
    };
    let answer = redis::cmd("PING").query::<Value>(&mut connection);
    !answer.is_err_and(|error| error.is_io_error())
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
