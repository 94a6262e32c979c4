//! Reading of policy files and key files.

use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::Path;

/// Maximum size of a policy or of a key file in bytes. Ten thousand endpoints take about 1 MiB.
pub(super) const MAX_LENGTH: u64 = 8 << 20;

/// Why a file cannot be read.
#[derive(Debug)]
pub(super) enum FileError {
    /// A pipe, a socket or a device.
    Special,
    Io(io::Error),
}

impl FileError {
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }

    pub(super) fn is_too_long(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::FileTooLarge)
    }

    /// Returns what to do, if the message does not name it.
    pub(super) fn help(&self) -> Option<String> {
        let is_special = matches!(self, Self::Special);
        is_special.then(|| "write the contents to a regular file, and name that file".to_owned())
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = match self {
            Self::Special => return f.write_str("the path is a pipe, a socket or a device"),
            Self::Io(error) => error,
        };
        match error.kind() {
            io::ErrorKind::NotFound => f.write_str("file not found"),
            io::ErrorKind::IsADirectory => f.write_str("the path is a directory"),
            io::ErrorKind::FileTooLarge => write!(f, "more than {} MiB", MAX_LENGTH >> 20),
            io::ErrorKind::PermissionDenied => f.write_str("permission denied"),
            _ => write!(f, "the file cannot be read: {error}"),
        }
    }
}

/// Reads a regular file of at most [`MAX_LENGTH`] bytes.
///
/// The kind of the file is checked before it is opened. To open a pipe blocks until a process writes to
/// it, and a reload that blocks blocks every later one and the end of the process. To read a pipe or a
/// device takes the data from another reader.
pub(super) fn read_regular_file(path: &Path) -> Result<Vec<u8>, FileError> {
    require_regular(&fs::metadata(path)?)?;
    let file = File::open(path)?;
    // The path may lead to another file since.
    require_regular(&file.metadata()?)?;
    let mut bytes = Vec::new();
    file.take(MAX_LENGTH + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_LENGTH {
        return Err(FileError::Io(io::ErrorKind::FileTooLarge.into()));
    }
    Ok(bytes)
}

fn require_regular(about: &Metadata) -> Result<(), FileError> {
    if about.is_file() {
        Ok(())
    } else if about.is_dir() {
        Err(FileError::Io(io::ErrorKind::IsADirectory.into()))
    } else {
        Err(FileError::Special)
    }
}
