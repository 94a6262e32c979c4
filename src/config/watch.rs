//! Reads a policy again when its file has changed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::error::ReloadError;
use crate::layer::RateLimitLayer;
use crate::pipeline::{Origin, RequestPipeline};

/// How often the files are looked at, whatever the system says of them: not every file system
/// tells of changes, and a directory may go away and come back.
const LOOK_EVERY: Duration = Duration::from_millis(400);

/// A change counts when it has stood still for so long: files are also written in pieces.
const SETTLES_IN: Duration = Duration::from_millis(25);

/// A file that is gone is given so much time to come back: some editors take the old one away
/// before they put the new one in its place.
const GONE_FOR: Duration = Duration::from_secs(1);

impl RateLimitLayer {
    /// From now on, reads the policy again whenever its file changes: also if the file is
    /// replaced, by an editor, by a rename, or by the swap of a symbolic link, as with a
    /// `ConfigMap` of Kubernetes. Files with keys that it names are watched as well.
    ///
    /// A file that is wrong changes nothing, and is told of in the log, by
    /// [`policy_status`](Self::policy_status), and as soon as it is right it is taken.
    ///
    /// It has a thread of its own, which ends with the layer and its services.
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
        let watch = Watch::new(Arc::downgrade(pipeline), origin);
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

struct Watch {
    pipeline: Weak<RequestPipeline>,
    origin: Arc<dyn Origin>,
    told: Receiver<()>,
    /// None where the system tells nothing.
    watcher: Option<RecommendedWatcher>,
    watched: BTreeSet<PathBuf>,
}

impl Watch {
    fn new(pipeline: Weak<RequestPipeline>, origin: Arc<dyn Origin>) -> Self {
        // One place is enough: who has been told to look need not be told again.
        let (tell, told) = mpsc::sync_channel(1);
        // Which file it was does not matter: what counts is what can be read.
        let watcher = notify::recommended_watcher(move |event| {
            if may_change(&event) {
                let _ = tell.try_send(());
            }
        });
        let mut watch = Self {
            pipeline,
            origin,
            told,
            watcher: watcher.ok(),
            watched: BTreeSet::new(),
        };
        watch.follow();
        watch
    }

    fn run(mut self) {
        loop {
            let Some(pipeline) = self.pipeline.upgrade() else {
                return;
            };
            if self.has_changed() {
                // What is wrong with it is told to those who watch.
                let _ = pipeline.reload();
            }
            drop(pipeline);
            self.follow();
            match self.told.recv_timeout(LOOK_EVERY) {
                // A directory where much happens is not looked at every time.
                Ok(()) => thread::sleep(SETTLES_IN),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => thread::sleep(LOOK_EVERY),
            }
        }
    }

    /// Whether there is something else in the files than when they were last read, by whomever,
    /// once they stand still.
    fn has_changed(&self) -> bool {
        let seen = self.origin.contents_when_read();
        let mut found = self.origin.contents();
        let mut waited = Duration::ZERO;
        while found != seen && waited < GONE_FOR {
            thread::sleep(SETTLES_IN);
            waited += SETTLES_IN;
            // What happened in the meantime has been looked at.
            while self.told.try_recv().is_ok() {}
            let again = self.origin.contents();
            if again == found && again.0.iter().all(Option::is_some) {
                break;
            }
            found = again;
        }
        found != seen
    }

    /// Watches the directories of the files, and of whatever they are links to. Directories,
    /// because a file that is replaced is another one.
    fn follow(&mut self) {
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        let wanted: BTreeSet<PathBuf> = self
            .origin
            .files()
            .iter()
            .flat_map(|file| directories_of(file))
            .collect();
        for gone in self.watched.difference(&wanted) {
            let _ = watcher.unwatch(gone);
        }
        // One that cannot be watched is looked at anyway, a little later.
        let watch = |directory: &&PathBuf| {
            watcher
                .watch(directory, RecursiveMode::NonRecursive)
                .is_ok()
        };
        self.watched = wanted.iter().filter(watch).cloned().collect();
    }
}

/// Whether a file may be another after this. PolicyReader one is no change: whoever watches reads
/// as well, and would be called by what it does itself.
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

/// The directories in which something happens when a file is replaced: its own, and those of
/// the links on the way to it.
fn directories_of(file: &Path) -> Vec<PathBuf> {
    /// More links than this are a circle.
    const MOST_LINKS: usize = 16;

    let mut directories = Vec::new();
    let mut path = file.to_owned();
    for _ in 0..MOST_LINKS {
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        // Where the link to a directory is swapped, its name changes in the one above.
        if let (Ok(_), Some(above)) = (fs::read_link(&parent), parent.parent()) {
            directories.push(above.to_owned());
        }
        let next = fs::read_link(&path).map(|target| parent.join(target));
        directories.push(parent);
        match next {
            Ok(target) => path = target,
            Err(_) => break,
        }
    }
    directories
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::config::reload::PolicyFile;

    /// The thread read the file because it was told to, and was told because it had read: a
    /// service that did nothing kept half a core busy.
    #[test]
    fn looking_is_no_change() {
        let directory = std::env::temp_dir().join(format!("tollgate-look-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("limits.toml");
        fs::write(&path, "[global]\nanonymous = \"10/hour\"\n").unwrap();
        let origin = PolicyFile::of(&Config::from_file(&path).unwrap()).unwrap();
        let watch = Watch::new(Weak::new(), Arc::new(origin));
        for _ in 0..10 {
            assert!(!watch.has_changed());
        }
        let told = watch.told.recv_timeout(Duration::from_millis(200));
        assert_eq!(told, Err(RecvTimeoutError::Timeout));

        fs::write(&path, "[global]\nanonymous = \"20/hour\"\n").unwrap();
        assert_eq!(watch.told.recv_timeout(Duration::from_secs(20)), Ok(()));
        assert!(watch.has_changed());
        fs::remove_dir_all(&directory).unwrap();
    }
}
