//! Rounds, medians, and one pass over all requests.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

/// The medians of both sides.
#[derive(Clone, Copy, Debug)]
pub struct Duel {
    /// Ours.
    pub ours: f64,
    /// The peer's.
    pub theirs: f64,
}

/// Both sides, `rounds` times, taking turns at who is first; one more round before that does
/// not count.
pub fn duel(rounds: usize, mut ours: impl FnMut() -> f64, mut theirs: impl FnMut() -> f64) -> Duel {
    ours();
    theirs();
    let mut times = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
    for round in 0..rounds {
        if round % 2 == 0 {
            times.0.push(ours());
            times.1.push(theirs());
        } else {
            times.1.push(theirs());
            times.0.push(ours());
        }
    }
    Duel {
        ours: median(times.0),
        theirs: median(times.1),
    }
}

/// Any number of sides, `rounds` times, each round begun by another; one more round before that
/// does not count. What each came to, round by round.
pub fn turns<T>(rounds: usize, sides: &mut [Box<dyn FnMut() -> T + '_>]) -> Vec<Vec<T>> {
    let count = sides.len();
    for side in sides.iter_mut() {
        side();
    }
    let mut results: Vec<Vec<T>> = (0..count).map(|_| Vec::with_capacity(rounds)).collect();
    for round in 0..rounds {
        for turn in 0..count {
            let side = (round + turn) % count;
            results[side].push(sides[side]());
        }
    }
    results
}

/// The value in the middle.
#[must_use]
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) {
        f64::midpoint(values[middle - 1], values[middle])
    } else {
        values[middle]
    }
}

/// What one pass came to.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Wall time per decision, in nanoseconds.
    pub nanos: f64,
    /// How many of all decisions were allowed, from 0 to 1.
    pub allowed: f64,
}

/// Decides every request once, spread over `threads`.
///
/// The time is that from the first decision to the last, over all threads.
pub fn pass<'r, T: Sync>(
    requests: &'r [T],
    threads: usize,
    decide: impl Fn(&'r T) -> bool + Sync,
) -> Pass {
    let run = |part: &'r [T]| {
        let started = Instant::now();
        let allowed = part.iter().filter(|request| decide(*request)).count();
        (started, Instant::now(), allowed)
    };
    let runs = if threads == 1 {
        vec![run(requests)]
    } else {
        let parts = requests.chunks(requests.len().div_ceil(threads).max(1));
        let barrier = Barrier::new(parts.len());
        thread::scope(|scope| {
            let spawned: Vec<_> = parts
                .map(|part| {
                    let (run, barrier) = (&run, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        run(part)
                    })
                })
                .collect();
            let joined = spawned.into_iter().map(|thread| thread.join());
            joined
                .map(|ended| ended.expect("a thread panicked"))
                .collect()
        })
    };
    let started = runs.iter().map(|run| run.0).min();
    let ended = runs.iter().map(|run| run.1).max();
    let wall = started.zip(ended).map(|(started, ended)| ended - started);
    let allowed: usize = runs.iter().map(|run| run.2).sum();
    let decisions = requests.len() as f64;
    Pass {
        nanos: wall.unwrap_or_default().as_secs_f64() * 1e9 / decisions,
        allowed: allowed as f64 / decisions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_in_the_middle() {
        assert!((median(vec![9.0, 1.0, 5.0]) - 5.0).abs() < f64::EPSILON);
        assert!((median(vec![9.0, 1.0, 5.0, 4.0]) - 4.5).abs() < f64::EPSILON);
    }

    #[test]
    fn sides_take_turns() {
        let turns = std::cell::RefCell::new(String::new());
        let turn = |side| {
            turns.borrow_mut().push(side);
            1.0
        };
        duel(3, || turn('o'), || turn('t'));
        assert_eq!(turns.into_inner(), "otottoot");
    }

    #[test]
    fn any_number_of_sides_takes_turns() {
        let order = std::cell::RefCell::new(String::new());
        let mut sides: Vec<Box<dyn FnMut() -> char + '_>> = Vec::new();
        for name in ['a', 'b', 'c'] {
            let order = &order;
            sides.push(Box::new(move || {
                order.borrow_mut().push(name);
                name
            }));
        }
        let results = turns(2, &mut sides);
        drop(sides);
        assert_eq!(order.into_inner(), "abcabcbca");
        assert_eq!(results, [['a', 'a'], ['b', 'b'], ['c', 'c']]);
    }

    #[test]
    fn a_pass_decides_everything_once() {
        use std::sync::atomic::{AtomicUsize, Ordering};

        for threads in [1, 2] {
            let sum = AtomicUsize::new(0);
            let done = pass(&[1, 2, 3, 4, 5], threads, |number| {
                sum.fetch_add(*number, Ordering::Relaxed);
                *number == 5
            });
            assert_eq!(sum.into_inner(), 15);
            assert!((done.allowed - 0.2).abs() < f64::EPSILON);
        }
    }
}
