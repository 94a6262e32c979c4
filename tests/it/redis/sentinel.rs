//! The store connects to the primary that the sentinels name.

use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tollgate::{Counter, RedisStore};

use super::{PATIENCE, Server, counter, look, take, user};

const DEADLINE: Duration = Duration::from_millis(50);

/// A primary with a replica, and three sentinels.
struct Watched {
    primary: Server,
    replica: Server,
    sentinels: Vec<Server>,
}

impl Watched {
    fn start() -> Self {
        Self::start_with(&[], "")
    }

    fn start_with(settings: &[&str], of_sentinel: &str) -> Self {
        let primary = Server::start_on_tcp_with(settings);
        let replica = Server::start_on_tcp_with(settings);
        let port = primary.address().port().to_string();
        replica.run::<String>(&["REPLICAOF", "127.0.0.1", &port]);
        let sentinels = (0..3)
            .map(|_| {
                let mut file = format!(
                    "sentinel monitor main 127.0.0.1 {port} 2\n\
                     sentinel down-after-milliseconds main 500\n\
                     sentinel failover-timeout main 3000\n"
                );
                let _ = writeln!(file, "{of_sentinel}");
                Server::start_sentinel(&file)
            })
            .collect();
        let watched = Self {
            primary,
            replica,
            sentinels,
        };
        watched.wait_until_ready_for_failover();
        watched
    }

