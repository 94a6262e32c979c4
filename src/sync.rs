//! How locks are taken.
//!
//! Those of the memory store, and its atomics, are exchanged for loom's when the locking is model
//! checked (`--cfg tollgate_loom`). Everybody else's are the standard library's, and [`locked`].

#[cfg(not(tollgate_loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use std::sync::{Mutex as StdMutex, MutexGuard as StdMutexGuard, PoisonError};

#[cfg(not(tollgate_loom))]
use std::sync::TryLockError;

#[cfg(tollgate_loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

/// Takes a lock of the standard library that is hardly ever contended.
///
/// A poisoned one is taken as it is: no critical section leaves what it guards half written, and
/// one request that panicked must not be the end of all others.
pub(crate) fn locked<T>(mutex: &StdMutex<T>) -> StdMutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a lock whose critical sections are a few dozen instructions long.
///
/// Spins for a moment before it lets the thread sleep: waking a sleeper costs far more than
/// the section takes. A poisoned lock is taken as it is, since no section leaves its table
/// half written where it could panic.
#[cfg(not(tollgate_loom))]
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => lock_contended(mutex),
    }
}

#[cfg(not(tollgate_loom))]
#[cold]
fn lock_contended<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every try takes the cache line from whoever holds the lock, and that one needs it to let go.
    // So the first pause is long enough for several turns of another thread.
    const PAUSES: [u32; 3] = [48, 64, 64];
    for pauses in PAUSES {
        for _ in 0..pauses {
            std::hint::spin_loop();
        }
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {}
        }
    }
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(tollgate_loom)]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("the model has no panics")
}

/// Takes a lock if it is free.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    mutex.try_lock().ok()
}
