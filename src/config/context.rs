//! Environment variables and key files that a policy file refers to.

use std::collections::BTreeMap;
#[cfg(feature = "jwt")]
use std::ffi::OsStr;
use std::ffi::OsString;
use std::path::PathBuf;

/// Environment of a policy file while it is read.
#[derive(Clone)]
pub(super) struct ReadContext {
    /// Variables that replace those of the process.
    pub(super) variables: Option<BTreeMap<OsString, OsString>>,
    /// Directory that relative paths in the file start from.
    pub(super) base: PathBuf,
    /// Whether secrets and keys are read.
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

    /// Returns all variables, sorted by name.
    pub(super) fn variables(&self) -> BTreeMap<OsString, OsString> {
        match &self.variables {
            Some(variables) => variables.clone(),
            None => std::env::vars_os().collect(),
        }
    }
}
