//! Charges that are refunded unless they are committed: [`Reserve`] and [`Reservation`].

use std::fmt;
use std::future::IntoFuture;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::Limiter;
use super::check::{CheckBuilder, repeat_until_ready};
use super::effective_quotas::EffectiveQuotas;
use crate::decision::Decision;
use crate::error::Error;
use crate::key::{OwnedSubject, Subject};
use crate::quota::Quota;
use crate::store::{StoreFuture, block_on};

/// A reservation that has not been sent yet: set options, then `.await` it or
/// [`wait`](Reserve::wait). See [`Limiter::reserve`].
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing is reserved before it is awaited or waited for"]
pub struct Reserve<'a>(CheckBuilder<'a>);

impl<'a> Reserve<'a> {
    pub(super) const fn new(check: CheckBuilder<'a>) -> Self {
        Self(check)
    }

    /// Reserves this much instead of 1.
    pub fn cost(self, cost: u64) -> Self {
        Self(self.0.cost(cost))
    }

    /// For this call, the first quota allows `amount`: see [`CheckBuilder::limit`].
    pub fn limit(self, amount: u64) -> Self {
        Self(self.0.limit(amount))
    }

    /// For this call, these quotas apply: see [`CheckBuilder::quotas`].
    pub fn quotas(self, quotas: &'a [Quota]) -> Self {
        Self(self.0.quotas(quotas))
    }

    /// The reservation, blocking this thread until it is there. Needs no runtime, so it must not
    /// be called from a task on one unless the store is in memory.
    pub fn wait(&self) -> Result<Reservation, Error> {
        self.send().wait()
    }

    /// Repeats the reservation until it is allowed, for at most `within`: see [`CheckBuilder::until_ready`].
    pub async fn until_ready(self, within: Duration) -> Result<Reservation, Error> {
        let wait = |reservation: &Reservation| reservation.decision().retry_after();
        let clock = &*self.0.limiter().inner.clock;
        repeat_until_ready(clock, within, || self.send(), wait).await
    }

    /// [`until_ready`](Reserve::until_ready) where there is no runtime, blocking this thread.
    pub fn wait_until_ready(self, within: Duration) -> Result<Reservation, Error> {
        block_on(self.until_ready(within))
    }

    fn send(&self) -> StoreFuture<Reservation, Error> {
        let Self(check) = self;
        if let Some(loading) = check.loading_overrides() {
            let reserve = |check: &CheckBuilder<'_>| Reserve(*check).send();
            return Completing::detached(check.send_after(loading, reserve));
        }
        let now = check.limiter().now();
        let mut first = None;
        let quotas = match check.effective_quotas(now, &mut first) {
            Ok(quotas) => quotas,
            Err(invalid) => return StoreFuture::ready(Err(invalid.into())),
        };
        let answer = check.send_under(&quotas, now);
        let limiter = check.limiter().clone();
        let subject = OwnedSubject::from(check.subject());
        let quotas = quotas.into_owned();
        Completing::detached(answer.map(move |decision| {
            let decision = decision?;
            Ok(Reservation {
                held: decision.charged(),
                limiter,
                subject,
                quotas,
                decision,
            })
        }))
    }
}

impl IntoFuture for Reserve<'_> {
    type Output = Result<Reservation, Error>;
    type IntoFuture = StoreFuture<Reservation, Error>;

    /// Puts the reservation to the store.
    fn into_future(self) -> Self::IntoFuture {
        self.send()
    }
}

/// A future that completes even if it is dropped: a reservation, so that it is refunded; a settlement,
/// so that it takes effect.
struct Completing<T: Send + Unpin + 'static> {
    /// `None` only while this is dropped.
    answer: Option<StoreFuture<T, Error>>,
    is_complete: bool,
}

impl<T: Send + Unpin + 'static> Completing<T> {
    fn detached(answer: StoreFuture<T, Error>) -> StoreFuture<T, Error> {
        match answer.try_ready() {
            Ok(there) => StoreFuture::ready(there),
            Err(pending) => StoreFuture::pending(Self {
                answer: Some(pending),
                is_complete: false,
            }),
        }
    }
}

impl<T: Send + Unpin + 'static> Future for Completing<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(answer) = &mut self.answer else {
            return Poll::Pending;
        };
        let poll = Pin::new(answer).poll(cx);
        self.is_complete |= poll.is_ready();
        poll
    }
}

impl<T: Send + Unpin + 'static> Drop for Completing<T> {
    fn drop(&mut self) {
        if let Some(answer) = self.answer.take().filter(|_| !self.is_complete) {
            answer.detach();
        }
    }
}

