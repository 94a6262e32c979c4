//! TLS: certificates are verified before credentials are sent.

use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tollgate::{Counter, RedisStore, RedisStoreBuilder, StoreErrorKind};

use super::nodes::Nodes;
use super::proxy::Proxy;
use super::server::{certificate, tls_settings};
use super::{PATIENCE, Server, counter, take, user};
use crate::support::store_ext::StoreExt as _;

fn many() -> Counter {
    counter("many", "1000000/day")
}

/// Returns a builder of a store that trusts the authority of this name.
fn trusting(url: &str, authority: &str) -> RedisStoreBuilder {
    let pem = fs::read(certificate(authority)).unwrap();
    RedisStore::builder(url)
        .deadline(PATIENCE)
        .root_certificates(pem)
}

#[tokio::test(flavor = "multi_thread")]
async fn server_is_reached_by_name_and_by_address() {
    let server = Server::start_on_tls_with(&["--requirepass", "word"]);
    let port = server.address().port();
    for host in ["localhost", "127.0.0.1"] {
        let url = format!("rediss://:word@{host}:{port}");
        let store = trusting(&url, "authority.pem").build().unwrap();
        take(&store, &user("alice"), &many()).await.unwrap();
    }
    let url = format!("rediss://:wrong@localhost:{port}");
    let store = trusting(&url, "authority.pem").build().unwrap();
    let error = take(&store, &user("alice"), &many()).await.unwrap_err();
    assert!(
        error.to_string().contains("rejects the credentials"),
        "{error}"
    );
}

/// Three certificates: of another authority, of one that the system does not trust, for another host.
#[tokio::test(flavor = "multi_thread")]
async fn untrusted_certificate_is_reported() {
    let server = Server::start_on_tls_with(&[]);
    let port = server.address().port();
    let url = format!("rediss://localhost:{port}");
    let other_host = format!("rediss://ip6-localhost.localhost:{port}");
    let mut stores = vec![trusting(&url, "stranger.pem").build().unwrap()];
    // A system without root certificates rejects the settings.
    stores.extend(RedisStore::builder(&url).deadline(PATIENCE).build());
    // Only on systems that resolve all names under `localhost`.
    if std::net::ToSocketAddrs::to_socket_addrs(&("ip6-localhost.localhost", port)).is_ok() {
        stores.push(trusting(&other_host, "authority.pem").build().unwrap());
    }
    for store in stores {
        let error = take(&store, &user("alice"), &many()).await.unwrap_err();
        let error = error.to_string();
        assert!(error.contains("the TLS handshake"), "{error}");
        assert!(error.contains("root_certificates"), "{error}");
    }
    assert!(server.keys().is_empty());
}

/// A wrong choice between `redis://` and `rediss://` is a configuration error, not an outage.
#[tokio::test(flavor = "multi_thread")]
async fn tls_mismatch_is_reported_and_is_no_outage() {
    let secure = Server::start_on_tls_with(&[]);
    let plain = Server::start_on_tcp();
    let cases = [
        ("redis", &secure, "use rediss://"),
        ("rediss", &plain, "use redis://"),
        ("redis+cluster", &secure, "use rediss://"),
        ("rediss+cluster", &plain, "use redis://"),
    ];
    for (scheme, server, advice) in cases {
        let url = format!("{scheme}://{}", server.address());
        let store = trusting(&url, "authority.pem")
            .deadline(Duration::from_secs(2))
            .build()
            .unwrap();
        let started = Instant::now();
        // Longer than one probe interval.
        while started.elapsed() < Duration::from_secs(2) {
            let error = take(&store, &user("alice"), &many()).await.unwrap_err();
            assert!(error.to_string().contains("TLS"), "{url}: {error}");
            assert!(error.to_string().contains(advice), "{url}: {error}");
            assert_eq!(error.kind(), StoreErrorKind::Permanent, "{url}: {error}");
            sleep(Duration::from_millis(10)).await;
        }
        assert!(!store.is_connected());
        let verified = trusting(&url, "authority.pem").connect_and_verify().await;
        let error = verified.unwrap_err().to_string();
        assert!(error.contains(advice), "{url}: {error}");
    }
}

