//! A proxy between a store and its server that can do what networks do.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Passes bytes on, unless told otherwise.
pub(super) struct Proxy {
    address: SocketAddr,
    faults: Arc<Faults>,
}

#[derive(Default)]
struct Faults {
    cut_after_next_answer: AtomicBool,
}

impl Proxy {
    pub(super) async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let faults = Arc::new(Faults::default());
        let shared = Arc::clone(&faults);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let faults = Arc::clone(&shared);
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

    /// The server's next answer is lost, and the connection with it.
    pub(super) fn cut_after_next_answer(&self) {
        self.faults
            .cut_after_next_answer
            .store(true, Ordering::SeqCst);
    }
}

/// Until one side ends or a fault is due; then both ends are closed.
async fn pass_on(client: TcpStream, server: TcpStream, faults: &Faults) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let questions = async {
        let mut buffer = vec![0; 65_536];
        loop {
            match from_client.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(len) if to_server.write_all(&buffer[..len]).await.is_err() => return,
                Ok(_) => {}
            }
        }
    };
    let answers = async {
        let mut buffer = vec![0; 65_536];
        loop {
            match from_server.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) if faults.cut_after_next_answer.swap(false, Ordering::SeqCst) => return,
                Ok(len) if to_client.write_all(&buffer[..len]).await.is_err() => return,
                Ok(_) => {}
            }
        }
    };
    tokio::select! {
        () = questions => {}
        () = answers => {}
    }
}
