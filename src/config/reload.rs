//! Reload of a policy file.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use super::read_file::read_regular_file;
use super::source::fingerprint_of;
use super::{Config, ConfigError, Source};
use crate::error::ReloadError;
use crate::pipeline::{Change, Contents, Origin};
use crate::sync::locked;

/// A policy file and the key files that it names.
#[derive(Debug)]
pub(super) struct PolicyFile {
    source: Source,
    read: Mutex<Read>,
}

/// Files and contents of the last read.
#[derive(Clone, Debug)]
struct Read {
    files: Vec<PathBuf>,
    contents: Contents,
}

impl PolicyFile {
    /// Returns the file of a configuration; `None` if it was read from a text.
    pub(super) fn of(config: &Config) -> Option<Self> {
        let path = config.source.path()?;
        let files = with_keys(path, &config.key_files);
        let mut contents = contents_of(&files);
        // The file may have been written since it was read.
        if let Some(first) = contents.0.first_mut() {
            *first = Ok(config.fingerprint);
        }
        Some(Self {
            source: config.source.clone(),
            read: Mutex::new(Read { files, contents }),
        })
    }

    fn last(&self) -> MutexGuard<'_, Read> {
        locked(&self.read)
    }

    fn read_once(&self) -> Result<Config, ConfigError> {
        // Taken before the file is read, so that a write in the meantime is another change.
        let contents = self.contents();
        self.last().contents = contents;
        self.source.read()
    }

    /// Stores the key files that the policy names, also if it has problems: a missing key file may
    /// be created later. Returns whether they have changed.
    fn update_files(&self, read: &Result<Config, ConfigError>) -> bool {
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
        let mut read = self.read_once();
        // The contents of new key files must be known before these are read.
        if self.update_files(&read) {
            read = self.read_once();
        }
        let config = read.map_err(|error| ReloadError::new(error.to_string()))?;
        Ok(config.into_change())
    }

    fn read_if(&self, contents: &Contents) -> Option<Result<Change, ReloadError>> {
        let before = self.last().clone();
        let is_same = || contents_of(&before.files) == *contents;
        // Compared again after the read: a write may have begun in between.
        let read = is_same().then(|| Origin::read(self));
        if read.is_some() && is_same() {
            return read;
        }
        *self.last() = before;
        None
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

fn contents_of(files: &[PathBuf]) -> Contents {
    let contents = |path: &PathBuf| {
        let bytes = read_regular_file(path).map_err(|error| error.to_string())?;
        Ok(fingerprint_of(&bytes))
    };
    Contents(files.iter().map(contents).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A write may begin after the watch has found a file unchanged, and before the file is read. Then half
    /// of the new file was loaded.
    #[test]
    fn file_that_changes_before_it_is_read_is_not_loaded() {
        let directory = std::env::temp_dir().join(format!("tollgate-if-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("limits.toml");
        let write = |limit: &str| fs::write(&path, format!("[global]\nanonymous = \"{limit}\"\n"));
        write("10/hour").unwrap();
        let file = PolicyFile::of(&Config::from_file(&path).unwrap()).unwrap();
        let read = file.contents_when_read();
        write("20/hour").unwrap();
        let found = file.contents();
        write("30/hour").unwrap();
        assert!(file.read_if(&found).is_none());
        // It still counts as a change.
        assert_eq!(file.contents_when_read(), read);
        let found = file.contents();
        assert!(file.read_if(&found).is_some_and(|read| read.is_ok()));
        assert_eq!(file.contents_when_read(), found);
        fs::remove_dir_all(&directory).unwrap();
    }
}
