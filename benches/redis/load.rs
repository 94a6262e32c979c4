//! Load: many tasks, each of which sends one decision after the other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use crate::cpu;
use crate::server::Server;

/// How many subjects there are; each request is about one of them, by chance.
pub const SUBJECTS: u64 = 10_000;

/// What a round came to.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Decisions per second.
    pub rate: f64,
    /// How long half of them took at most, in microseconds.
    pub p50: f64,
    /// And all but one in a hundred.
    pub p99: f64,
    /// What one of them costs the server, in microseconds of a processor. Unlike the rate, this does
    /// not depend on what else the machine does.
    pub server: f64,
    /// CPU time of the client per decision.
    pub client: f64,
}

/// Runs `tasks` tasks for `time`. Each calls `decide` with the numbers of subjects.
pub fn run<F, A>(server: &Server, runtime: &Runtime, tasks: u64, time: Duration, decide: F) -> Load
where
    F: Fn(u64) -> A + Send + Sync + 'static,
    A: Future<Output = ()> + Send,
{
    let decide = Arc::new(decide);
    let (used, spent) = (server.cpu(), cpu::of_this_process());
    let started = Instant::now();
    let asking: Vec<_> = (1..=tasks)
        .map(|task| {
            let decide = Arc::clone(&decide);
            runtime.spawn(async move {
                let (mut chance, mut took) = (task.wrapping_mul(0x9e37_79b9_7f4a_7c15), Vec::new());
                while started.elapsed() < time {
                    chance ^= chance << 13;
                    chance ^= chance >> 7;
                    chance ^= chance << 17;
                    let started = Instant::now();
                    decide(chance % SUBJECTS).await;
                    took.push(started.elapsed());
                }
                took
            })
        })
        .collect();
    let mut took = Vec::new();
    for task in asking {
        took.extend(runtime.block_on(task).expect("a task goes on to the end"));
    }
    let wall = started.elapsed();
    let spent = cpu::of_this_process() - spent;
    took.sort_unstable();
    let micros = |part: f64| {
        let place = (took.len() as f64 * part) as usize;
        took.get(place).map_or(0.0, |took| took.as_secs_f64() * 1e6)
    };
    Load {
        rate: took.len() as f64 / wall.as_secs_f64(),
        p50: micros(0.5),
        p99: micros(0.99),
        server: (server.cpu() - used) / took.len() as f64,
        client: spent / took.len() as f64,
    }
}
