//! Which rows there are.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tollgate_bench::{Args, Duel, Report, Row, Target, median, turns};

use crate::ceiling::Ceiling;
use crate::hot::Hot;
use crate::load::Load;
use crate::ours::Ours;
use crate::server::Server;
use crate::theirs::barnacle::Barnacle;
use crate::theirs::tower_rate_tier::TowerRateTier;

/// Every row is the median of so many rounds, of so much time each.
const ROUNDS: usize = 5;
const TIME: Duration = Duration::from_secs(1);

const SLIDING: &str = "1000000/day";
const FIXED: &str = "1000000000/day, fixed-window";
/// As large as theirs is, so that none is denied.
const TOKEN: &str = "1000000/second, token-bucket";

pub fn all(args: &Args, report: &mut Report) -> io::Result<()> {
    // One thread, because `redis-benchmark` has one, and a core is left for the server.
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let server = Server::start();
    let bench = Bench {
        runtime: &runtime,
        server: &server,
    };
    bench.against_the_ceiling(args, report)?;
    bench.against_others(args, report)?;
    bench.without_asking(args, report)?;
    bytes(args, report, &runtime)?;
    report.note(
        "redis-benchmark makes the very call that we make for one decision, on 10 000 keys, with as \
         many calls under way as there are tasks. It does nothing else: it makes no keys, and does \
         not read the answers.",
    );
    report.note(
        "…/server and …/client are what one decision costs the server and the client, in \
         microseconds of a processor: that hardly depends on what else the machine does. The one \
         that costs more is what all others wait for.",
    );
    Ok(())
}

struct Bench<'a> {
    runtime: &'a Runtime,
    server: &'a Server,
}

impl Bench<'_> {
    fn against_the_ceiling(&self, args: &Args, report: &mut Report) -> io::Result<()> {
        for (id, tasks, coalescing, at_most) in [
            ("exact/64", 64, false, 1.176),
            ("exact/256", 256, false, 1.176),
            ("coalesced/256", 256, true, 0.5),
        ] {
            if !args.wants(id) {
                continue;
            }
            let ours = Ours::new(self.server, self.runtime, SLIDING, coalescing);
            self.server.forget_scripts();
            let mut monitor = self.server.monitor();
            self.runtime.block_on(ours.decide(0));
            let ceiling = Ceiling::new(self.server, &monitor.next_call());
            drop(monitor);
            let expected = ceiling.run(tasks, TIME, 20_000.0).rate;
            let duel = Loads::of(
                || ours.run(self.server, self.runtime, tasks, TIME),
                || ceiling.run(tasks, TIME, expected),
            );
            let target = Target {
                at_most,
                stretch: None,
            };
            duel.report(report, id, "redis-benchmark", Some(target))?;
        }
        Ok(())
    }

    /// One counter with the algorithm of the other library.
    fn against_others(&self, args: &Args, report: &mut Report) -> io::Result<()> {
        for (id, tasks, coalescing) in [("exact/64", 64, false), ("coalesced/256", 256, true)] {
            if !args.wants(id) {
                continue;
            }
            let ours = Ours::new(self.server, self.runtime, FIXED, coalescing);
            let barnacle = Barnacle::new(self.server);
            let duel = Loads::of(
                || ours.run(self.server, self.runtime, tasks, TIME),
                || barnacle.run(self.server, self.runtime, tasks, TIME),
            );
            duel.report(report, id, "barnacle-rs", None)?;
            let ours = Ours::new(self.server, self.runtime, TOKEN, coalescing);
            let tier = TowerRateTier::new(self.server, self.runtime);
            let duel = Loads::of(
                || ours.run(self.server, self.runtime, tasks, TIME),
                || tier.run(self.server, self.runtime, tasks, TIME),
            );
            duel.report(report, id, "tower-rate-tier", None)?;
        }
        Ok(())
    }

    /// Stores around the store, which spare it most calls or all of them.
    fn without_asking(&self, args: &Args, report: &mut Report) -> io::Result<()> {
        let (server, runtime) = (self.server, self.runtime);
        if args.wants("deny-cache/attack") {
            let denied = Hot::denied(server, runtime);
            let memory = Hot::denied_by_memory(runtime);
            let duel = Loads::of(
                || denied.run(server, runtime, 64, TIME),
                || memory.run(server, runtime, 64, TIME),
            );
            duel.report(report, "deny-cache/attack", "MemoryStore", None)?;
            let asking = Hot::bare(server, runtime, "1/day");
            let duel = Loads::of(
                || denied.run(server, runtime, 64, TIME),
                || asking.run(server, runtime, 64, TIME),
            );
            duel.report(report, "deny-cache/attack", "one call each", None)?;
        }
        if args.wants("lease100/hot") {
            let leased = Hot::leased(server, runtime, FIXED, 100);
            let bare = Hot::bare(server, runtime, FIXED);
            let duel = Loads::of(
                || leased.run(server, runtime, 64, TIME),
                || bare.run(server, runtime, 64, TIME),
            );
            let target = Target {
                at_most: 0.05,
                stretch: None,
            };
            duel.report(report, "lease100/hot", "one call each", Some(target))?;
        }
        Ok(())
    }
}

