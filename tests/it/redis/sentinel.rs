//! The store connects to the primary that the sentinels name.

use std::fs;
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tollgate::{Counter, RedisStore};

use super::{PATIENCE, Server, counter, look, take, user};

const DEADLINE: Duration = Duration::from_millis(50);

/// A primary with a replica, and three sentinels.
pub(super) struct SentinelGroup {
    pub(super) primary: Server,
    pub(super) replica: Server,
    sentinels: Vec<Server>,
}

impl SentinelGroup {
    fn start() -> Self {
        Self::start_with(Server::start_on_tcp_with)
    }

    pub(super) fn start_with(start: fn(&[&str]) -> Server) -> Self {
        let (primary, replica) = (start(&[]), start(&[]));
        let port = primary.address().port().to_string();
        replica.run::<String>(&["REPLICAOF", "127.0.0.1", &port]);
        let sentinels = (0..3)
            .map(|_| {
                let file = format!(
                    "sentinel monitor main 127.0.0.1 {port} 2\n\
                     sentinel down-after-milliseconds main 500\n\
                     sentinel failover-timeout main 3000\n"
                );
                Server::start_sentinel(&file)
            })
            .collect();
        let group = Self {
            primary,
            replica,
            sentinels,
        };
        group.wait_until_ready_for_failover();
        group
    }

    /// Waits until a majority of sentinels is connected and the replica is in sync, as a failover requires.
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
            assert!(
                started.elapsed() < PATIENCE,
                "the sentinels are not connected"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the replica has all writes that the primary has now. `WAIT` would not do: it covers only
    /// the writes of its own connection, and a replica can confirm before it has loaded anything.
    pub(super) fn wait_until_replicated(&self) {
        let offset = |server: &Server, field: &str| {
            let info: String = server.run(&["INFO", "replication"]);
            let value = info.lines().find_map(|line| line.strip_prefix(field));
            value.unwrap_or_default().trim().parse::<u64>().unwrap_or(0)
        };
        let written = offset(&self.primary, "master_repl_offset:");
        let started = Instant::now();
        while offset(&self.replica, "slave_repl_offset:") < written {
            assert!(started.elapsed() < PATIENCE, "the replica does not follow");
            std::thread::sleep(Duration::from_millis(5));
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

    pub(super) fn store(&self) -> RedisStore {
        RedisStore::builder(&self.url(""))
            .deadline(DEADLINE)
            .build()
            .unwrap()
    }
}

fn many() -> Counter {
    counter("many", "1000000/day")
}

/// Repeats a request until it succeeds. Returns the usage.
async fn charge_until_success(store: &RedisStore) -> u64 {
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
    let mut group = SentinelGroup::start();
    let store = group.store();
    assert_eq!(charge_until_success(&store).await, 1);
    assert!(store.is_connected());
    group.wait_until_replicated();
    group.primary.kill();
    assert!(charge_until_success(&store).await >= 1);
    let info: String = group.replica.run(&["INFO", "replication"]);
    assert!(info.contains("role:master"), "{info}");
    group.replica.assert_that_every_key_ends();
}

/// A planned failover. The old primary keeps running, and still replies to reads.
#[tokio::test(flavor = "multi_thread")]
async fn store_leaves_a_demoted_primary() {
    let group = SentinelGroup::start();
    let store = group.store();
    assert_eq!(charge_until_success(&store).await, 1);
    group.sentinels[0].run::<String>(&["SENTINEL", "FAILOVER", "main"]);
    let started = Instant::now();
    loop {
        charge_until_success(&store).await;
        let replica: String = group.replica.run(&["INFO", "replication"]);
        let primary: String = group.primary.run(&["INFO", "replication"]);
        if replica.contains("role:master") && primary.contains("role:slave") {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "no failover: {replica}");
        sleep(Duration::from_millis(20)).await;
    }
    let before = charge_until_success(&store).await;
    assert_eq!(look(&store, &user("alice"), &many()).await.used(), before);
    assert!(keys_of(&group.replica) > 0);
    let clients = connections_of_the_store(&group.primary);
    assert_eq!(clients, 0, "a client is still on the old primary");
}

/// The sentinels cannot reach the old primary, and the store can. Counters on it would be lost.
#[tokio::test(flavor = "multi_thread")]
async fn store_leaves_a_primary_that_sentinels_cannot_reach() {
    let group = SentinelGroup::start();
    let store = group.store();
    assert_eq!(charge_until_success(&store).await, 1);
    // Only sentinels send these commands, never the store.
    let sentinel_commands = [
        "-ping",
        "-info",
        "-multi",
        "-replicaof",
        "-slaveof",
        "-client|kill",
    ];
    let cut_off = [&["ACL", "SETUSER", "default"], &sentinel_commands[..]].concat();
    group.primary.run::<String>(&cut_off);
    let started = Instant::now();
    while connections_of_the_store(&group.primary) > 0
        || connections_of_the_store(&group.replica) == 0
    {
        charge_until_success(&store).await;
        assert!(
            started.elapsed() < PATIENCE,
            "the store stays on the old primary"
        );
        sleep(Duration::from_millis(20)).await;
    }
    let role: String = group.replica.run(&["INFO", "replication"]);
    assert!(role.contains("role:master"), "{role}");
}

/// Returns the number of connections from this store.
fn connections_of_the_store(server: &Server) -> usize {
    let clients: String = server.run(&["CLIENT", "LIST"]);
    let from_store = clients.lines().filter(|line| line.contains("cmd=evalsha"));
    from_store.count()
}

/// Two of three sentinels may be down.
#[tokio::test(flavor = "multi_thread")]
async fn one_sentinel_is_enough_to_find_the_primary() {
    let mut group = SentinelGroup::start();
    group.sentinels[0].kill();
    group.sentinels[1].signal("STOP");
    let store = group.store();
    assert_eq!(charge_until_success(&store).await, 1);
    group.sentinels[1].signal("CONT");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_primary_is_reported() {
    let group = SentinelGroup::start();
    let url = group.url("").replace("/main", "/mian");
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

/// The password is sent to the primary, and to sentinels that require one.
#[tokio::test(flavor = "multi_thread")]
async fn passwords_are_sent_to_the_primary_and_to_sentinels_that_require_one() {
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

/// Starts a sentinel with its own file, because a sentinel rewrites its file.
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
