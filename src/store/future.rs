//! [`StoreFuture`]: result of a store call, ready or pending.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker, ready};
use std::thread::{self, Thread};

use futures_util::future::join_all;
use pin_project_lite::pin_project;
use smallvec::SmallVec;

use super::hook::{CompletionHook, StoreReply};
use crate::error::StoreError;

/// Result of a store call. Usually ready; otherwise a future.
///
/// `.await` it in a task, or call [`wait`](StoreFuture::wait) where there is no runtime. A memory
/// store returns a ready result: neither allocates nor yields then.
///
/// # Cancellation
///
/// The call has started when this value is returned. Dropping it does not take a charge back; use
/// [`Limiter::reserve`](crate::Limiter::reserve) for a charge that is refunded on drop.
#[must_use = "await the result or wait for it"]
pub struct StoreFuture<T, E = StoreError>(State<T, E>);

enum State<T, E> {
    Ready(Option<Result<T, E>>),
    Pending(Pin<Box<DynHookedFuture<T, E>>>),
}

type DynHookedFuture<T, E> = HookedFuture<T, E, dyn Future<Output = Result<T, E>> + Send>;

/// A hook and the function that runs it with the result.
type Hook<T, E> = (CompletionHook, fn(CompletionHook, &Result<T, E>));

pin_project! {
    /// Future of a store and the hooks that decorators have added, in one allocation.
    ///
    /// Two hooks are inline; a third one moves them to the heap. Dropped hooks do not run, but
    /// release what they hold.
    struct HookedFuture<T, E, F: ?Sized> {
        hooks: SmallVec<[Hook<T, E>; 2]>,
        #[pin]
        future: F,
    }
}

impl<T, E, F: Future<Output = Result<T, E>> + ?Sized> Future for HookedFuture<T, E, F> {
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.future.poll(cx));
        for (hook, run) in this.hooks.drain(..) {
            run(hook, &result);
        }
        Poll::Ready(result)
    }
}

impl<T, E> StoreFuture<T, E> {
    /// Wraps a result that is available.
    #[inline(always)]
    pub const fn ready(result: Result<T, E>) -> Self {
        Self(State::Ready(Some(result)))
    }

    /// Boxes a future that resolves to the result.
    pub fn pending(future: impl Future<Output = Result<T, E>> + Send + 'static) -> Self {
        Self(State::Pending(Box::pin(HookedFuture {
            hooks: SmallVec::new(),
            future,
        })))
    }

    /// Maps the result: now if it is ready, otherwise on completion, which boxes another future.
    #[inline]
    pub fn map<U, F>(
        self,
        map: impl FnOnce(Result<T, E>) -> Result<U, F> + Send + 'static,
    ) -> StoreFuture<U, F>
    where
        T: Unpin + Send + 'static,
        E: Unpin + Send + 'static,
    {
        match self.try_ready() {
            Ok(result) => StoreFuture::ready(map(result)),
            Err(pending) => StoreFuture::pending(async move { map(pending.await) }),
        }
    }

    /// Returns the result if it is ready.
    #[inline]
    pub const fn as_ready(&self) -> Option<&Result<T, E>> {
        match &self.0 {
            State::Ready(result) => result.as_ref(),
            State::Pending(_) => None,
        }
    }

    /// Returns the result if it is ready, otherwise the future as an error.
    #[inline]
    pub fn try_ready(self) -> Result<Result<T, E>, Self> {
        match self.0 {
            State::Ready(Some(result)) => Ok(result),
            other => Err(Self(other)),
        }
    }

    /// Blocks this thread until the result is available. Needs no runtime; must not be called in a
    /// task of one.
    #[inline]
    pub fn wait(self) -> Result<T, E>
    where
        T: Unpin,
        E: Unpin,
    {
        match self.0 {
            State::Ready(Some(result)) => result,
            pending => block_on(Self(pending)),
        }
    }
}

