//! Several processes on one server admit exactly the limit.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tollgate::{
    Batch, Check, Clock as _, Counter, RedisStore, Store as _, Subject, SystemClock, Timestamp,
};

use super::nodes::Nodes;
use super::{PATIENCE, Server, counter, look};

const PROCESSES: usize = 4;
const TASKS: usize = 16;
/// Decisions of each task about each quota.
const EACH: u64 = 40;
/// Environment variable that makes this program a member of the fleet.
const VARIABLE: &str = "TOLLGATE_TEST_MEMBER_OF_FLEET";

/// Windows that do not end during a test, and limits that are reached. One limit is the largest exact
/// double. Its costs add up to slightly less, or exactly to it.
const QUOTAS: [(&str, u64); 8] = [
    ("1009/3653d, sliding-window", 1),
    ("1009/3653d, fixed-window", 1),
    ("1009/3653d, sliding-buckets, buckets 3600", 1),
    ("1009/3653d, sliding-log", 1),
    ("1009/3653d, token-bucket", 1),
    (
        "9007199254740991/3653d, fixed-window",
        9_007_199_254_740_991 / 1_009,
    ),
    (
        "9007199254740990/120mo, fixed-window",
        9_007_199_254_740_990 / 1_613,
    ),
    ("22295457/3653d, token-bucket", 22_295_457 / 1_009),
];

fn counters() -> Vec<Counter> {
    let quotas = QUOTAS.iter().enumerate();
    quotas
        .map(|(number, (quota, _))| counter(&format!("rule-{number}"), quota))
        .collect()
}

/// Subjects of the counters, in several slots of a cluster.
fn subject(number: usize) -> Subject<'static> {
    Subject::from(number % 3)
}

#[test]
fn four_processes_get_exactly_the_limit() {
    let server = Server::start();
    exactly_the_limit(&server.url(), std::slice::from_ref(&server));
}

#[test]
fn four_processes_get_exactly_the_limit_of_a_cluster() {
    let nodes = Nodes::start();
    exactly_the_limit(&nodes.url(), &nodes.servers);
}

fn exactly_the_limit(url: &str, servers: &[Server]) {
    let mut fleet: Vec<Member> = (0..PROCESSES)
        .map(|number| Member::start(url, number))
        .collect();
    fleet.iter_mut().for_each(Member::wait_until_ready);
    // The scripts of the servers are flushed repeatedly.
    let done = AtomicBool::new(false);
    let admitted = thread::scope(|scope| {
        let flush = || {
            let mut connections: Vec<_> = servers.iter().map(Server::connect).collect();
            let mut flushes = 0_u64;
            while !done.load(Ordering::SeqCst) {
                for connection in &mut connections {
                    redis::cmd("SCRIPT").arg("FLUSH").exec(connection).unwrap();
                }
                flushes += 1;
                thread::sleep(Duration::from_millis(1));
            }
            flushes
        };
        let flushing = scope.spawn(flush);
        fleet.iter_mut().for_each(Member::go);
        let admitted: Vec<Vec<u64>> = fleet.iter_mut().map(Member::admitted).collect();
        done.store(true, Ordering::SeqCst);
        assert!(flushing.join().unwrap() > 10);
        admitted
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = RedisStore::builder(url).prefix("fleet").deadline(PATIENCE);
    let store = runtime.block_on(async { store.build().unwrap() });
    for (number, (counter, (quota, cost))) in counters().iter().zip(QUOTAS).enumerate() {
        let limit = counter.quota().burst();
        let admitted: u64 = admitted.iter().map(|member| member[number]).sum();
        assert_eq!(admitted, limit / cost, "{quota}");
        let usage = runtime.block_on(look(&store, &subject(number), counter));
        assert_eq!(usage.used(), admitted * cost, "{quota}");
    }
    servers.iter().for_each(Server::assert_that_every_key_ends);
}

/// One process of the fleet, as its parent sees it.
struct Member {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Member {
    fn start(url: &str, number: usize) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "redis::fleet::a_member_of_the_fleet",
                "--exact",
                "--ignored",
                "--nocapture",
            ])
            .env(VARIABLE, format!("{number} {url}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let lines = BufReader::new(stdout).lines();
        Self { child, lines }
    }

    /// Returns the rest of the next line that begins with this word.
    fn line(&mut self, word: &str) -> String {
        self.lines
            .by_ref()
            .map(|line| line.unwrap())
            .find_map(|line| line.strip_prefix(word).map(str::to_owned))
            .expect("a member runs until its end")
    }

    fn wait_until_ready(&mut self) {
        self.line("ready");
    }

    fn go(&mut self) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(b"go\n").unwrap();
    }

    fn admitted(&mut self) -> Vec<u64> {
        let numbers = self.line("admitted");
        numbers
            .split_whitespace()
            .map(|number| number.parse().unwrap())
            .collect()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Entry point of each process of the fleet. Without the variable it does nothing.
#[test]
#[ignore = "a part of another test, which starts it"]
fn a_member_of_the_fleet() {
    let Ok(orders) = std::env::var(VARIABLE) else {
        return;
    };
    let (number, url) = orders.split_once(' ').unwrap();
    // Clocks of the members differ by up to half a minute. Only the server's clock counts.
    let skew = number.parse::<u64>().unwrap() * 20;
    let now = SystemClock::new().now().as_micros() - 30_000_000 + skew * 1_000_000;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = RedisStore::builder(url)
            .prefix("fleet")
            .deadline(PATIENCE)
            .build()
            .unwrap();
        let store = Arc::new(store);
        look(&store, &subject(0), &counters()[0]).await;
        print_line("ready");
        std::io::stdin().read_line(&mut String::new()).unwrap();
        let mut admitted = vec![0; QUOTAS.len()];
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                tokio::spawn(requests(
                    Arc::clone(&store),
                    task,
                    Timestamp::from_micros(now),
                ))
            })
            .collect();
        for task in tasks {
            let by_task = task.await.unwrap();
            admitted
                .iter_mut()
                .zip(by_task)
                .for_each(|(sum, more)| *sum += more);
        }
        let admitted: Vec<String> = admitted.iter().map(u64::to_string).collect();
        print_line(&format!("admitted {}", admitted.join(" ")));
    });
}

/// Replaces `println!`, whose output the test harness may capture.
fn print_line(line: &str) {
    let mut stdout = std::io::stdout().lock();
    // The test harness prints the name of the test without a line break.
    writeln!(stdout, "\n{line}").unwrap();
    stdout.flush().unwrap();
}

/// Sends the requests of one task, starting at another quota in each task. Returns how many requests
/// of each quota were admitted.
async fn requests(store: Arc<RedisStore>, task: usize, now: Timestamp) -> Vec<u64> {
    let counters = counters();
    let mut admitted = vec![0; QUOTAS.len()];
    for round in 0..EACH * QUOTAS.len() as u64 {
        let number = (usize::try_from(round).unwrap() + task) % QUOTAS.len();
        let subject = subject(number);
        let check = Check::new(&subject, &counters[number]).with_cost(QUOTAS[number].1);
        let checks = [check];
        let batch = Batch::new(&checks).unwrap();
        let usages = store.decide(&batch, now).await.unwrap();
        admitted[number] += u64::from(usages.is_allowed());
    }
    admitted
}
