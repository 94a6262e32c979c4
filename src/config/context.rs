//! What a file refers to and does not contain: variables of the environment, and files of keys.

use std::collections::BTreeMap;
#[cfg(feature = "jwt")]
use std::ffi::OsStr;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Clone)]
pub(super) struct ReadContext {
    /// Instead of those of the process.
    pub(super) variables: Option<BTreeMap<OsString, OsString>>,
    /// The directory that paths in the file start from.
    pub(super) base: PathBuf,
    /// Whether secrets and keys are looked for.
    pub(super) with_keys: bool,
}

impl ReadContext {
    pub(super) const fn new(base: PathBuf) -> Self {
        Self {
            variables: None,
            base,
            with_keys: true,
        }
    }

    #[cfg(feature = "jwt")]
    pub(super) fn variable(&self, name: &str) -> Option<OsString> {
        match &self.variables {
            Some(variables) => variables.get(OsStr::new(name)).cloned(),
            None => std::env::var_os(name),
        }
    }

    /// All of them, by name.
    pub(super) fn variables(&self) -> BTreeMap<OsString, OsString> {
        match &self.variables {
            Some(variables) => variables.clone(),
            None => std::env::vars_os().collect(),
        }
    }
}
