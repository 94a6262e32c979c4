//! Asynchronous look-up of tiers.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::oneshot;
use tollgate::tier::{TierFuture, TierResolver, TierResolverBuilder};
use tollgate::{Clock, Identity, ManualClock};

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
        TierResolver::builder(move |who: Identity| {
            database.calls.fetch_add(1, Ordering::SeqCst);
            let (sender, receiver) = oneshot::channel();
            let name = who.get("user").unwrap().to_owned();
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
    // Whatever else is known of them does not matter.
    let same = Arc::new(Identity::user("alice").tenant("acme").role("admin"));
    let answer = stage.tiers.tier(&same, stage.clock.now());
    assert!(matches!(answer, TierFuture::Ready(Some(_))));
    // But who has named them does.
    let issued = Arc::new(Identity::user("alice").of_issuer("https://a.example"));
    let answer = stage.tiers.tier(&issued, stage.clock.now());
    assert!(matches!(answer, TierFuture::Pending(_)));
}

#[test]
fn callers_at_once_share_a_lookup() {
    let stage = stage();
    let mut tasks: Vec<Task> = (0..10).map(|_| stage.request("alice")).collect();
    assert!(tasks.iter_mut().all(Task::is_pending));
    assert_eq!(stage.database.calls(), 1);
    stage.database.reply("alice", team());
    for task in &mut tasks {
        assert!(task.was_woken());
        assert_eq!(task.tier().as_deref(), Some("team"));
    }
    assert_eq!(stage.database.calls(), 1);
    assert_eq!(stage.known("alice").as_deref(), Some("team"));
}

#[test]
fn a_future_that_is_never_polled_looks_nothing_up() {
    let stage = stage();
    drop(stage.request("alice"));
    assert_eq!(stage.database.calls(), 0);
    assert_eq!(stage.look_up("alice", team()).as_deref(), Some("team"));
}

#[test]
fn who_leaves_takes_nothing_away() {
    let stage = stage();
    let (mut first, mut second) = (stage.request("alice"), stage.request("alice"));
    assert!(second.is_pending() && first.is_pending());
    drop(first);
    // The first was the last to have looked.
    assert!(second.was_woken());
    assert!(second.is_pending());
    stage.database.reply("alice", team());
    assert!(second.was_woken());
    assert_eq!(second.tier().as_deref(), Some("team"));
    assert_eq!(stage.database.calls(), 1);
}

#[test]
fn thousands_who_leave_do_not_wake_each_other() {
    const WAITING: usize = 4_000;
    for backwards in [false, true] {
        let stage = stage();
        let woken = Arc::new(WakeCounter::default());
        let mut tasks: Vec<Task> = (0..WAITING)
            .map(|_| Task {
                answer: stage.tiers.tier(&user("alice"), stage.clock.now()),
                woken: Arc::clone(&woken),
            })
            .collect();
        assert!(tasks.iter_mut().all(Task::is_pending));
        if backwards {
            while tasks.pop().is_some() {}
        } else {
            drop(tasks);
        }
        let wakes = woken.count();
        assert!(wakes <= WAITING, "{wakes} wakes");
    }
}

/// All orders of the numbers below `count`.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let Some(last) = count.checked_sub(1) else {
        return vec![Vec::new()];
    };
    let mut all = Vec::new();
    for order in orders(last) {
        for place in 0..=last {
            let mut longer = order.clone();
            longer.insert(place, last);
            all.push(longer);
        }
    }
    all
}

