//! Watch of the policy file.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, ModifyKind, RenameMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::error::ReloadError;
use crate::layer::RateLimitLayer;
use crate::pipeline::{Origin, RequestPipeline};
use crate::sync::locked;

/// Interval at which the files are compared even without an event: not every file system sends
/// events, and a watched directory may be replaced.
const POLL_INTERVAL: Duration = Duration::from_millis(400);

/// Interval at which a changed file is compared until it is loaded.
const SETTLE_INTERVAL: Duration = Duration::from_millis(25);

/// A file that was written in place, or is missing, is loaded or reported after it was unchanged
/// for this long. Programs write files in pieces, and some editors remove a file before they write
/// it again.
const UNCHANGED_FOR: Duration = Duration::from_secs(1);

/// Longest wait for a file that keeps changing, before the thread checks whether the layer still
/// exists.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

impl RateLimitLayer {
    /// Watches the policy file, and reloads it when it changes.
    ///
    /// - A file that is replaced by a rename, or by the swap of a symbolic link as in a
    ///   Kubernetes `ConfigMap`, is loaded at once. Prefer this: a rename is atomic.
    /// - A file that is written in place is loaded once it was unchanged for one second, because
    ///   it may be written in pieces.
    ///
    /// Key files that the policy names are watched as well. A file with problems changes nothing;
    /// the problems are logged and returned by [`policy_status`](Self::policy_status).
    ///
    /// The watch has a thread of its own, which ends with the layer and its services.
    ///
    /// ```no_run
    /// use tollgate::RateLimitLayer;
    ///
    /// let limits = RateLimitLayer::from_file("limits.toml")?;
    /// limits.watch()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn watch(&self) -> Result<(), ReloadError> {
        let pipeline = self.pipeline();
        let Some(origin) = pipeline.begin_watching()? else {
            return Ok(());
        };
        let watch = FileWatch::new(Arc::downgrade(pipeline), origin);
        thread::Builder::new()
            .name("tollgate-watch".to_owned())
            .spawn(move || watch.run())
            .map_err(|error| {
                pipeline.end_watching();
                ReloadError::new(format!("cannot watch the policy file: {error}"))
            })?;
        Ok(())
    }
}

struct FileWatch {
    pipeline: Weak<RequestPipeline>,
    origin: Arc<dyn Origin>,
    /// Receives a message after each event that may be a change.
    events: Receiver<()>,
    replaced: Arc<Replaced>,
    /// `None` if the system sends no events.
    watcher: Option<RecommendedWatcher>,
    watched: BTreeSet<PathBuf>,
}

/// Whether a watched file, or a link to it, was replaced by a rename.
#[derive(Debug, Default)]
struct Replaced {
    /// Names of the files and of the links that lead to them.
    names: Mutex<BTreeSet<OsString>>,
    flag: AtomicBool,
}

impl Replaced {
    fn observe(&self, event: &notify::Result<Event>) {
        let Ok(event) = event else {
            return;
        };
        let kind = EventKind::Modify(ModifyKind::Name(RenameMode::To));
        let both = EventKind::Modify(ModifyKind::Name(RenameMode::Both));
        if event.kind != kind && event.kind != both {
            return;
        }
        // Of two paths, the last is the new name.
        let name = event.paths.last().and_then(|path| path.file_name());
        if name.is_some_and(|name| locked(&self.names).contains(name)) {
            self.flag.store(true, Ordering::SeqCst);
        }
    }

    fn take(&self) -> bool {
        self.flag.swap(false, Ordering::SeqCst)
    }
}

impl FileWatch {
    fn new(pipeline: Weak<RequestPipeline>, origin: Arc<dyn Origin>) -> Self {
        // One message is enough: the thread compares all files.
        let (sender, events) = mpsc::sync_channel(1);
        let replaced = Arc::new(Replaced::default());
        let observer = Arc::clone(&replaced);
        let watcher = notify::recommended_watcher(move |event| {
            if may_change(&event) {
                observer.observe(&event);
                let _ = sender.try_send(());
            }
        });
        let mut watch = Self {
            pipeline,
            origin,
            events,
            replaced,
            watcher: watcher.ok(),
            watched: BTreeSet::new(),
        };
        watch.follow();
        watch
    }

    fn run(mut self) {
        loop {
            let has_changed = self.has_changed();
            let Some(pipeline) = self.pipeline.upgrade() else {
                return;
            };
            if has_changed {
                // Problems are logged, and are part of the status.
                let _ = pipeline.reload();
            }
            drop(pipeline);
            self.follow();
            match self.events.recv_timeout(POLL_INTERVAL) {
                // Limits the work in a directory with many events.
                Ok(()) => thread::sleep(SETTLE_INTERVAL),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => thread::sleep(POLL_INTERVAL),
            }
        }
    }

