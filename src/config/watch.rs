//! Watch of the policy file.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, ModifyKind, RenameMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::error::ReloadError;
use crate::layer::RateLimitLayer;
use crate::pipeline::{Contents, Origin, RequestPipeline};
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
    ///   Kubernetes `ConfigMap`, is loaded at once where the system reports it
    ///   as one (Linux, Windows), else after a second. Prefer this: a rename is atomic.
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
    renamed: Arc<Renamed>,
    /// How paths lead to the files, in the order of the files.
    paths: Vec<LinkedPath>,
    /// `None` if the system sends no events.
    watcher: Option<RecommendedWatcher>,
    watched: BTreeSet<PathBuf>,
}

/// New names of renames since the last check: of files, and of links to them.
#[derive(Debug, Default)]
struct Renamed(Mutex<BTreeSet<OsString>>);

impl Renamed {
    /// Names that are kept. If there are more, a file counts as written in place.
    const CAPACITY: usize = 1_000;

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
        if let Some(name) = event.paths.last().and_then(|path| path.file_name()) {
            let mut names = locked(&self.0);
            if names.len() < Self::CAPACITY {
                names.insert(name.to_owned());
            }
        }
    }

    fn take(&self) -> BTreeSet<OsString> {
        std::mem::take(&mut locked(&self.0))
    }
}

/// A file that differs from what was last read, until it is complete.
#[derive(Clone, Copy, Debug, Default)]
struct Settling {
    is_replaced: bool,
    unchanged_for: Duration,
}

impl FileWatch {
    fn new(pipeline: Weak<RequestPipeline>, origin: Arc<dyn Origin>) -> Self {
        // One message is enough: the thread compares all files.
        let (sender, events) = mpsc::sync_channel(1);
        let renamed = Arc::new(Renamed::default());
        let observer = Arc::clone(&renamed);
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
            renamed,
            paths: Vec::new(),
            watcher: watcher.ok(),
            watched: BTreeSet::new(),
        };
        watch.watch_directories();
        watch
    }

    fn run(mut self) {
        loop {
            let changed = self.changed();
            let Some(pipeline) = self.pipeline.upgrade() else {
                return;
            };
            if let Some(contents) = changed {
                pipeline.reload_if(&contents);
            }
            drop(pipeline);
            self.watch_directories();
            match self.events.recv_timeout(POLL_INTERVAL) {
                // Limits the work in a directory with many events.
                Ok(()) => thread::sleep(SETTLE_INTERVAL),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => thread::sleep(POLL_INTERVAL),
            }
        }
    }

    /// Returns the contents of the files if they differ from what was last read, and each file that differs
    /// is complete: replaced by a rename, or unchanged for [`UNCHANGED_FOR`].
    fn changed(&self) -> Option<Contents> {
        let mut waited = Duration::ZERO;
        // Taken before the files are read, so that a rename after that is seen in the next round.
        let mut renamed = self.renamed.take();
        let mut found = self.origin.contents();
        let mut files = vec![Settling::default(); found.0.len()];
        loop {
            let read = self.origin.contents_when_read();
            if found == read || waited > LONGEST_WAIT {
                return None;
            }
            let mut is_complete = true;
            for (index, file) in files.iter_mut().enumerate() {
                file.is_replaced |= self.is_renamed(index, &renamed);
                let is_readable = found.0[index].is_ok();
                is_complete &= found.0.get(index) == read.0.get(index)
                    || file.is_replaced && is_readable
                    || file.unchanged_for >= UNCHANGED_FOR;
            }
            if is_complete {
                return Some(found);
            }
            thread::sleep(SETTLE_INTERVAL);
            waited += SETTLE_INTERVAL;
            while self.events.try_recv().is_ok() {}
            renamed = self.renamed.take();
            let again = self.origin.contents();
            if again.0.len() != files.len() {
                // Another thread has read a policy with other key files.
                return None;
            }
            for (index, file) in files.iter_mut().enumerate() {
                if again.0[index] == found.0[index] {
                    file.unchanged_for += SETTLE_INTERVAL;
                } else {
                    // A write after the rename: the file is not complete any more.
                    *file = Settling::default();
                }
            }
            found = again;
        }
    }

    /// Returns whether the file, or a link that leads to it, has one of these names.
    fn is_renamed(&self, index: usize, names: &BTreeSet<OsString>) -> bool {
        let linked = self.paths.get(index);
        linked.is_some_and(|linked| linked.names.iter().any(|name| names.contains(name)))
    }

    /// Watches the directories of the files and of the links to them. A watch on the file itself
    /// would end with its replacement.
    fn watch_directories(&mut self) {
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        let files = self.origin.files();
        self.paths = files.iter().map(|file| LinkedPath::to(file)).collect();
        let directories = self
            .paths
            .iter()
            .flat_map(|linked| linked.directories.iter());
        let wanted: BTreeSet<PathBuf> = directories.cloned().collect();
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
struct LinkedPath {
    /// Directories in which something happens if the file is replaced: its own, and those of the
    /// links that lead to it.
    directories: Vec<PathBuf>,
    /// Names of the file and of these links.
    names: Vec<OsString>,
}

impl LinkedPath {
    fn to(file: &Path) -> Self {
        /// More links than this are a cycle.
        const MOST_LINKS: usize = 16;

        let mut linked = Self::default();
        let mut path = file.to_owned();
        for _ in 0..MOST_LINKS {
            linked.names.extend(path.file_name().map(OsStr::to_owned));
            let parent = match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
                _ => PathBuf::from("."),
            };
            // The swap of a link to a directory happens in the directory above.
            if let (Ok(_), Some(above)) = (fs::read_link(&parent), parent.parent()) {
                linked.names.extend(parent.file_name().map(OsStr::to_owned));
                linked.directories.push(above.to_owned());
            }
            let next = fs::read_link(&path).map(|target| parent.join(target));
            linked.directories.push(parent);
            match next {
                Ok(target) => path = target,
                Err(_) => break,
            }
        }
        linked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::config::reload::PolicyFile;

    /// Bug: the thread reacted to the events of its own reads, and used half a core.
    #[test]
    fn comparing_files_causes_no_event() {
        let directory = std::env::temp_dir().join(format!("tollgate-look-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("limits.toml");
        fs::write(&path, "[global]\nanonymous = \"10/hour\"\n").unwrap();
        let origin = PolicyFile::of(&Config::from_file(&path).unwrap()).unwrap();
        let watch = FileWatch::new(Weak::new(), Arc::new(origin));
        for _ in 0..10 {
            assert_eq!(watch.changed(), None);
        }
        let event = watch.events.recv_timeout(Duration::from_millis(200));
        assert_eq!(event, Err(RecvTimeoutError::Timeout));

        fs::write(&path, "[global]\nanonymous = \"20/hour\"\n").unwrap();
        assert_eq!(watch.events.recv_timeout(Duration::from_secs(20)), Ok(()));
        assert!(watch.changed().is_some());
        fs::remove_dir_all(&directory).unwrap();
    }
}