impl<T> StoreFuture<T> {
    /// Runs a hook with the result: now if it is ready, otherwise on completion, after the hooks
    /// that were added before. Allocates nothing for the first two hooks.
    #[inline]
    pub(super) fn with_hook(mut self, hook: CompletionHook) -> Self
    where
        T: StoreReply,
    {
        match &mut self.0 {
            State::Ready(Some(result)) => hook.run(result),
            State::Ready(None) => {}
            State::Pending(call) => {
                let hooks = call.as_mut().project().hooks;
                hooks.push((hook, CompletionHook::run::<T>));
            }
        }
        self
    }
}

impl<T: Send + Unpin + 'static, E: Send + Unpin + 'static> StoreFuture<T, E> {
    /// Completes the call in the background. In a tokio runtime (feature `redis`) it becomes a
    /// task. Otherwise it is polled once, which is enough for a store that works from the moment
    /// of the call.
    pub(crate) fn detach(self) {
        let Err(mut pending) = self.try_ready() else {
            return;
        };
        #[cfg(feature = "redis")]
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(pending);
            return;
        }
        let mut context = Context::from_waker(Waker::noop());
        let _ = Pin::new(&mut pending).poll(&mut context);
    }
}

impl<E: Send + Unpin + 'static> StoreFuture<(), E> {
    /// Polls all of them concurrently. Returns the first error, after all have completed.
    pub(crate) fn all(futures: impl IntoIterator<Item = Self>) -> Self {
        let (mut all, mut pending) = (Ok(()), Vec::new());
        for future in futures {
            match future.try_ready() {
                Ok(result) => all = all.and(result),
                Err(future) => pending.push(future),
            }
        }
        if pending.is_empty() {
            return Self::ready(all);
        }
        Self::pending(async move {
            let results = join_all(pending).await;
            results.into_iter().fold(all, Result::and)
        })
    }
}

impl<T: Unpin, E: Unpin> Future for StoreFuture<T, E> {
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.get_mut().0 {
            State::Ready(result) => match result.take() {
                Some(result) => Poll::Ready(result),
                #[expect(clippy::panic, reason = "a future may panic here; pending would hang")]
                None => panic!("`StoreFuture` polled after completion"),
            },
            State::Pending(call) => call.as_mut().poll(cx),
        }
    }
}

impl<T, E> fmt::Debug for StoreFuture<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            State::Ready(_) => "StoreFuture(ready)",
            State::Pending(_) => "StoreFuture(pending)",
        })
    }
}

/// Runs a future on this thread. Parks the thread while the future is pending.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark {
        thread: Thread,
        // The token of the thread alone is not enough: the future may consume it.
        woken: AtomicBool,
    }

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.woken.store(true, Ordering::Release);
            self.thread.unpark();
        }
    }

    let unpark = Arc::new(Unpark {
        thread: thread::current(),
        woken: AtomicBool::new(false),
    });
    let waker = Waker::from(Arc::clone(&unpark));
    let mut context = Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        while !unpark.woken.swap(false, Ordering::Acquire) {
            thread::park();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// Bug: the second call of a shutdown waited for the reply to the first.
    #[test]
    fn all_polls_every_future_at_once() {
        let is_polled = Arc::new(AtomicBool::new(false));
        let second = Arc::clone(&is_polled);
        let first = StoreFuture::<()>::pending(std::future::pending());
        let second = StoreFuture::pending(poll_fn(move |_| {
            second.store(true, Ordering::Relaxed);
            Poll::Pending
        }));
        let mut all = StoreFuture::all([first, second]);
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut all).poll(&mut context).is_pending());
        assert!(is_polled.load(Ordering::Relaxed));
    }

    #[test]
    fn all_returns_the_first_error_after_every_future() {
        let later = |error: &'static str| {
            StoreFuture::<()>::pending(async move { Err(StoreError::new(error)) })
        };
        let all = StoreFuture::all([StoreFuture::ready(Ok(())), later("one"), later("two")]);
        assert!(all.wait().unwrap_err().to_string().contains("one"));
    }
}
