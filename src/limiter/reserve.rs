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

    /// Sets the cost. Default: 1.
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

    /// Returns the reservation, blocking this thread until it is known. Needs no runtime, so it must not
    /// be called from a task on one unless the store is in memory.
    pub fn wait(&self) -> Result<Reservation, Error> {
        self.send().wait()
    }

    /// Repeats the reservation until it is allowed, for at most `within`: see [`CheckBuilder::until_ready`].
    pub async fn until_ready(self, within: Duration) -> Result<Reservation, Error> {
        let wait = |reservation: &Reservation| reservation.decision().retry_after();
        let clock = &*self.0.limiter().shared.clock;
        repeat_until_ready(clock, within, || self.send(), wait).await
    }

    /// [`until_ready`](Reserve::until_ready) where there is no runtime, blocking this thread.
    pub fn wait_until_ready(self, within: Duration) -> Result<Reservation, Error> {
        block_on(self.until_ready(within))
    }

    fn send(&self) -> StoreFuture<Reservation, Error> {
        let Self(check) = self;
        let overrides = check.limiter().override_store();
        if let Some(loading) = check.loading_overrides(overrides) {
            let reserve = |check: &CheckBuilder<'_>| Reserve(*check).send();
            return Completing::detached(check.send_after(loading, reserve));
        }
        let now = check.limiter().now();
        let mut first = None;
        let quotas = match check.effective_quotas(overrides, now, &mut first) {
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

    /// Sends the reservation to the store.
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
            Ok(result) => StoreFuture::ready(result),
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

/// Charge for work that may or may not happen.
///
/// It is charged when it is made, so no other caller can use the room. [`commit`](Self::commit) it when
/// the work is done. Otherwise the charge is refunded: by [`cancel`](Self::cancel), or when the
/// reservation is dropped, also by a `?` or a panic. See [`Limiter::reserve`].
///
/// ```
/// use tollgate::Limiter;
///
/// fn send(mail: &str) -> Result<(), String> {
///     if mail.contains('@') { Ok(()) } else { Err(format!("no address: {mail}")) }
/// }
///
/// let mails = Limiter::new("2/hour")?;
/// for (mail, left) in [("ada@example.com", 1), ("no address", 1), ("bob@example.com", 0)] {
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
/// # Amount of the refund
///
/// What was charged, under the quotas of the charge, as far as it still counts. After the end of its window
/// nothing is refunded, and another window is never credited. After a [reset](Limiter::reset), a refund can
/// take back later charges, except in a sliding log.
///
/// # Time of the refund
///
/// A memory store refunds at once. With a store behind a network, a drop sends the refund and does not wait
/// for the reply; `cancel().await` waits, and returns an error if it failed. A reservation whose future is
/// dropped is refunded when its reply arrives. For stores that work only while they are polled, that needs
/// a tokio runtime and the feature `redis`. A refund that is lost with the process or the connection stays
/// charged until its window ends: then less is admitted, never more than the limit.
#[must_use = "a dropped reservation is refunded: commit it when the work is done"]
pub struct Reservation {
    limiter: Limiter,
    subject: OwnedSubject,
    quotas: EffectiveQuotas<'static>,
    decision: Decision,
    /// Amount that a drop refunds.
    held: u64,
}

impl Reservation {
    /// Returns whether there was room.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        self.decision.is_allowed()
    }

    /// Returns whether there was no room. Nothing is charged then.
    #[must_use]
    pub const fn is_denied(&self) -> bool {
        self.decision.is_denied()
    }

    /// Returns the decision on the reservation.
    pub const fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Keeps the charge.
    pub fn commit(mut self) {
        self.held = 0;
    }

    /// Corrects the charge to a cost that is known only now: refunds the difference, or charges it, whether
    /// there is room for it or not.
    ///
    /// ```
    /// # use tollgate::Limiter;
    /// let tokens = Limiter::new("1000/hour")?;
    /// let estimate = tokens.reserve("ada").cost(400).wait()?;
    /// let tokens_used = 150;
    /// estimate.commit_cost(tokens_used).wait()?;
    /// assert_eq!(tokens.remaining("ada").wait()?, 850);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    ///
    /// A denied reservation holds nothing, so the whole cost is charged. The correction is made even if the
    /// future is dropped.
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

    /// Refunds the charge, even if the future is dropped.
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

/// Omits the values of the subject.
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
    /// Charges for work that may or may not happen, if there is room.
    ///
    /// [`peek`](Self::peek) followed by [`record`](Self::record) is a race: other callers can peek in between,
    /// and all of them proceed. A reservation is charged when it is made, and refunded unless it is
    /// [committed](Reservation::commit).
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
