//! If a handler ran, all its rules were charged: held against generated routers and paths.
//!
//! Each router and its requests depend on one seed. A failure prints the seed, a router from which
//! everything unnecessary was removed, the request, what ran and what was charged. To repeat it,
//! set `FUZZ_ROUTES_SEED` to the seed and `FUZZ_ROUTES_ROUTERS` to 1. `scripts/fuzz-routes` runs
//! more routers and requests than the ordinary test does.

mod build;
mod check;
mod generate;
mod paths;
mod pattern;
mod plain;
mod policy;
mod random;
mod readings;
mod segment;
mod shrink;
mod tree;

use std::fmt::Write as _;
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::{Builder, Runtime};

use self::build::{Service, build};
use self::check::{Outcome, check};
use self::paths::Sent;
use self::random::Random;
use self::tree::App;

/// How many requests had which outcome.
#[derive(Debug, Default)]
struct Counts {
    routers: u64,
    requests: u64,
    /// Requests whose path is not plain.
    odd: u64,
    charged: u64,
    exempt: u64,
    rejected: u64,
    no_handler: u64,
    uncovered: u64,
    /// The limit that the security guide names.
    hidden: u64,
    /// Handlers that ran without their rule because axum removed another prefix than it matched.
    shifted: u64,
}

impl Counts {
    fn add(&mut self, outcome: Outcome, is_odd: bool) {
        self.requests += 1;
        self.odd += u64::from(is_odd);
        *match outcome {
            Outcome::Invalid => return self.requests -= 1,
            Outcome::Rejected => &mut self.rejected,
            Outcome::NoHandler => &mut self.no_handler,
            Outcome::Uncovered => &mut self.uncovered,
            Outcome::Charged => &mut self.charged,
            Outcome::Exempt => &mut self.exempt,
            Outcome::Hidden => &mut self.hidden,
            Outcome::Shifted => &mut self.shifted,
        } += 1;
    }

    fn extend(&mut self, other: &Self) {
        self.routers += other.routers;
        self.requests += other.requests;
        self.odd += other.odd;
        self.charged += other.charged;
        self.exempt += other.exempt;
        self.rejected += other.rejected;
        self.no_handler += other.no_handler;
        self.uncovered += other.uncovered;
        self.hidden += other.hidden;
        self.shifted += other.shifted;
    }
}

/// Sends requests to the router of a seed. Returns what is wrong with the first that fails.
fn run(runtime: &Runtime, seed: u64, requests: u64) -> (Counts, Option<String>) {
    let app = generate::app(seed);
    let service = build(&app);
    let mut random = Random::new(!seed);
    let mut counts = Counts::default();
    counts.routers += 1;
    for _ in 0..requests {
        let sent = paths::request(&mut random, &app);
        match send(runtime, &app, &service, &sent) {
            Ok((outcome, is_odd)) => counts.add(outcome, is_odd),
            Err(problem) => return (counts, Some(report(runtime, seed, app, &sent, &problem))),
        }
    }
    (counts, None)
}

/// Sends one request. A panic is a failure like any other, so that its seed is printed.
fn send(
    runtime: &Runtime,
    app: &App,
    service: &Service,
    sent: &Sent,
) -> Result<(Outcome, bool), String> {
    let check = AssertUnwindSafe(|| runtime.block_on(check(app, service, sent)));
    std::panic::catch_unwind(check).unwrap_or_else(|_| Err("it panicked".to_owned()))
}

fn report(runtime: &Runtime, seed: u64, app: App, sent: &Sent, problem: &str) -> String {
    if number("FUZZ_ROUTES_ROUTERS", ROUTERS) == 1 {
        eprintln!("the whole router:\n{app}");
    }
    let fails = |app: &App| send(runtime, app, &build(app), sent).is_err();
    let app = shrink::shrink(app, fails);
    let problem = match send(runtime, &app, &build(&app), sent) {
        Err(problem) => problem,
        // The failure depends on an earlier request.
        Ok(_) => problem.to_owned(),
    };
    let (method, uri) = (sent.method, &sent.uri);
    format!("seed {seed}: {method} {uri}\n  {problem}\n{app}")
}

fn number(variable: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(variable) else {
        return default;
    };
    let number = text.parse().ok();
    number.unwrap_or_else(|| panic!("invalid {variable} {text:?}: expected a whole number"))
}

/// How many routers the ordinary test has.
const ROUTERS: u64 = 40;

/// How many failures are printed; the others are only counted.
const PRINTED: u64 = 8;

#[test]
fn every_rule_of_a_handler_that_ran_was_charged() {
    let seed = number("FUZZ_ROUTES_SEED", 1);
    let routers = number("FUZZ_ROUTES_ROUTERS", ROUTERS);
    let requests = number("FUZZ_ROUTES_REQUESTS", 20_000).div_ceil(routers);
    let next = AtomicU64::new(0);
    let all = Mutex::new((Counts::default(), Vec::new()));
    let work = || {
        let runtime = Builder::new_current_thread().build().unwrap();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= routers {
                return;
            }
            let (counts, failure) = run(&runtime, seed.wrapping_add(index), requests);
            let mut all = all.lock().unwrap();
            all.0.extend(&counts);
            all.1.extend(failure);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let (counts, failures) = all.into_inner().unwrap();
    eprintln!("{counts:#?}");
    let printed = usize::try_from(number("FUZZ_ROUTES_PRINTED", PRINTED)).unwrap();
    let mut text = String::new();
    for failure in failures.iter().take(printed) {
        _ = writeln!(text, "\n{failure}");
    }
    assert!(
        failures.is_empty(),
        "{} of {routers} routers fail:\n{text}",
        failures.len()
    );
    // One router may have few handlers that lie behind the layer.
    if routers < ROUTERS {
        return;
    }
    let share = |part: u64| part * 100 / counts.requests;
    assert!(share(counts.charged) >= 40, "{counts:?}");
    assert!(share(counts.odd) >= 30, "{counts:?}");
    assert!(share(counts.rejected) <= 25, "{counts:?}");
    assert!(share(counts.hidden + counts.shifted) < 1, "{counts:?}");
}

/// Checks that the generator still produces every kind of router.
#[test]
fn generated_routers_have_every_shape() {
    let apps: Vec<String> = (0..400)
        .map(|seed| generate::app(seed).to_string())
        .collect();
    for part in [
        "layer: Inside\n",
        "layer: OnRoutes",
        "layer: Outside\n",
        "layer: OutsideNormalized(Trim)",
        "layer: OutsideNormalized(Append)",
        "layer: NormalizedOutside(Trim)",
        "layer: NormalizedOutside(Append)",
        "layer: NormalizedInside(Trim)",
        "layer: NormalizedInside(Append)",
        "layer: BehindFallback",
        "layer: InMounts",
        "layer: AroundMounts",
        "decode: Some(Path)",
        "decode: Some(Segments)",
        "slashes: Some(All)",
        "dots: true",
        "backslashes: true",
        " route /",
        " route_service /",
        " route_service /{*rest}: NormalizePath::Trim",
        " nest /",
        " merge:",
        " fallback:",
        // A router in a router, a mount in a mount.
        "      nest /",
        ": router\n      nest_service ",
        "nest_service /{p",
        "/u_{p",
        "/{{x}}",
        "/{*p",
        "GET /",
        ": exempt",
        "without the global rule",
    ] {
        let found = apps.iter().filter(|app| app.contains(part)).count();
        assert!(
            found >= 3,
            "{found} of {} routers have {part:?}",
            apps.len()
        );
    }
}