    /// Returns whether the files differ from what was last read, and are complete: replaced by a
    /// rename, or unchanged for [`UNCHANGED_FOR`].
    fn has_changed(&self) -> bool {
        let mut waited = Duration::ZERO;
        let mut unchanged_for = Duration::ZERO;
        // Taken before the files are read, so that a rename after that is seen in the next round.
        let mut is_replaced = self.replaced.take();
        let mut found = self.origin.contents();
        loop {
            if found == self.origin.contents_when_read() || waited > LONGEST_WAIT {
                return false;
            }
            let is_readable = found.0.iter().all(Result::is_ok);
            if (is_replaced && is_readable) || unchanged_for >= UNCHANGED_FOR {
                return true;
            }
            thread::sleep(SETTLE_INTERVAL);
            waited += SETTLE_INTERVAL;
            while self.events.try_recv().is_ok() {}
            let was_replaced = self.replaced.take();
            let again = self.origin.contents();
            if again == found {
                is_replaced |= was_replaced;
                unchanged_for += SETTLE_INTERVAL;
            } else {
                // A write after the rename: the file is not complete any more.
                is_replaced = was_replaced;
                unchanged_for = Duration::ZERO;
                found = again;
            }
        }
    }

    /// Watches the directories of the files and of the links to them. A watch on the file itself
    /// would end with its replacement.
    fn follow(&mut self) {
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        let ways: Vec<Way> = self
            .origin
            .files()
            .iter()
            .map(|file| Way::to(file))
            .collect();
        let names = ways.iter().flat_map(|way| way.names.iter().cloned());
        *locked(&self.replaced.names) = names.collect();
        let wanted: BTreeSet<PathBuf> = ways.into_iter().flat_map(|way| way.directories).collect();
        for gone in self.watched.difference(&wanted) {
            let _ = watcher.unwatch(gone);
        }
        // Files in a directory that cannot be watched are compared at each interval.
        let watch = |directory: &&PathBuf| {
            watcher
                .watch(directory, RecursiveMode::NonRecursive)
                .is_ok()
        };
        self.watched = wanted.iter().filter(watch).cloned().collect();
    }
}

/// Returns whether a file may differ after this event. Reading a file is no change: the watcher reads
/// it, too, and would trigger itself.
const fn may_change(event: &notify::Result<Event>) -> bool {
    !matches!(
        event,
        Ok(Event {
            kind: EventKind::Access(
                AccessKind::Any
                    | AccessKind::Read
                    | AccessKind::Open(_)
                    | AccessKind::Close(AccessMode::Any | AccessMode::Execute | AccessMode::Read)
                    | AccessKind::Other
            ),
            ..
        })
    )
}

/// How a path leads to a file.
#[derive(Debug, Default)]
struct Way {
    /// Directories in which something happens if the file is replaced: its own, and those of the
    /// links that lead to it.
    directories: Vec<PathBuf>,
    /// Names of the file and of these links.
    names: Vec<OsString>,
}

impl Way {
    fn to(file: &Path) -> Self {
        /// More links than this are a cycle.
        const MOST_LINKS: usize = 16;

        let mut way = Self::default();
        let mut path = file.to_owned();
        for _ in 0..MOST_LINKS {
            way.names.extend(path.file_name().map(OsStr::to_owned));
            let parent = match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
                _ => PathBuf::from("."),
            };
            // The swap of a link to a directory happens in the directory above.
            if let (Ok(_), Some(above)) = (fs::read_link(&parent), parent.parent()) {
                way.names.extend(parent.file_name().map(OsStr::to_owned));
                way.directories.push(above.to_owned());
            }
            let next = fs::read_link(&path).map(|target| parent.join(target));
            way.directories.push(parent);
            match next {
                Ok(target) => path = target,
                Err(_) => break,
            }
        }
        way
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::config::reload::PolicyFile;

    /// The thread once reacted to the events of its own reads, and kept half a core busy.
    #[test]
    fn comparing_files_causes_no_event() {
        let directory = std::env::temp_dir().join(format!("tollgate-look-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("limits.toml");
        fs::write(&path, "[global]\nanonymous = \"10/hour\"\n").unwrap();
        let origin = PolicyFile::of(&Config::from_file(&path).unwrap()).unwrap();
        let watch = FileWatch::new(Weak::new(), Arc::new(origin));
        for _ in 0..10 {
            assert!(!watch.has_changed());
        }
        let event = watch.events.recv_timeout(Duration::from_millis(200));
        assert_eq!(event, Err(RecvTimeoutError::Timeout));

        fs::write(&path, "[global]\nanonymous = \"20/hour\"\n").unwrap();
        assert_eq!(watch.events.recv_timeout(Duration::from_secs(20)), Ok(()));
        assert!(watch.has_changed());
        fs::remove_dir_all(&directory).unwrap();
    }
}
