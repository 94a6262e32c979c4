//! A policy file that is read again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use super::source::{fingerprint_of, read_bytes};
use super::{Config, ConfigError, Source};
use crate::error::ReloadError;
use crate::pipeline::{Change, Contents, Origin};
use crate::sync::locked;

/// The file of a policy, and the files with keys that it names.
#[derive(Debug)]
pub(super) struct PolicyFile {
    source: Source,
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
        let path = config.source.path()?;
        let files = with_keys(path, &config.key_files);
        let mut contents = contents_of(&files);
        // It may have been written since.
        if let Some(Some(fingerprint)) = contents.0.first_mut() {
            *fingerprint = config.fingerprint;
        }
        Some(Self {
            source: config.source.clone(),
            read: Mutex::new(Read { files, contents }),
        })
    }

    fn last(&self) -> MutexGuard<'_, Read> {
        locked(&self.read)
    }

    /// A pipe that was put in the place of the file would be waited for, and everybody else
    /// with it.
    fn refuse_pipes(&self) -> Result<(), ReloadError> {
        let about = self.source.path().and_then(|path| fs::metadata(path).ok());
        match about {
            Some(about) if !about.is_file() && !about.is_dir() => {
                let name = self.source.name();
                Err(ReloadError::new(format!(
                    "{name} is no file any more, but a pipe or a device"
                )))
            }
            _ => Ok(()),
        }
    }

    fn read_once(&self) -> Result<Config, ConfigError> {
        // Before it is read, so that what is written in the meantime is another change.
        let contents = self.contents();
        self.last().contents = contents;
        self.source.read()
    }

    /// Whether it names other files than before. Those count from now on, also if something is
    /// wrong: a key that is not there yet is awaited.
    fn names_others(&self, read: &Result<Config, ConfigError>) -> bool {
        let keys = match read {
            Ok(config) => Some(&*config.key_files),
            Err(error) => error.key_files(),
        };
        let (Some(keys), Some(path)) = (keys, self.source.path()) else {
            return false;
        };
        let files = with_keys(path, keys);
        let mut last = self.last();
        let others = last.files != files;
        last.files = files;
        others
    }
}

impl Origin for PolicyFile {
    fn read(&self) -> Result<Change, ReloadError> {
        self.refuse_pipes()?;
        let mut read = self.read_once();
        // What is in the others has to be known before they are read, too.
        if self.names_others(&read) {
            read = self.read_once();
        }
        let config = read.map_err(|error| ReloadError::new(error.to_string()))?;
        Ok(config.into_change())
    }

    fn files(&self) -> Vec<PathBuf> {
        self.last().files.clone()
    }

    fn contents(&self) -> Contents {
        contents_of(&self.files())
    }

    fn contents_when_read(&self) -> Contents {
        self.last().contents.clone()
    }
}

fn with_keys(path: &Path, keys: &[PathBuf]) -> Vec<PathBuf> {
    let mut files = vec![path.to_owned()];
    files.extend_from_slice(keys);
    files
}

/// Of what is no file, but a pipe or a device, nothing: to look into it would be to take it away,
/// or to wait for ever.
fn contents_of(files: &[PathBuf]) -> Contents {
    let contents = |path: &PathBuf| {
        let is_file = fs::metadata(path).is_ok_and(|about| about.is_file());
        let bytes = is_file.then(|| read_bytes(path).ok())??;
        Some(fingerprint_of(&bytes))
    };
    Contents(files.iter().map(contents).collect())
}
