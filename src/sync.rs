//! Locks and atomics.
//!
//! [`lock`], [`try_lock`] and the types here are those of the memory store. With `--cfg tollgate_loom`
//! they are replaced by those of loom for model checks. All other code uses the standard library and
//! [`locked`].

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

/// Takes a lock of the standard library that is seldom contended.
///
/// Poisoning is ignored: no critical section leaves its data half written, and a panic in one request
/// must not fail all others.
pub(crate) fn locked<T>(mutex: &StdMutex<T>) -> StdMutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a lock whose critical sections are a few dozen instructions long.
///
/// Spins for a moment before the thread sleeps, because waking a thread takes far longer than a
/// critical section. Poisoning is ignored: no section can panic while its table is half written.
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
    // Each try takes the cache line from the thread that holds the lock and needs the line to release
    // it. So the first pause is long enough for several critical sections of another thread.
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
