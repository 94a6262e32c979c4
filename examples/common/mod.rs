//! What all examples do alike: settings from the environment, a port, an end.

use std::env;
use std::io::{self, Write};
use std::process;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::sleep;

/// An environment variable, or its default. One that `read` makes nothing of ends the program.
pub(crate) fn setting<T>(
    name: &str,
    default: &str,
    allowed: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> T {
    let value = env::var_os(name).unwrap_or_else(|| default.into());
    let setting = value.to_str().and_then(read);
    setting.unwrap_or_else(|| refuse(name, &value.to_string_lossy(), allowed))
}

/// Ends the program because of a setting. One that is a secret is not told: what a program says
/// when it ends is kept in logs.
pub(crate) fn refuse(name: &str, value: &str, reason: &str) -> ! {
    let is_secret = name.ends_with("_SECRET") || name.ends_with("_TOKEN");
    let value = if is_secret { "…" } else { value };
    eprintln!("{name}={value:?} cannot be used. Allowed: {reason}.");
    process::exit(2)
}

/// Listens where `PORT` says, and tells what the server should wait for before it stops.
///
/// Signals are caught before the address is told, so that whoever reads it can end the program
/// at once.
pub(crate) async fn listen() -> (TcpListener, impl Future<Output = ()> + Send + 'static) {
    const ALLOWED: &str = "a number from 0 to 65535, where 0 is any free port";
    let port: u16 = setting("PORT", "3000", ALLOWED, |text| text.parse().ok());
    let stopped = stopped();
    let listener = TcpListener::bind(("127.0.0.1", port)).await;
    match listener.and_then(|listener| Ok((listener.local_addr()?, listener))) {
        Ok((address, listener)) => {
            say(&format!("listening on http://{address}\n"));
            (listener, stopped)
        }
        Err(error) => {
            let reason = format!("{ALLOWED}, and one that can be had ({error})");
            refuse("PORT", &port.to_string(), &reason)
        }
    }
}

/// Prints, and does not mind if nobody reads on.
pub(crate) fn say(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
}

/// SIGTERM or Ctrl-C. What is then still going on has three seconds.
#[cfg(unix)]
fn stopped() -> impl Future<Output = ()> + Send + 'static {
    use tokio::signal::unix::{SignalKind, signal};

    let caught = |kind| signal(kind).expect("signals can be caught");
    let mut terminate = caught(SignalKind::terminate());
    let mut interrupt = caught(SignalKind::interrupt());
    async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        leave_soon();
    }
}

#[cfg(not(unix))]
fn stopped() -> impl Future<Output = ()> + Send + 'static {
    async {
        let _ = tokio::signal::ctrl_c().await;
        leave_soon();
    }
}

fn leave_soon() {
    tokio::spawn(async {
        sleep(Duration::from_secs(3)).await;
        process::exit(0)
    });
}