/// A round trip of 220 ms, as between continents.
#[tokio::test(flavor = "multi_thread")]
async fn tls_mismatch_is_reported_on_a_slow_network() {
    let secure = Server::start_on_tls_with(&[]);
    let plain = Server::start_on_tcp();
    for (scheme, server, advice) in [
        ("redis", &secure, "use rediss://"),
        ("rediss", &plain, "use redis://"),
    ] {
        let proxy = Proxy::start(server.address()).await;
        proxy.delay(Duration::from_millis(220));
        let url = format!("{scheme}://{}", proxy.address());
        let verified = trusting(&url, "authority.pem").connect_and_verify().await;
        let error = verified.unwrap_err().to_string();
        assert!(error.contains(advice), "{url}: {error}");
        let store = trusting(&url, "authority.pem").build().unwrap();
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(3) {
            let error = take(&store, &user("alice"), &many()).await.unwrap_err();
            assert!(error.to_string().contains(advice), "{url}: {error}");
            assert_eq!(error.kind(), StoreErrorKind::Permanent, "{url}: {error}");
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// A probe takes longer than an attempt to connect. A later attempt uses its result.
#[tokio::test(flavor = "multi_thread")]
async fn tls_mismatch_is_reported_if_an_attempt_ends_before_its_probe() {
    let plain = Server::start_on_tcp();
    let proxy = Proxy::start(plain.address()).await;
    proxy.delay(Duration::from_millis(1_200));
    let url = format!("rediss://{}", proxy.address());
    let store = trusting(&url, "authority.pem").build().unwrap();
    let started = Instant::now();
    loop {
        let error = take(&store, &user("alice"), &many()).await.unwrap_err();
        if error.to_string().contains("use redis://") {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "{error}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_client_certificate_is_no_outage() {
    let server = Server::start_on_tls_with(&["--tls-auth-clients", "yes"]);
    let url = format!("rediss://localhost:{}", server.address().port());
    let store = trusting(&url, "authority.pem").build().unwrap();
    let error = take(&store, &user("alice"), &many()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Permanent, "{error}");
    assert!(error.to_string().contains("TLS handshake"), "{error}");
}

/// At the start of a program, a wrong password is an error and an outage is not.
#[tokio::test(flavor = "multi_thread")]
async fn verification_distinguishes_configuration_errors_from_outages() {
    let server = Server::start_on_tls_with(&["--requirepass", "word"]);
    let port = server.address().port();
    let verify = async |url: String, authority: &str| {
        let verified = trusting(&url, authority).connect_and_verify().await;
        verified.map(|_| ()).map_err(|error| error.to_string())
    };
    let url = |password: &str| format!("rediss://:{password}@localhost:{port}");
    assert_eq!(verify(url("word"), "authority.pem").await, Ok(()));
    let error = verify(url("wrong"), "authority.pem").await.unwrap_err();
    assert!(error.contains("check user and password"), "{error}");
    let error = verify(url("word"), "stranger.pem").await.unwrap_err();
    assert!(error.contains("root_certificates"), "{error}");
    let absent = Server::free_port();
    let unreachable = format!("rediss://localhost:{absent}");
    assert_eq!(verify(unreachable, "authority.pem").await, Ok(()));
    server.signal("STOP");
    assert_eq!(verify(url("wrong"), "authority.pem").await, Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_is_reached() {
    let nodes = Nodes::start_on_tls();
    let url = nodes.url().replace("redis+", "rediss+");
    let store = trusting(&url, "authority.pem").build().unwrap();
    for number in 0..20 {
        let name = format!("user-{number}");
        take(&store, &user(&name), &many()).await.unwrap();
    }
    assert_eq!(store.len().await.unwrap(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_and_their_primary_are_reached() {
    let primary = Server::start_on_tls_with(&[]);
    let port = primary.address().port();
    let mut file = format!("sentinel monitor main 127.0.0.1 {port} 1\n");
    for setting in tls_settings().chunks(2) {
        let _ = writeln!(
            file,
            "{} {}",
            setting[0].trim_start_matches('-'),
            setting[1]
        );
    }
    let sentinel = Server::start_sentinel(&file);
    let url = format!("rediss+sentinel://{}/main", sentinel.address());
    let store = trusting(&url, "authority.pem").build().unwrap();
    take(&store, &user("alice"), &many()).await.unwrap();
    assert_eq!(primary.keys().len(), 1);
}

#[tokio::test]
async fn malformed_root_certificates_are_rejected() {
    let builder = RedisStore::builder("rediss://localhost").root_certificates("nothing");
    let errors = builder.build().unwrap_err();
    let error = errors.iter().next().unwrap();
    assert_eq!(error.path(), Some("root_certificates"));
    assert_eq!(error.field(), "redis root certificates");
    // They are not read without TLS.
    let builder = RedisStore::builder("redis://localhost").root_certificates("nothing");
    assert!(builder.build().is_ok());
}
