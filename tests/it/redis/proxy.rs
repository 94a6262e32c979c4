//! A proxy between a store and its server that simulates network faults.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

/// Forwards bytes, unless a fault is set.
pub(super) struct Proxy {
    address: SocketAddr,
    faults: Arc<Faults>,
}

struct Faults {
    loses_next_decision: AtomicBool,
    /// Delay of replies, in milliseconds.
    delay: AtomicU64,
    /// Whether replies are forwarded byte by byte.
    trickles: AtomicBool,
    connections: AtomicU64,
    /// Connections that are older than the last change of this number are closed.
    cuts: watch::Sender<u64>,
}

impl Proxy {
    pub(super) async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let faults = Arc::new(Faults {
            loses_next_decision: AtomicBool::new(false),
            delay: AtomicU64::new(0),
            trickles: AtomicBool::new(false),
            connections: AtomicU64::new(0),
            cuts: watch::Sender::new(0),
        });
        let shared = Arc::clone(&faults);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let faults = Arc::clone(&shared);
                faults.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    if let Ok(server) = TcpStream::connect(server).await {
                        pass_on(client, server, &faults).await;
                    }
                });
            }
        });
        Self { address, faults }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Forwards the next call of a script, drops its reply and closes its connection.
    pub(super) fn lose_reply_to_next_decision(&self) {
        self.faults
            .loses_next_decision
            .store(true, Ordering::SeqCst);
    }

    /// Delays every reply.
    pub(super) fn delay(&self, delay: Duration) {
        let millis = u64::try_from(delay.as_millis()).unwrap();
        self.faults.delay.store(millis, Ordering::SeqCst);
    }

    /// Forwards replies byte by byte, one every 10 ms.
    pub(super) fn trickle(&self, on: bool) {
        self.faults.trickles.store(on, Ordering::SeqCst);
    }

    /// Closes all connections.
    pub(super) fn cut(&self) {
        self.faults.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Returns the number of connections so far.
    pub(super) fn connections(&self) -> u64 {
        self.faults.connections.load(Ordering::SeqCst)
    }
}

/// Forwards bytes until one side ends or a fault is due, then closes both sides.
async fn pass_on(client: TcpStream, server: TcpStream, faults: &Faults) {
    let (mut from_client, to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let mut cuts = faults.cuts.subscribe();
    // Checks that run in the background have connections and replies as well. Theirs are not lost.
    let is_reply_lost = AtomicBool::new(false);
    let questions = async {
        let mut buffer = vec![0; 65_536];
        loop {
            let len = match from_client.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(len) => len,
            };
            let is_lost = is_decision(&buffer[..len])
                && faults.loses_next_decision.swap(false, Ordering::SeqCst);
            if to_server.write_all(&buffer[..len]).await.is_err() {
                return;
            }
            is_reply_lost.fetch_or(is_lost, Ordering::SeqCst);
        }
    };
    let answers = async {
        let (mut to_client, mut buffer) = (to_client, vec![0; 65_536]);
        loop {
            let len = match from_server.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) if is_reply_lost.load(Ordering::SeqCst) => return,
                Ok(len) => len,
            };
            if answer(&mut to_client, &buffer[..len], faults)
                .await
                .is_err()
            {
                return;
            }
        }
    };
    tokio::select! {
        () = questions => {}
        () = answers => {}
        _ = cuts.changed() => {}
    }
}

fn is_decision(bytes: &[u8]) -> bool {
    bytes
        .windows(7)
        .any(|name| name.eq_ignore_ascii_case(b"EVALSHA"))
}

async fn answer(client: &mut OwnedWriteHalf, bytes: &[u8], faults: &Faults) -> std::io::Result<()> {
    sleep(Duration::from_millis(faults.delay.load(Ordering::SeqCst))).await;
    let mut rest = bytes.iter();
    while faults.trickles.load(Ordering::SeqCst)
        && let Some(byte) = rest.next()
    {
        client.write_all(&[*byte]).await?;
        sleep(Duration::from_millis(10)).await;
    }
    client.write_all(rest.as_slice()).await
}