/// The worst moment: while one looks, there is news, and all others are polled for nothing.
/// Then waiters are dropped in any order; the others are polled only when woken.
#[test]
fn in_whatever_order_they_leave_the_last_gets_the_answer() {
    const WAITING: usize = 5;
    for order in orders(WAITING) {
        for driver in 0..WAITING {
            let clock = ManualClock::new();
            let others: Arc<Mutex<Vec<Option<Task>>>> = Arc::default();
            let seen = Arc::clone(&others);
            let tiers = TierResolver::builder(move |_| {
                let (others, mut polls) = (Arc::clone(&seen), 0);
                poll_fn(move |cx| {
                    polls += 1;
                    if polls > 1 {
                        return Poll::Ready(team());
                    }
                    cx.waker().wake_by_ref();
                    for other in others.lock().unwrap().iter_mut().flatten() {
                        assert!(other.is_pending());
                    }
                    Poll::Pending
                })
            })
            .clock(clock.clone())
            .build()
            .unwrap();
            let resolve = || Task {
                answer: tiers.tier(&user("alice"), clock.now()),
                woken: Arc::default(),
            };
            let mut tasks: Vec<Option<Task>> = (0..WAITING).map(|_| Some(resolve())).collect();
            let mut looks = tasks[driver].take().unwrap();
            *others.lock().unwrap() = tasks;
            assert!(looks.is_pending());
            let mut tasks = mem::take(&mut *others.lock().unwrap());
            tasks[driver] = Some(looks);

            let (last, leaving) = order.split_last().unwrap();
            for index in leaving {
                tasks[*index] = None;
            }
            let mut last = tasks[*last].take().unwrap();
            // The driver's own news came before it was done.
            assert!(last.was_woken(), "{order:?}, driven by {driver}");
            assert_eq!(last.tier().as_deref(), Some("team"));
        }
    }
}

#[test]
fn a_lookup_that_all_have_left_goes_on_with_the_next() {
    let stage = stage();
    let mut first = stage.request("alice");
    assert!(first.is_pending());
    drop(first);
    assert!(stage.database.reply("alice", team()));
    stage.clock.advance(just_before(DEADLINE));
    assert_eq!(stage.request("alice").tier().as_deref(), Some("team"));
    assert_eq!(stage.database.calls(), 1);
}

#[test]
fn a_lookup_that_all_have_left_for_long_is_begun_anew() {
    let stage = stage();
    let mut first = stage.request("alice");
    assert!(first.is_pending());
    drop(first);
    stage.clock.advance(DEADLINE);
    assert_eq!(stage.look_up("alice", team()).as_deref(), Some("team"));
    assert_eq!(stage.database.calls(), 2);
}

#[test]
fn who_comes_late_to_a_lookup_gets_its_tier() {
    let stage = stage();
    let (mut first, mut late) = (stage.request("alice"), stage.request("alice"));
    assert!(first.is_pending());
    stage.database.reply("alice", team());
    assert_eq!(first.tier().as_deref(), Some("team"));
    assert_eq!(late.tier().as_deref(), Some("team"));
    // It was noted once: an hour from the first.
    assert_eq!(stage.database.calls(), 1);
}

#[test]
fn a_deadline_ends_the_wait() {
    let stage = stage();
    let mut tasks = [stage.request("alice"), stage.request("alice")];
    assert!(tasks.iter_mut().all(Task::is_pending));
    stage.clock.advance(just_before(DEADLINE));
    assert!(tasks.iter().all(|task| !task.was_woken()));
    stage.clock.advance(Duration::from_micros(1));
    for task in &mut tasks {
        assert!(task.was_woken());
        assert_eq!(task.tier(), None);
    }
    assert!(
        !stage.database.reply("alice", team()),
        "no look-up is waiting"
    );
    assert_eq!(stage.known("alice"), None);
    stage.clock.advance(PAUSE);
    assert_eq!(stage.look_up("alice", team()).as_deref(), Some("team"));
}

