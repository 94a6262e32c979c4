//! TLS: nobody is told anything who cannot prove who he is.

use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use tollgate::{Counter, RedisStore, RedisStoreBuilder};

use super::nodes::Nodes;
use super::server::{certificate, tls_settings};
use super::{PATIENCE, Server, counter, take, user};
use crate::support::store_ext::StoreExt as _;

fn many() -> Counter {
    counter("many", "1000000/day")
}

/// A store that trusts the authority of this name.
fn trusting(url: &str, authority: &str) -> RedisStoreBuilder {
    let pem = fs::read(certificate(authority)).unwrap();
    RedisStore::builder(url)
        .deadline(PATIENCE)
        .root_certificates(pem)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_talked_to_by_name_and_by_address() {
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
    assert!(error.to_string().contains("refuses us"), "{error}");
}

/// Neither one that somebody else has signed, nor one that nobody of the system's has, nor one that
/// is for another host.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_proves_nothing_is_told() {
    let server = Server::start_on_tls_with(&[]);
    let port = server.address().port();
    let url = format!("rediss://localhost:{port}");
    let elsewhere = format!("rediss://ip6-localhost.localhost:{port}");
    let mut stores = vec![trusting(&url, "stranger.pem").build().unwrap()];
    // A system that trusts nobody would refuse to build it.
    stores.extend(RedisStore::builder(&url).deadline(PATIENCE).build());
    // Where every name that ends so leads here.
    if std::net::ToSocketAddrs::to_socket_addrs(&("ip6-localhost.localhost", port)).is_ok() {
        stores.push(trusting(&elsewhere, "authority.pem").build().unwrap());
    }
    for store in stores {
        let error = take(&store, &user("alice"), &many()).await.unwrap_err();
        let error = error.to_string();
        assert!(error.contains("cannot prove who it is"), "{error}");
        assert!(error.contains("root_certificates"), "{error}");
    }
    assert!(server.keys().is_empty());
}

/// Clear text where TLS is expected, and the other way round, is an error in time.
#[tokio::test(flavor = "multi_thread")]
async fn the_wrong_kind_of_connection_is_an_error_in_time() {
    let secure = Server::start_on_tls_with(&[]);
    let open = Server::start_on_tcp();
    let deadline = Duration::from_millis(200);
    for (url, server) in [("redis", &secure), ("rediss", &open)] {
        let url = format!("{url}://{}", server.address());
        let store = trusting(&url, "authority.pem")
            .deadline(deadline)
            .build()
            .unwrap();
        let started = Instant::now();
        take(&store, &user("alice"), &many()).await.unwrap_err();
        assert!(started.elapsed() < deadline + Duration::from_secs(2));
        assert!(!store.is_connected());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_talked_to() {
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
async fn sentinels_and_their_primary_are_talked_to() {
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
async fn what_is_no_certificate_is_refused() {
    let builder = RedisStore::builder("rediss://localhost").root_certificates("nothing");
    let refused = builder.build().unwrap_err();
    assert_eq!(refused.field(), "redis root certificates");
    // Without TLS nobody looks.
    let builder = RedisStore::builder("redis://localhost").root_certificates("nothing");
    assert!(builder.build().is_ok());
}
