//! A future that is usually no future at all.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use crate::error::StoreError;

/// An answer that is there already, or has to be waited for.
///
/// `.await` it in a task, or [`wait`](StoreFuture::wait) for it where there is no runtime. An
/// answer from memory is ready; neither costs it an allocation or a switch.
///
/// Asking is what counts, not waiting: a decision is on its way once it was asked for, and
/// dropping the answer does not take a charge back. (To have it given back when it is dropped,
/// [reserve](crate::Limiter::reserve).)
#[must_use = "await the answer or wait for it"]
pub struct StoreFuture<T, E = StoreError>(Inner<T, E>);

enum Inner<T, E> {
    Ready(Option<Result<T, E>>),
    Pending(Pin<Box<dyn Future<Output = Result<T, E>> + Send>>),
}

impl<T, E> StoreFuture<T, E> {
    /// An answer that is there.
    #[inline(always)]
    pub const fn ready(result: Result<T, E>) -> Self {
        Self(Inner::Ready(Some(result)))
    }

    /// An answer that will come.
    pub fn pending(future: impl Future<Output = Result<T, E>> + Send + 'static) -> Self {
        Self(Inner::Pending(Box::pin(future)))
    }

    /// The same answer in other words, now if it is there, else when it comes.
    #[inline]
    pub fn map<U, F>(
        self,
        say: impl FnOnce(Result<T, E>) -> Result<U, F> + Send + 'static,
    ) -> StoreFuture<U, F>
    where
        T: Unpin + Send + 'static,
        E: Unpin + Send + 'static,
    {
        match self.0 {
            Inner::Ready(Some(result)) => StoreFuture::ready(say(result)),
            pending => {
                let pending = Self(pending);
                StoreFuture(Inner::Pending(Box::pin(async move { say(pending.await) })))
            }
        }
    }

    /// The answer, if it is there.
    #[inline]
    pub const fn as_ready(&self) -> Option<&Result<T, E>> {
        match &self.0 {
            Inner::Ready(result) => result.as_ref(),
            Inner::Pending(_) => None,
        }
    }

    /// The answer if it is there, or the future that brings it.
    #[inline]
    pub fn try_ready(self) -> Result<Result<T, E>, Self> {
        match self.0 {
            Inner::Ready(Some(result)) => Ok(result),
            other => Err(Self(other)),
        }
    }

    /// The answer, blocking this thread until it is there. Needs no runtime, so it must not be
    /// called from a task on one.
    #[inline]
    pub fn wait(self) -> Result<T, E>
    where
        T: Unpin,
        E: Unpin,
    {
        match self.0 {
            Inner::Ready(Some(result)) => result,
            pending => block_on(Self(pending)),
        }
    }
}

impl<T: Send + Unpin + 'static, E: Send + Unpin + 'static> StoreFuture<T, E> {
    /// Sees to it that the answer comes although nobody waits for it, as far as that is possible
    /// here: on a runtime, in a task. Without one it is polled once, which starts what had not
    /// been started; most stores are at work from the moment they are asked.
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
    /// All of them, waited for one after the other; the first error, if there is one.
    pub(crate) fn all(answers: impl IntoIterator<Item = Self>) -> Self {
        let (mut told, mut pending) = (Ok(()), Vec::new());
        for answer in answers {
            match answer.try_ready() {
                Ok(result) => told = told.and(result),
                Err(answer) => pending.push(answer),
            }
        }
        if pending.is_empty() {
            return Self::ready(told);
        }
        Self::pending(async move {
            for answer in pending {
                told = told.and(answer.await);
            }
            told
        })
    }
}

impl<T: Unpin, E: Unpin> Future for StoreFuture<T, E> {
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.get_mut().0 {
            Inner::Ready(result) => match result.take() {
                Some(result) => Poll::Ready(result),
                #[expect(clippy::panic, reason = "as every future may; the alternative hangs")]
                None => panic!("an answer was polled after it was given"),
            },
            Inner::Pending(future) => future.as_mut().poll(cx),
        }
    }
}

impl<T, E> fmt::Debug for StoreFuture<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Inner::Ready(_) => "StoreFuture(ready)",
            Inner::Pending(_) => "StoreFuture(pending)",
        })
    }
}

/// Runs a future on this thread, parking it in between.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark {
        thread: Thread,
        // Not only the thread's token, which the future itself might use up.
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
