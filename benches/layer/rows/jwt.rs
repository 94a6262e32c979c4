//! A token that was verified before, next to one that was not.

use std::hint::black_box;
use std::io;
use std::time::Instant;

use http::{HeaderValue, Request, header};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use tollgate::identity::{Identified, Identify as _, IdentifyContext, Jwt};
use tollgate::{Clock as _, RequestHead, SystemClock, Timestamp};
use tollgate_bench::{Args, Report, duel};

use super::{ROUNDS, row};
use crate::work;

const ID: &str = "jwt/cache-hit";

const PUBLIC: &str = include_str!("../../../tests/it/support/keys/test-rsa-1.public.pem");
const PRIVATE: &str = include_str!("../../../tests/it/support/keys/test-rsa-1.private.pem");

/// As many as are verified in one round.
const TOKENS: usize = 100;

pub fn all(args: &Args, report: &mut Report) -> io::Result<()> {
    if !args.wants(ID) {
        return Ok(());
    }
    let key = EncodingKey::from_rsa_pem(PRIVATE.as_bytes()).expect("a key");
    let header = Header::new(Algorithm::RS256);
    let requests: Vec<Request<()>> = (0..TOKENS)
        .map(|client| request(&work::token(&header, &key, client)))
        .collect();
    let now = SystemClock::new().now();
    let known = source();
    identify(&known, &requests, 1, now);
    let times = duel(
        ROUNDS,
        || identify(&known, &requests, 1_000, now),
        || identify(&source(), &requests, 1, now),
    );
    let times = (times.ours, times.theirs);
    report.add(row(ID, "RS256", "ns", times, Some(0.01)))
}

/// A source that has seen no token yet.
fn source() -> Jwt {
    let source = Jwt::rs256_pem(PUBLIC).issuer("https://id.example.com");
    source.tenant("tenant_id").build().expect("a valid source")
}

fn request(token: &str) -> Request<()> {
    let bearer = HeaderValue::try_from(format!("Bearer {token}")).expect("letters and digits");
    let mut request = Request::new(());
    request.headers_mut().insert(header::AUTHORIZATION, bearer);
    request
}

/// Nanoseconds for each, all of them so many times.
fn identify(jwt: &Jwt, requests: &[Request<()>], times: usize, now: Timestamp) -> f64 {
    let started = Instant::now();
    for _ in 0..times {
        for request in requests {
            let asking = IdentifyContext::new(RequestHead::of(request), None, now);
            let identified = black_box(jwt.identify(&asking));
            assert!(matches!(identified, Identified::Known(_)));
        }
    }
    started.elapsed().as_secs_f64() * 1e9 / (requests.len() * times) as f64
}