    /// Waits until a majority of sentinels has met, and the replica is up to date, as a failover needs.
    fn wait_until_ready_for_failover(&self) {
        let started = Instant::now();
        let has_met_the_others = |sentinel: &Server| {
            let state: Vec<String> = sentinel.run(&["SENTINEL", "MASTER", "main"]);
            let value = |name: &str| {
                let place = state.iter().position(|field| field == name)?;
                state.get(place + 1).cloned()
            };
            let known = (value("num-other-sentinels"), value("num-slaves"));
            known == (Some("2".to_owned()), Some("1".to_owned()))
        };
        let follows = || {
            let info: String = self.replica.run(&["INFO", "replication"]);
            info.contains("master_link_status:up")
        };
        while !self.sentinels.iter().all(has_met_the_others) || !follows() {
            assert!(started.elapsed() < PATIENCE, "the sentinels do not meet");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn url(&self, login: &str) -> String {
        let addresses = self
            .sentinels
            .iter()
            .map(|server| server.address().to_string());
        let addresses = addresses.collect::<Vec<_>>().join(",");
        format!("redis+sentinel://{login}{addresses}/main")
    }

    fn store(&self) -> RedisStore {
        RedisStore::builder(&self.url(""))
            .deadline(DEADLINE)
            .build()
            .unwrap()
    }
}

fn many() -> Counter {
    counter("many", "1000000/day")
}

/// Repeats a request until it succeeds. Returns what is used then.
async fn is_back(store: &RedisStore) -> u64 {
    let started = Instant::now();
    loop {
        let sent_at = Instant::now();
        let answer = take(store, &user("alice"), &many()).await;
        assert!(
            sent_at.elapsed() < DEADLINE + Duration::from_secs(2),
            "{answer:?}"
        );
        match answer {
            Ok(usage) => return usage.used(),
            Err(error) => assert!(started.elapsed() < PATIENCE, "{error}"),
        }
        sleep(Duration::from_millis(5)).await;
    }
}

fn keys_of(server: &Server) -> usize {
    server.keys().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn store_finds_the_primary_and_follows_a_failover() {
    let mut watched = Watched::start();
    let store = watched.store();
    assert_eq!(is_back(&store).await, 1);
    assert!(store.is_connected());
    // The replica has the counts before the primary is killed.
    assert_eq!(watched.primary.run::<u64>(&["WAIT", "1", "0"]), 1);
    watched.primary.kill();
    assert!(is_back(&store).await >= 1);
    let info: String = watched.replica.run(&["INFO", "replication"]);
    assert!(info.contains("role:master"), "{info}");
    watched.replica.assert_that_every_key_ends();
}

/// A planned failover. The old primary keeps running, and would still reply to reads.
#[tokio::test(flavor = "multi_thread")]
async fn store_leaves_a_demoted_primary() {
    let watched = Watched::start();
    let store = watched.store();
    assert_eq!(is_back(&store).await, 1);
    watched.sentinels[0].run::<String>(&["SENTINEL", "FAILOVER", "main"]);
    let started = Instant::now();
    loop {
        is_back(&store).await;
        let replica: String = watched.replica.run(&["INFO", "replication"]);
        let primary: String = watched.primary.run(&["INFO", "replication"]);
        if replica.contains("role:master") && primary.contains("role:slave") {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "no failover: {replica}");
        sleep(Duration::from_millis(20)).await;
    }
    let before = is_back(&store).await;
    assert_eq!(look(&store, &user("alice"), &many()).await.used(), before);
    assert!(keys_of(&watched.replica) > 0);
    let clients = connections_of_the_store(&watched.primary);
    assert_eq!(clients, 0, "no client stays on the old one");
}

/// The sentinels cannot reach the old primary any more, and the store can. Its counters would be lost.
#[tokio::test(flavor = "multi_thread")]
async fn store_leaves_a_primary_that_sentinels_cannot_reach() {
    let watched = Watched::start();
    let store = watched.store();
    assert_eq!(is_back(&store).await, 1);
    // Commands of sentinels, which the store never sends.
    let theirs = [
        "-ping",
        "-info",
        "-multi",
        "-replicaof",
        "-slaveof",
        "-client|kill",
    ];
    let cut_off = [&["ACL", "SETUSER", "default"], &theirs[..]].concat();
    watched.primary.run::<String>(&cut_off);
    let started = Instant::now();
    while connections_of_the_store(&watched.primary) > 0
        || connections_of_the_store(&watched.replica) == 0
    {
        is_back(&store).await;
        assert!(started.elapsed() < PATIENCE, "it stays on the old one");
        sleep(Duration::from_millis(20)).await;
    }
    let role: String = watched.replica.run(&["INFO", "replication"]);
    assert!(role.contains("role:master"), "{role}");
}

/// Returns the number of connections from this store.
fn connections_of_the_store(server: &Server) -> usize {
    let clients: String = server.run(&["CLIENT", "LIST"]);
    let ours = clients.lines().filter(|line| line.contains("cmd=evalsha"));
    ours.count()
}

/// Two of three sentinels may be down.
#[tokio::test(flavor = "multi_thread")]
async fn one_sentinel_is_enough_to_find_the_primary() {
    let mut watched = Watched::start();
    watched.sentinels[0].kill();
    watched.sentinels[1].signal("STOP");
    let store = watched.store();
    assert_eq!(is_back(&store).await, 1);
    watched.sentinels[1].signal("CONT");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_primary_is_named() {
    let watched = Watched::start();
    let url = watched.url("").replace("/main", "/mian");
    let store = RedisStore::builder(&url)
        .deadline(PATIENCE)
        .build()
        .unwrap();
    let error = take(&store, &user("alice"), &many()).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("no sentinel has a primary `mian`"),
        "{error}"
    );
}

/// The password is for the primary, and for sentinels that want one.
#[tokio::test(flavor = "multi_thread")]
async fn passwords_are_for_the_primary_and_for_sentinels_that_want_one() {
    for sentinels_want_it in [false, true] {
        let mut of_sentinel = "sentinel auth-pass main word\n".to_owned();
        if sentinels_want_it {
            of_sentinel += "requirepass word\nsentinel sentinel-pass word\n";
        }
        let primary = Server::start_on_tcp_with(&["--requirepass", "word", "--masterauth", "word"]);
        let port = primary.address().port();
        let file = format!("sentinel monitor main 127.0.0.1 {port} 1\n{of_sentinel}");
        let sentinel = Server::start_sentinel(&file);
        let url = |login: &str| format!("redis+sentinel://{login}@{}/main", sentinel.address());
        let store = RedisStore::builder(&url(":word"))
            .deadline(PATIENCE)
            .build()
            .unwrap();
        take(&store, &user("alice"), &many()).await.unwrap();
        let store = RedisStore::builder(&url(":wrong"))
            .deadline(PATIENCE)
            .build()
            .unwrap();
        let error = take(&store, &user("alice"), &many()).await.unwrap_err();
        assert!(
            error.to_string().contains("rejects the credentials"),
            "{error}"
        );
    }
}

/// The file of a sentinel is written by it, so each has its own.
impl Server {
    pub(super) fn start_sentinel(file: &str) -> Self {
        for _ in 0..20 {
            let mut server = Self::absent(&[]);
            let port = Self::free_port();
            let path = server.directory().join("sentinel.conf");
            fs::write(&path, file).unwrap();
            if server.launch_sentinel(port, &path) {
                return server;
            }
        }
        panic!("there is no free port");
    }
}
