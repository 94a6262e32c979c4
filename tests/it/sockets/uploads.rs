//! The body of a denied request is not read.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::post;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::BodyExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tollgate::RateLimitLayer;
use tollgate::policy::Policy;
use tower::Layer;

use super::{PLACES, Place, listener};
use crate::support::sockets::{Client, Version};

const UPLOAD: u64 = 100_000_000;
const CHUNK: usize = 50_000;

/// What a server may take in before its answer is out: buffers, and one window of HTTP/2.
const SMALL: u64 = 4_000_000;

/// A connection that counts the bytes read from it.
struct Counted {
    stream: TcpStream,
    read: Arc<AtomicU64>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let read = buffer.filled().len() - before;
        self.read.fetch_add(read as u64, Ordering::SeqCst);
        polled
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A server with one endpoint that takes everything and one that takes nothing, and how much it
/// has read.
async fn start(place: Place) -> (SocketAddr, Arc<AtomicU64>) {
    let swallow = || {
        post(|mut body: Body| async move {
            let mut length = 0;
            while let Some(frame) = body.frame().await {
                length += frame.unwrap().data_ref().map_or(0, Bytes::len);
            }
            length.to_string()
        })
    };
    let app = Router::new()
        .route("/open", swallow())
        .route("/closed", swallow());
    let policy = Policy::builder().endpoint("POST /closed", "blocked");
    let limits = RateLimitLayer::new(policy).unwrap();
    // One type for both, with a layer that does nothing where it is not.
    let nothing = RateLimitLayer::new(Policy::builder()).unwrap();
    let app = match place {
        Place::Routes => nothing.layer(app.layer(limits)),
        Place::Router => limits.layer(app),
    };

    let (listener, address) = listener().await;
    let read = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&read);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let read = Arc::clone(&counter);
            let service = TowerToHyperService::new(app.clone());
            tokio::spawn(async move {
                let server = auto::Builder::new(TokioExecutor::new());
                let io = TokioIo::new(Counted { stream, read });
                // It ends badly where the client goes on sending.
                let _ = server.serve_connection(io, service).await;
            });
        }
    });
    (address, read)
}

/// Sends an upload over HTTP/1.1 for as long as the server takes it: the head of the answer,
/// and how much could be sent.
async fn upload(server: SocketAddr, path: &str) -> (String, u64) {
    let (mut reader, mut writer) = TcpStream::connect(server).await.unwrap().into_split();
    let head = format!("POST {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {UPLOAD}\r\n\r\n");
    writer.write_all(head.as_bytes()).await.unwrap();
    let sending = tokio::spawn(async move {
        let chunk = vec![b'x'; CHUNK];
        let mut sent = 0;
        while sent < UPLOAD && writer.write_all(&chunk).await.is_ok() {
            sent += CHUNK as u64;
        }
        // Kept open, so that the server sees no end before it has answered.
        (sent, writer)
    });
    let answer = head_of_answer(&mut reader).await;
    let (sent, _) = sending.await.unwrap();
    (answer, sent)
}

async fn head_of_answer(reader: &mut (impl AsyncRead + Unpin)) -> String {
    let mut answer = Vec::new();
    while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
        let more = reader.read_buf(&mut answer).await.unwrap();
        assert!(more > 0, "no answer, only {answer:?}");
    }
    String::from_utf8(answer).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_1_answers_before_the_body_is_read() {
    for place in PLACES {
        let (server, read) = start(place).await;
        let (answer, sent) = upload(server, "/closed").await;
        assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
        let read = read.load(Ordering::SeqCst);
        assert!(read < SMALL, "around {place:?}, {read} bytes were read");
        assert!(sent < UPLOAD, "around {place:?}, everything was sent");
    }
}

#[tokio::test]
async fn http_1_sends_no_continue_for_a_denied_upload() {
    for place in PLACES {
        let (server, read) = start(place).await;
        let mut stream = TcpStream::connect(server).await.unwrap();
        let head = format!(
            "POST /closed HTTP/1.1\r\nhost: test\r\nexpect: 100-continue\r\n\
             content-length: {UPLOAD}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let answer = head_of_answer(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
        assert_eq!(read.load(Ordering::SeqCst), head.len() as u64);
    }
}

/// An upload over HTTP/2, and how much of it the server read.
fn streamed(path: &str) -> (Request<Body>, Arc<AtomicU64>) {
    let sent = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&sent);
    let chunk = Bytes::from(vec![b'x'; CHUNK]);
    let chunks = stream::iter(0..UPLOAD / CHUNK as u64).map(move |_| {
        counter.fetch_add(CHUNK as u64, Ordering::SeqCst);
        Ok::<_, io::Error>(chunk.clone())
    });
    let request = Request::post(path).header("content-length", UPLOAD);
    (request.body(Body::from_stream(chunks)).unwrap(), sent)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_2_answers_before_the_body_is_read() {
    for place in PLACES {
        let (server, read) = start(place).await;
        let client = Client::new(Version::Http2, server);
        let (request, sent) = streamed("/closed");
        let answer = client.send_request(request).await;
        assert_eq!(answer.status, 429);
        assert_eq!(answer.json()["error"]["code"], "RATE_LIMIT_EXCEEDED");
        for (bytes, what) in [(read, "read"), (sent, "sent")] {
            let bytes = bytes.load(Ordering::SeqCst);
            assert!(bytes < SMALL, "around {place:?}, {bytes} bytes were {what}");
        }
        // The connection is as good as before.
        let (request, _) = streamed("/open");
        assert_eq!(client.send_request(request).await.body, UPLOAD.to_string());
    }
}

/// Control: the body of an admitted request is read to its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn allowed_bodies_are_read_to_the_end() {
    let (server, read) = start(Place::Routes).await;
    let (answer, sent) = upload(server, "/open").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(sent, UPLOAD);
    assert!(read.load(Ordering::SeqCst) > UPLOAD);
}