/// Room that is kept for something that may or may not happen.
///
/// It is charged from the beginning, so no other caller can take it. [`commit`](Self::commit) it when
/// the thing has happened. Otherwise the charge is given back: by [`cancel`](Self::cancel), or when
/// the reservation is dropped, also by a `?` or a panic on the way. See [`Limiter::reserve`].
///
/// ```
/// use tollgate::Limiter;
///
/// fn send(mail: &str) -> Result<(), String> {
///     if mail.contains('@') { Ok(()) } else { Err(format!("no address: {mail}")) }
/// }
///
/// let mails = Limiter::new("2/hour")?;
/// for (mail, left) in [("ada@example.com", 1), ("nobody", 1), ("bob@example.com", 0)] {
///     let room = mails.reserve("all").wait()?;
///     assert!(room.is_allowed());
///     if send(mail).is_ok() {
///         room.commit();
///     } else {
///         drop(room); // as the end of the block would
///     }
///     assert_eq!(mails.remaining("all").wait()?, left);
/// }
/// assert!(mails.reserve("all").wait()?.is_denied());
/// # Ok::<(), tollgate::Error>(())
/// ```
///
/// # What is given back
///
/// Exactly what was charged, by the quotas that it was charged under, as far as it still counts:
/// if its window is over meanwhile, nothing, and never anything out of another window. Only what was
/// [forgotten](Limiter::reset) in between cannot be told from what was charged since, unless it is in
/// a log.
///
/// # When
///
/// In memory, at once. Over a network, dropping sends word and does not wait for an answer;
/// `cancel().await` does, and says if it failed. The same goes for a reservation that was asked for
/// and not waited for: when it comes, it is given back. For that, stores that begin to work only
/// when they are awaited need a runtime of tokio, and the feature `redis`. What is not given back,
/// because the process or the connection is gone, stays charged until its window is over: then
/// there is less room for a while, never more than the limit.
#[must_use = "it is given back when it is dropped: commit it when the thing has happened"]
pub struct Reservation {
    limiter: Limiter,
    subject: OwnedSubject,
    quotas: EffectiveQuotas<'static>,
    decision: Decision,
    /// What is to be given back.
    held: u64,
}

impl Reservation {
    /// Whether there was room.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        self.decision.is_allowed()
    }

    /// Whether there was none. Then nothing is held, and there is nothing to give back.
    #[must_use]
    pub const fn is_denied(&self) -> bool {
        self.decision.is_denied()
    }

    /// Where things stand, this reservation included.
    pub const fn decision(&self) -> &Decision {
        &self.decision
    }

    /// It has happened: the charge stays.
    pub fn commit(mut self) {
        self.held = 0;
    }

    /// It has happened, and what it costs is known only now: the rest of what was reserved is
    /// given back, or the difference is charged, whether there is room for it or not.
    ///
    /// ```
    /// # use tollgate::Limiter;
    /// let tokens = Limiter::new("1000/hour")?;
    /// let most = tokens.reserve("ada").cost(400).wait()?;
    /// let answer_took = 150;
    /// most.commit_cost(answer_took).wait()?;
    /// assert_eq!(tokens.remaining("ada").wait()?, 850);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    ///
    /// Of a denied reservation nothing is held, so all of the cost is charged. Once it was called it
    /// is under way, also if the future is dropped.
    pub fn commit_cost(mut self, cost: u64) -> StoreFuture<(), Error> {
        let held = std::mem::take(&mut self.held);
        if cost <= held {
            return Completing::detached(self.refund(held - cost));
        }
        let subject = self.subject.as_subject();
        let more = self.limiter.record(subject).cost(cost - held);
        let recorded = more.send_under(&self.quotas, self.limiter.now());
        Completing::detached(recorded.map(|recorded| recorded.map(drop)))
    }

    /// It will not happen: refunds the charge. The refund is under way after this call, also if the
    /// future is dropped.
    pub fn cancel(mut self) -> StoreFuture<(), Error> {
        let held = std::mem::take(&mut self.held);
        Completing::detached(self.refund(held))
    }

    fn refund(&self, cost: u64) -> StoreFuture<(), Error> {
        let subject = self.subject.as_subject();
        let charged_at = self.decision.charged_at();
        self.limiter
            .refund_under(&subject, &self.quotas, cost, charged_at)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.refund(self.held).detach();
    }
}

/// Shows how things stand, and not whose.
impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("subject", &self.subject.as_subject())
            .field("decision", &self.decision)
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}

impl Limiter {
    /// Keeps room for something that may or may not happen, if there is any.
    ///
    /// To look first and charge later, in two steps, is a race: between [`peek`](Self::peek) and
    /// [`record`](Self::record) others look as well, and all of them go ahead. A reservation is
    /// charged when it is made, and given back unless it is [committed](Reservation::commit).
    ///
    /// ```
    /// use tollgate::Limiter;
    ///
    /// # async fn deliver(mail: &str) -> Result<(), Box<dyn std::error::Error>> { Ok(()) }
    /// # async fn send(mail: &str) -> Result<(), Box<dyn std::error::Error>> {
    /// let outbound = Limiter::builder().quota("60/minute").quota("1000/hour").build()?;
    ///
    /// let room = outbound.reserve("all").await?;
    /// if room.is_denied() {
    ///     return Err(format!("try again in {:?}", room.decision().retry_after()).into());
    /// }
    /// deliver(mail).await?; // if this fails, nothing was sent, and nothing counts
    /// room.commit();
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(send("hello")).unwrap();
    /// ```
    #[inline]
    pub fn reserve<'a>(&'a self, key: impl Into<Subject<'a>>) -> Reserve<'a> {
        Reserve::new(self.check(key))
    }
}