#[test]
fn the_last_known_tier_outlives_failures() {
    let stage = stage();
    stage.look_up("alice", team());
    stage.clock.advance(HOUR);
    assert_eq!(stage.look_up("alice", failure()).as_deref(), Some("team"));
    // Not tried again for a while.
    stage.clock.advance(just_before(PAUSE));
    assert_eq!(stage.known("alice").as_deref(), Some("team"));
    assert_eq!(stage.database.calls(), 2);
    stage.clock.advance(Duration::from_micros(1));

    let mut slow = stage.request("alice");
    assert!(slow.is_pending());
    stage.clock.advance(DEADLINE);
    assert_eq!(slow.tier().as_deref(), Some("team"));

    stage.clock.advance(PAUSE);
    assert_eq!(stage.look_up("alice", Ok(None)), None);
    stage.clock.advance(HOUR);
    assert_eq!(stage.look_up("alice", failure()), None);
}

/// All requests that wait for a look-up receive its failure, also those that do not poll it when it
/// panics.
#[test]
fn a_panic_reaches_all_waiters() {
    let (sender, receiver) = oneshot::channel::<()>();
    let receiver = Arc::new(Mutex::new(Some(receiver)));
    let clock = ManualClock::new();
    let tiers = TierResolver::builder(move |_| {
        let receiver = receiver.lock().unwrap().take().unwrap();
        async move {
            receiver.await.expect("a panic on purpose");
            team()
        }
    })
    .clock(clock.clone())
    .build()
    .unwrap();
    let mut waiters: Vec<Task> = (0..3)
        .map(|_| Task {
            answer: tiers.tier(&user("alice"), clock.now()),
            woken: Arc::default(),
        })
        .collect();
    for waiter in &mut waiters {
        assert!(waiter.is_pending());
    }
    drop(sender);
    for waiter in &mut waiters {
        assert!(waiter.was_woken());
        assert_eq!(waiter.tier(), None);
    }
}

#[test]
fn panics_are_failures() {
    // In the closure itself, before any future, and in the future.
    for early in [true, false] {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let clock = ManualClock::new();
        let tiers = TierResolver::builder(move |_| {
            let call = counted.fetch_add(1, Ordering::SeqCst);
            assert!(!(early && call == 1), "a panic on purpose");
            async move {
                assert!(early || call != 1, "a panic on purpose");
                team()
            }
        })
        .clock(clock.clone())
        .build()
        .unwrap();
        let resolve = || {
            let answer = tiers.tier(&user("alice"), clock.now());
            Task {
                answer,
                woken: Arc::default(),
            }
            .tier()
        };
        assert_eq!(resolve().as_deref(), Some("team"));
        clock.advance(HOUR);
        assert_eq!(resolve().as_deref(), Some("team"));
        assert_eq!(calls.load(Ordering::SeqCst), 2);
        clock.advance(PAUSE);
        assert_eq!(resolve().as_deref(), Some("team"));
        assert_eq!(calls.load(Ordering::SeqCst), 3);
    }
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
    assert_eq!(
        none().cache_capacity(0).build().unwrap_err().field(),
        "tier cache_capacity"
    );
    let refused = none().deadline(Duration::ZERO).build().unwrap_err();
    assert_eq!(refused.field(), "tier deadline");
}

#[test]
fn another_clock_means_a_new_memory() {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_tasks_on_many_threads_get_one_answer_each_round() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let clock = ManualClock::new();
    let tiers = TierResolver::builder(move |_| {
        let counted = Arc::clone(&counted);
        async move {
            counted.fetch_add(1, Ordering::SeqCst);
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            team()
        }
    })
    .clock(clock.clone())
    .build()
    .unwrap();
    for round in 1..=100 {
        let now = clock.now();
        let tasks: Vec<_> = (0..16)
            .map(|index| {
                let tiers = tiers.clone();
                tokio::spawn(async move {
                    let answer = tiers.tier(&user("alice"), now);
                    // Some leave before they have an answer.
                    if index % 4 == 0 {
                        let _ = futures_util::future::poll_immediate(answer).await;
                        return;
                    }
                    assert_eq!(answer.await.as_deref(), Some("team"));
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(calls.load(Ordering::SeqCst), round);
        clock.advance(HOUR);
    }
}
