//! Requests that all sides of a row get, and the limits of their callers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderValue, Request, header};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::Serialize;
use tollgate_bench::{Order, addresses};

/// Number of clients.
pub const CLIENTS: usize = 1_000;

/// Path of all requests.
pub const PATH: &str = "/v1/items/4711";

/// Secret that signs the tokens.
pub const SECRET: &str = "a secret that only benchmarks share";

/// Limit of allowed requests: never reached, and replenished so slowly that no counter expires during
/// the measurement. Expired counters would give stores that remove them other work than the rest.
pub const AMPLE: u32 = 1_000_000;

/// Limit of denied requests: used up before the measurement.
pub const SCARCE: u32 = 3;

/// The window, in days.
pub const DAYS: u32 = 30;

/// Returns the time in which one of `amount` is replenished.
pub fn interval(amount: u32) -> Duration {
    Duration::from_secs(86_400) * DAYS / amount
}

/// Kind of request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// With the peer address in the extensions.
    Plain,
    /// With peer address and token.
    Token,
    /// With a peer address that no request had before.
    New,
}

/// Returns the next requests of [`CLIENTS`] in random order, which is equal for all sides. `connected`
/// inserts the peer address as the server of a side does.
pub fn requests<B: Default>(
    kind: Kind,
    order: &mut impl Iterator<Item = u32>,
    count: usize,
    connected: impl Fn(&mut http::Extensions, SocketAddr),
) -> Vec<Request<B>> {
    let request = |client: u32| {
        let mut request = Request::new(B::default());
        *request.uri_mut() = http::Uri::from_static(PATH);
        let headers = request.headers_mut();
        headers.insert(header::HOST, HeaderValue::from_static("api.example.com"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static("bench/1.0"));
        if kind == Kind::Token {
            let token = TOKENS[client as usize].clone();
            headers.insert(header::AUTHORIZATION, token);
        }
        let peers = if kind == Kind::New { &NEW } else { &PEERS };
        connected(request.extensions_mut(), peers[client as usize]);
        request
    };
    order.take(count).map(request).collect()
}

/// Number of addresses for [`Kind::New`]: more than a row has requests.
const NEW_CLIENTS: u32 = 400_000;

/// Returns the clients in the order of their requests. The sequence repeats.
pub fn order(kind: Kind) -> impl Iterator<Item = u32> + use<> {
    let order = match kind {
        Kind::Plain | Kind::Token => Order::Uniform.indexes(CLIENTS, 100 * CLIENTS),
        Kind::New => (0..NEW_CLIENTS).collect(),
    };
    order.into_iter().cycle()
}

static PEERS: LazyLock<Vec<SocketAddr>> = LazyLock::new(|| peers(CLIENTS));
static NEW: LazyLock<Vec<SocketAddr>> = LazyLock::new(|| peers(NEW_CLIENTS as usize));

fn peers(count: usize) -> Vec<SocketAddr> {
    let peer = |address: Ipv4Addr| SocketAddr::new(IpAddr::V4(address), 50_000);
    addresses(count).into_iter().map(peer).collect()
}

static TOKENS: LazyLock<Vec<HeaderValue>> = LazyLock::new(|| {
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    let header = Header::new(Algorithm::HS256);
    let token = |client| {
        let text = format!("Bearer {}", token(&header, &key, client));
        HeaderValue::try_from(text).expect("letters and digits")
    };
    (0..CLIENTS).map(token).collect()
});

#[derive(Serialize)]
struct Claims {
    sub: String,
    tenant_id: String,
    iss: &'static str,
    exp: u64,
}

/// Returns a token of a client, valid for a day. A hundred clients share a tenant.
pub fn token(header: &Header, key: &EncodingKey, client: usize) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let claims = Claims {
        sub: format!("user-{client:07}"),
        tenant_id: format!("tenant-{:05}", client / 100),
        iss: "https://id.example.com",
        exp: now.expect("after 1970").as_secs() + 86_400,
    };
    jsonwebtoken::encode(header, &claims, key).expect("a token")
}
