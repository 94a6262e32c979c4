//! A Redis server of this benchmark's own.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

/// Ends with its owner.
pub struct Server {
    child: Child,
    directory: PathBuf,
    address: SocketAddr,
}

impl Server {
    pub fn start() -> Self {
        let directory = env::temp_dir().join(format!("tollgate-bench-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory for the server");
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("a free port");
        drop(free);
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &address.port().to_string()])
            .args(["--save", "", "--appendonly", "no"])
            .current_dir(&directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is needed: apt-get install redis-server");
        let server = Self {
            child,
            directory,
            address,
        };
        while TcpStream::connect(address).is_err() {
            thread::sleep(Duration::from_millis(5));
        }
        server
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Opens a connection that receives every command of the server (`MONITOR`).
    pub fn monitor(&self) -> Monitor {
        let mut stream = TcpStream::connect(self.address).expect("the server is there");
        stream
            .write_all(b"MONITOR\r\n")
            .expect("the server listens");
        let mut lines = BufReader::new(stream);
        lines
            .read_line(&mut String::new())
            .expect("the server answers");
        Monitor(lines)
    }

    /// What a command answers, if that is a number.
    pub fn number(&self, command: &str) -> u64 {
        let mut stream = TcpStream::connect(self.address).expect("the server is there");
        write!(stream, "{command}\r\n").expect("the server listens");
        let mut line = String::new();
        let mut lines = BufReader::new(stream);
        lines.read_line(&mut line).expect("the server answers");
        line.trim_start_matches(':').trim().parse().unwrap_or(0)
    }

    /// How much of a processor's time it has used so far, in microseconds.
    pub fn cpu(&self) -> f64 {
        let mut stream = TcpStream::connect(self.address).expect("the server is there");
        stream
            .write_all(b"INFO cpu\r\n")
            .expect("the server listens");
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        let lines = lines.skip(1).take_while(|line| !line.is_empty());
        lines
            .filter(|line| line.starts_with("used_cpu_sys:") || line.starts_with("used_cpu_user:"))
            .filter_map(|line| line.split_once(':')?.1.trim().parse::<f64>().ok())
            .sum::<f64>()
            * 1e6
    }

    /// Makes a script known: its hash.
    pub fn load(&self, script: &str) -> String {
        let mut stream = TcpStream::connect(self.address).expect("the server is there");
        let bytes = script.len();
        write!(
            stream,
            "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n${bytes}\r\n{script}\r\n"
        )
        .expect("the server listens");
        let mut lines = BufReader::new(stream).lines();
        let hash = lines.nth(1).and_then(Result::ok);
        hash.expect("a script that the server understands")
    }

    /// Has the server forget all scripts.
    pub fn forget_scripts(&self) {
        self.number("SCRIPT FLUSH");
    }

    /// Some key that there is.
    pub fn any_key(&self) -> String {
        let mut stream = TcpStream::connect(self.address).expect("the server is there");
        stream
            .write_all(b"RANDOMKEY\r\n")
            .expect("the server listens");
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        let length = lines.next();
        // Without a key there is nothing more to read, and to wait for it would be for ever.
        assert_ne!(length.as_deref(), Some("$-1"), "there is a key");
        lines.next().unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Output of `MONITOR`.
pub struct Monitor(BufReader<TcpStream>);

impl Monitor {
    /// The next call with a script's text: that, the number of keys, the key and the argument.
    pub fn next_call(&mut self) -> Vec<Vec<u8>> {
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).expect("a line of MONITOR");
            let words = words(&line);
            let is_eval = |name: &Vec<u8>| name.eq_ignore_ascii_case(b"EVAL");
            // Without an argument it is the check of the server's configuration.
            if words.len() > 4 && words.first().is_some_and(is_eval) {
                return words[1..].to_vec();
            }
        }
    }
}

/// The quoted words of a line, with what was escaped in them.
fn words(line: &str) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut bytes = line.bytes();
    while bytes.by_ref().any(|byte| byte == b'"') {
        let mut word = Vec::new();
        while let Some(byte) = bytes.next().filter(|byte| *byte != b'"') {
            word.push(match byte {
                b'\\' => match bytes.next() {
                    Some(b'x') => {
                        let digits =
                            [bytes.next(), bytes.next()].map(|digit| digit.unwrap_or(b'0'));
                        let digits = std::str::from_utf8(&digits).unwrap_or("0");
                        u8::from_str_radix(digits, 16).unwrap_or(0)
                    }
                    Some(b'n') => b'\n',
                    Some(b'r') => b'\r',
                    Some(b't') => b'\t',
                    Some(b'a') => 7,
                    Some(b'b') => 8,
                    other => other.unwrap_or(b'\\'),
                },
                plain => plain,
            });
        }
        words.push(word);
    }
    words
}
