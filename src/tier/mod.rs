//! Subscription tiers that have to be looked up: [`TierResolver`].

mod answer;
mod builder;
mod flight;
mod lookup;
mod slot;
mod streak;

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quick_cache::sync::Cache;

pub use self::answer::TierAnswer;
pub use self::builder::TierResolverBuilder;
use self::flight::Flight;
use self::lookup::Lookup;
use self::slot::{Look, Slot, Sought, Who};
use self::streak::Streak;
use crate::clock::{Clock, Timestamp};
use crate::identity_types::Identity;
use crate::sync::locked;

/// Looks tiers up where they are kept: in a database, behind an API.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Identity;
/// use tollgate::tier::TierResolver;
///
/// # async fn plan_of(user: &str) -> Result<Option<String>, std::io::Error> { Ok(None) }
/// let tiers = TierResolver::builder(|who: Identity| async move {
///     let Some(user) = who.get(Identity::USER) else {
///         return Ok(None);
///     };
///     plan_of(user).await // Result<Option<String>, …>
/// })
/// .deadline(Duration::from_millis(50))
/// .remember(Duration::from_secs(600))
/// .build()?;
/// # let _ = tiers;
/// # Ok::<(), tollgate::ValidationError>(())
/// ```
///
/// - An answer is remembered for an hour, for up to 10 000 callers, told apart by the
///   dimension and value that each is [known by](Identity::primary), and by the
///   [issuer](Identity::issuer) if there is one.
/// - Callers who ask at once share one lookup. It goes on as long as any of them waits, and
///   whoever comes before its deadline joins in.
/// - A lookup that fails, panics or takes longer than 100 milliseconds is given up: the last
///   known tier counts, else the default tier. It is tried again after five seconds, not
///   with every request.
/// - The first failure after a success is reported; those that follow are not.
///
/// No task is spawned: whoever waits drives the lookup. Cheap to clone; clones share what is
/// remembered.
#[derive(Clone)]
pub struct TierResolver {
    shared: Arc<Shared>,
}

struct Shared {
    find: Arc<Find>,
    clock: Arc<dyn Clock>,
    settings: Settings,
    slots: Cache<Who, Arc<Slot>>,
    /// Held while a slot is made, so that two who ask at once get the same.
    making: Mutex<()>,
    streak: Arc<Streak>,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    deadline: Duration,
    remember: Duration,
    capacity: usize,
}

type Find = dyn Fn(Identity) -> Finding + Send + Sync;
type Finding = Pin<Box<dyn Future<Output = Result<Option<String>, Failure>> + Send>>;
type Failure = Box<dyn Error + Send + Sync>;

impl TierResolver {
    /// Looks tiers up with `find`, with the default settings.
    ///
    /// `find` gives the name of the tier, or `None` for the default tier.
    pub fn new<F, L, E>(find: F) -> Self
    where
        F: Fn(Identity) -> L + Send + Sync + 'static,
        L: Future<Output = Result<Option<String>, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        Self::builder(find).create()
    }

    /// Looks tiers up with `find`, with settings.
    pub fn builder<F, L, E>(find: F) -> TierResolverBuilder
    where
        F: Fn(Identity) -> L + Send + Sync + 'static,
        L: Future<Output = Result<Option<String>, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        TierResolverBuilder::new(Arc::new(move |who| {
            let lookup = find(who);
            Box::pin(async move { lookup.await.map_err(Into::into) })
        }))
    }

    /// The same lookups and settings on another clock, with nothing remembered yet.
    #[must_use]
    pub fn on_clock(&self, clock: Arc<dyn Clock>) -> Self {
        Self::assemble(Arc::clone(&self.shared.find), clock, self.shared.settings)
    }

    fn assemble(find: Arc<Find>, clock: Arc<dyn Clock>, settings: Settings) -> Self {
        Self {
            shared: Arc::new(Shared {
                find,
                clock,
                settings,
                slots: Cache::new(settings.capacity),
                making: Mutex::default(),
                streak: Arc::default(),
            }),
        }
    }

    /// The tier of a caller: at once if it is known, else when it has been looked up, which
    /// takes no longer than the deadline. An [unauthenticated](Identity::unauthenticated) caller
    /// has the default tier; nothing is looked up.
    pub fn tier(&self, identity: &Arc<Identity>, now: Timestamp) -> TierAnswer {
        let Some(subject) = identity.told_apart_by() else {
            return TierAnswer::Ready(None);
        };
        let slot = self.slot(subject);
        match slot.look(now, || self.depart(identity, now)) {
            Look::Fresh(tier) => TierAnswer::Ready(tier),
            Look::Flying(flight) => self.await_landing(slot, flight),
        }
    }

    /// How many callers' tiers are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.slots.len()
    }

    /// Whether no caller's tier is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn slot(&self, subject: (&str, &str)) -> Arc<Slot> {
        let slots = &self.shared.slots;
        let sought = Sought(subject);
        if let Some(slot) = slots.get(&sought) {
            return slot;
        }
        let _making = locked(&self.shared.making);
        if let Some(slot) = slots.get(&sought) {
            return slot;
        }
        let slot = Arc::new(Slot::default());
        slots.insert(sought.keep(), Arc::clone(&slot));
        slot
    }

    fn depart(&self, identity: &Identity, now: Timestamp) -> Arc<Flight> {
        let shared = &self.shared;
        let deadline = now.saturating_add(shared.settings.deadline);
        let lookup = Lookup::new(
            Arc::clone(&shared.find),
            identity.clone(),
            shared.clock.sleep_until(deadline),
            Arc::clone(&shared.streak),
        );
        Arc::new(Flight::new(lookup, deadline))
    }

    fn await_landing(&self, slot: Arc<Slot>, flight: Arc<Flight>) -> TierAnswer {
        let clock = Arc::clone(&self.shared.clock);
        let remember = self.shared.settings.remember;
        TierAnswer::Pending(Box::pin(async move {
            let outcome = Flight::join(&flight).await;
            slot.settle(&flight, outcome, clock.now(), remember)
        }))
    }
}

/// Shows the settings, and nobody.
impl fmt::Debug for TierResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TierResolver")
            .field("settings", &self.shared.settings)
            .finish_non_exhaustive()
    }
}
