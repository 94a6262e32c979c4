//! Asynchronous look-up of tiers.

mod failures;
mod waiters;

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::oneshot;
use tollgate::tier::{TierFuture, TierResolver, TierResolverBuilder};
use tollgate::{Clock, Identity, ManualClock};

use crate::support::error_paths;
use crate::support::waker::WakeCounter;

const HOUR: Duration = Duration::from_hours(1);
const PAUSE: Duration = Duration::from_secs(5);
const DEADLINE: Duration = Duration::from_millis(100);

type Reply = Result<Option<String>, io::Error>;

/// Returns the last instant before `duration` has passed.
fn just_before(duration: Duration) -> Duration {
    duration.saturating_sub(Duration::from_micros(1))
}

#[expect(clippy::unnecessary_wraps, reason = "it is what a lookup gives")]
fn team() -> Reply {
    Ok(Some("team".to_owned()))
}

fn failure() -> Reply {
    Err(io::Error::other("the database is gone"))
}

fn user(name: &str) -> Arc<Identity> {
    Arc::new(Identity::user(name))
}

/// A task that is polled by hand.
struct Task {
    answer: TierFuture,
    woken: Arc<WakeCounter>,
}

impl Task {
    fn poll(&mut self) -> Poll<Option<Arc<str>>> {
        self.woken.reset();
        let waker = Waker::from(Arc::clone(&self.woken));
        Pin::new(&mut self.answer).poll(&mut Context::from_waker(&waker))
    }

    fn is_pending(&mut self) -> bool {
        self.poll().is_pending()
    }

    #[track_caller]
    fn tier(&mut self) -> Option<String> {
        match self.poll() {
            Poll::Ready(tier) => tier.map(|name| name.to_string()),
            Poll::Pending => panic!("still looking it up"),
        }
    }

    fn was_woken(&self) -> bool {
        self.woken.count() > 0
    }
}

/// Database whose replies the test sends.
#[derive(Clone, Default)]
struct Database {
    calls: Arc<AtomicUsize>,
    open: Arc<Mutex<HashMap<String, Vec<oneshot::Sender<Reply>>>>>,
}

impl Database {
    fn resolver(&self) -> TierResolverBuilder {
        let database = self.clone();
        TierResolver::builder(move |caller: Identity| {
            database.calls.fetch_add(1, Ordering::SeqCst);
            let (sender, receiver) = oneshot::channel();
            let name = caller.get("user").unwrap().to_owned();
            database
                .open
                .lock()
                .unwrap()
                .entry(name)
                .or_default()
                .push(sender);
            async move { receiver.await.map_err(io::Error::other)? }
        })
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// Completes the look-up in progress. Returns whether a task still waited for it.
    fn reply(&self, name: &str, reply: Reply) -> bool {
        let sender = self
            .open
            .lock()
            .unwrap()
            .get_mut(name)
            .unwrap()
            .pop()
            .unwrap();
        sender.send(reply).is_ok()
    }
}

/// A resolver over a database, on a clock that is moved by hand.
struct Stage {
    database: Database,
    clock: ManualClock,
    tiers: TierResolver,
}

impl Stage {
    fn new(settings: impl FnOnce(TierResolverBuilder) -> TierResolverBuilder) -> Self {
        let (database, clock) = (Database::default(), ManualClock::new());
        let builder = settings(database.resolver()).clock(clock.clone());
        Self {
            database,
            clock,
            tiers: builder.build().unwrap(),
        }
    }

    fn request(&self, name: &str) -> Task {
        Task {
            answer: self.tiers.tier(&user(name), self.clock.now()),
            woken: Arc::default(),
        }
    }

    /// Starts a look-up and completes it.
    fn look_up(&self, name: &str, reply: Reply) -> Option<String> {
        let mut task = self.request(name);
        assert!(task.is_pending());
        assert!(self.database.reply(name, reply));
        assert!(task.was_woken());
        task.tier()
    }

