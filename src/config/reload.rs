//! A policy file that is read again.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Config, Source};
use crate::error::ReloadError;
use crate::gate::{Change, Contents, Origin};

/// The file of a policy, and the files with keys that it names.
#[derive(Debug)]
pub(super) struct PolicyFile {
    source: Source,
    hasher: RandomState,
    read: Mutex<Read>,
}

/// What was read the last time.
#[derive(Clone, Debug)]
struct Read {
    files: Vec<PathBuf>,
    contents: Contents,
}

impl PolicyFile {
    /// What this was read from, unless that is a text, which stays what it is.
    pub(super) fn of(config: &Config) -> Option<Self> {
        config.source.path()?;
        let file = Self {
            source: config.source.clone(),
            hasher: RandomState::new(),
            read: Mutex::new(Read {
                files: config.files(),
                contents: Contents::default(),
            }),
        };
        let contents = file.contents();
        file.last().contents = contents;
        Some(file)
    }

    fn last(&self) -> MutexGuard<'_, Read> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Origin for PolicyFile {
    fn read(&self) -> Result<Change, ReloadError> {
        // Before it is read, so that what is written in the meantime is another change.
        let contents = self.contents();
        self.last().contents = contents;
        let config = self.source.read();
        let config = config.map_err(|error| ReloadError::new(error.to_string()))?;
        let files = config.files();
        if self.last().files != files {
            self.last().files = files;
            let contents = self.contents();
            self.last().contents = contents;
        }
        Ok(config.into_change())
    }

    fn files(&self) -> Vec<PathBuf> {
        self.last().files.clone()
    }

    fn contents(&self) -> Contents {
        let contents = |path: PathBuf| {
            let bytes = fs::read(path).ok()?;
            Some(self.hasher.hash_one(bytes))
        };
        Contents(self.files().into_iter().map(contents).collect())
    }

    fn contents_when_read(&self) -> Contents {
        self.last().contents.clone()
    }
}