/// What both sides came to, round by round.
struct Loads {
    ours: Vec<Load>,
    theirs: Vec<Load>,
}

impl Loads {
    fn of(ours: impl FnMut() -> Load, theirs: impl FnMut() -> Load) -> Self {
        let mut sides: [Box<dyn FnMut() -> Load + '_>; 2] = [Box::new(ours), Box::new(theirs)];
        let mut loads = turns(ROUNDS, &mut sides).into_iter();
        Self {
            ours: loads.next().unwrap_or_default(),
            theirs: loads.next().unwrap_or_default(),
        }
    }

    fn duel(&self, what: impl Fn(&Load) -> f64) -> Duel {
        Duel {
            ours: median(self.ours.iter().map(&what).collect()),
            theirs: median(self.theirs.iter().map(&what).collect()),
        }
    }

    fn report(
        &self,
        report: &mut Report,
        id: &str,
        peer: &'static str,
        target: Option<Target>,
    ) -> io::Result<()> {
        let rates = self.duel(|load| load.rate);
        report.add(Row::of_rates(id, peer, "/s", rates).with_target(target))?;
        for (name, duel) in [
            ("p50", self.duel(|load| load.p50)),
            ("p99", self.duel(|load| load.p99)),
            ("server", self.duel(|load| load.server)),
            ("client", self.duel(|load| load.client)),
        ] {
            report.add(Row::new(&format!("{id}/{name}"), peer, "µs", duel))?;
        }
        Ok(())
    }
}

/// What a counter weighs in the server, its key and all.
fn bytes(args: &Args, report: &mut Report, runtime: &Runtime) -> io::Result<()> {
    if !args.wants("bytes/counter") {
        return Ok(());
    }
    let weigh = |call: &dyn Fn(&Server)| {
        let server = Server::start();
        call(&server);
        server.number(&format!("MEMORY USAGE {}", server.any_key())) as f64
    };
    let moment = Duration::from_millis(100);
    let ours = |quota: &'static str| {
        weigh(&|server| {
            Ours::new(server, runtime, quota, true);
        })
    };
    let barnacle = weigh(&|server| {
        Barnacle::new(server).run(server, runtime, 1, moment);
    });
    let tier = weigh(&|server| {
        TowerRateTier::new(server, runtime).decide_slowly(runtime);
    });
    for (peer, ours, theirs) in [
        ("barnacle-rs", ours(FIXED), barnacle),
        ("tower-rate-tier", ours(TOKEN), tier),
    ] {
        let duel = Duel { ours, theirs };
        report.add(Row::new("bytes/counter", peer, "bytes", duel))?;
    }
    Ok(())
}