    /// The tier that is known without a lookup.
    #[track_caller]
    fn known(&self, name: &str) -> Option<String> {
        match self.tiers.tier(&user(name), self.clock.now()) {
            TierFuture::Ready(tier) => tier.map(|name| name.to_string()),
            TierFuture::Pending(_) => panic!("{name} has to be looked up"),
        }
    }
}

fn stage() -> Stage {
    Stage::new(|settings| settings)
}

#[test]
fn a_tier_is_looked_up_once_an_hour() {
    let stage = stage();
    assert_eq!(stage.look_up("alice", team()).as_deref(), Some("team"));
    assert_eq!(stage.look_up("bob", Ok(None)), None);
    stage.clock.advance(just_before(HOUR));
    assert_eq!(stage.known("alice").as_deref(), Some("team"));
    assert_eq!(stage.known("bob"), None);
    assert_eq!(stage.database.calls(), 2);

    stage.clock.advance(Duration::from_micros(1));
    let free = Ok(Some("free".to_owned()));
    assert_eq!(stage.look_up("alice", free).as_deref(), Some("free"));
    // An empty name is none.
    assert_eq!(stage.look_up("bob", Ok(Some(String::new()))), None);
}

#[test]
fn callers_are_distinguished_by_dimension_and_value() {
    let stage = stage();
    stage.look_up("alice", team());
    let device = Arc::new(Identity::new("device", "alice").with("user", "alice"));
    let answer = stage.tiers.tier(&device, stage.clock.now());
    assert!(matches!(answer, TierFuture::Pending(_)));
    // Other dimensions and roles are no part of the key.
    let same = Arc::new(Identity::user("alice").tenant("acme").role("admin"));
    let answer = stage.tiers.tier(&same, stage.clock.now());
    assert!(matches!(answer, TierFuture::Ready(Some(_))));
    // The issuer is.
    let issued = Arc::new(Identity::user("alice").of_issuer("https://a.example"));
    let answer = stage.tiers.tier(&issued, stage.clock.now());
    assert!(matches!(answer, TierFuture::Pending(_)));
}

#[test]
fn cache_is_bounded() {
    let stage = Stage::new(|settings| settings.cache_capacity(100));
    for index in 0..1_000 {
        stage.look_up(&format!("user-{index}"), team());
    }
    assert!(
        (50..=100).contains(&stage.tiers.len()),
        "{}",
        stage.tiers.len()
    );
}

#[test]
fn a_lookup_ends_with_the_resolver_and_its_callers() {
    let stage = stage();
    let mut task = stage.request("alice");
    assert!(task.is_pending());
    drop(task);
    drop(stage.tiers);
    assert!(
        !stage.database.reply("alice", team()),
        "it is still kept somewhere"
    );
}

#[test]
fn settings() {
    let stage = Stage::new(|settings| {
        settings
            .deadline(Duration::from_secs(1))
            .cache_ttl(Duration::from_secs(10))
    });
    let mut slow = stage.request("alice");
    assert!(slow.is_pending());
    stage.clock.advance(Duration::from_millis(999));
    assert!(slow.is_pending());
    stage.database.reply("alice", team());
    assert_eq!(slow.tier().as_deref(), Some("team"));
    stage.clock.advance(Duration::from_secs(10));
    assert!(matches!(
        stage.tiers.tier(&user("alice"), stage.clock.now()),
        TierFuture::Pending(_)
    ));

    let none = || TierResolver::builder(|_| async { team() });
    let wrong = none().cache_capacity(0).deadline(Duration::ZERO).build();
    assert_eq!(
        error_paths(&wrong.unwrap_err()),
        ["cache_capacity", "deadline"]
    );
}

#[test]
fn another_clock_has_a_cache_of_its_own() {
    let stage = stage();
    stage.look_up("alice", team());
    let clock = ManualClock::new();
    let moved = stage.tiers.on_clock(Arc::new(clock.clone()));
    let mut task = Task {
        answer: moved.tier(&user("alice"), clock.now()),
        woken: Arc::default(),
    };
    assert!(task.is_pending());
    clock.advance(DEADLINE);
    assert!(task.was_woken());
    assert_eq!(task.tier(), None);
    assert_eq!(stage.known("alice").as_deref(), Some("team"));
}
