//! What the server can do, by Redis's own measure: `redis-benchmark` with the very call that we make.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::cpu;
use crate::load::{Load, SUBJECTS};
use crate::server::Server;

/// A call of the script, as we make it.
pub struct Ceiling<'a> {
    server: &'a Server,
    hash: String,
    key: String,
    /// As long as ours, but only letters: `redis-benchmark` ends arguments with the first zero byte.
    /// So the script has the real one in its text.
    filler: String,
}

impl<'a> Ceiling<'a> {
    /// From the words of a call with the script's text. The key's hash gives way to a number by
    /// chance, so that there are as many keys, and as long ones.
    pub fn new(server: &'a Server, call: &[Vec<u8>]) -> Self {
        let [text, keys, key, argument] = call else {
            panic!("one key and one argument: {call:?}");
        };
        assert_eq!(keys, b"1");
        let key = String::from_utf8_lossy(key);
        let (prefix, _) = key.split_once('{').expect("a hash tag");
        let escaped: String = argument.iter().map(|byte| format!("\\{byte:03}")).collect();
        let text = String::from_utf8_lossy(text);
        Self {
            server,
            hash: server.load(&format!("local ARGV = {{'{escaped}'}}\n{text}")),
            // The number has twelve digits.
            key: format!("{prefix}{{{}__rand_int__}}", "a".repeat(20)),
            filler: "x".repeat(argument.len()),
        }
    }

    /// The best of one connection, and of two that share what is under way: with one alone, the
    /// server waits while the next calls are written.
    pub fn run(&self, under_way: u64, time: Duration, expected: f64) -> Load {
        let requests = (expected * time.as_secs_f64() / 2.0) as u64;
        let one = self.benchmark(1, under_way, requests);
        let two = self.benchmark(2, under_way / 2, requests);
        if one.rate > two.rate { one } else { two }
    }

    fn benchmark(&self, connections: u64, pipeline: u64, requests: u64) -> Load {
        let (address, requests) = (self.server.address(), requests.max(1_000));
        let (used, spent) = (self.server.cpu(), cpu::of_children());
        let output = Command::new("redis-benchmark")
            .args(["-h", "127.0.0.1", "-p", &address.port().to_string()])
            .args(["-c", &connections.to_string()])
            .args(["-P", &pipeline.to_string()])
            .args(["-n", &requests.to_string()])
            .args(["-r", &SUBJECTS.to_string(), "--csv"])
            .args(["EVALSHA", &self.hash, "1", &self.key, &self.filler])
            .stdin(Stdio::null())
            .output()
            .expect("redis-benchmark is needed: apt-get install redis-tools");
        let text = String::from_utf8_lossy(&output.stdout);
        // "test","rps","avg","min","p50","p95","p99","max"; the first may be anything.
        let fields: Vec<f64> = text
            .trim_end()
            .rsplit(',')
            .take(7)
            .map_while(|field| field.trim_matches('"').parse().ok())
            .collect();
        let [_, p99, _, p50, _, _, rate] = fields[..] else {
            let error = String::from_utf8_lossy(&output.stderr);
            panic!("unexpected output of redis-benchmark: {text}{error}");
        };
        Load {
            rate,
            p50: p50 * 1e3,
            p99: p99 * 1e3,
            server: (self.server.cpu() - used) / requests as f64,
            client: (cpu::of_children() - spent) / requests as f64,
        }
    }
}
