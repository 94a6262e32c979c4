//! Captures the log of the current thread.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::util::SubscriberInitExt;

/// Text of the captured events.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

/// Guard: events of this thread are captured until it is dropped.
pub(crate) struct Listening {
    _here: DefaultGuard,
    _another: Dispatch,
}

impl Log {
    pub(crate) fn listen() -> (Self, Listening) {
        // While there is only one subscriber, an event that first happens in another thread is
        // switched off for all of them.
        let another = Dispatch::new(NoSubscriber::default());
        let log = Self::default();
        let writer = log.clone();
        let here = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::DEBUG)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish()
            .set_default();
        let listening = Listening {
            _here: here,
            _another: another,
        };
        (log, listening)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// Returns the lines that contain `what`.
    pub(crate) fn about(&self, what: &str) -> Vec<String> {
        let text = self.text();
        let lines = text.lines().filter(|line| line.contains(what));
        lines.map(str::to_owned).collect()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
