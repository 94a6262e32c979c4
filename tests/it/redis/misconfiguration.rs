//! Configuration errors are permanent, and stop a program at its start. Outages do not.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tollgate::{Counter, RedisStore, StoreError, StoreErrorKind};

use super::{PATIENCE, Server, counter, take, user};

/// Permissions that the documentation of `RedisStoreBuilder` requires.
const DOCUMENTED: &str = "+eval +evalsha +time +get +set +setrange +hget +hmget +hset +hdel +hgetall \
                          +hscan +pttl +pexpire +persist +type +del +unlink";

fn many() -> Counter {
    counter("many", "1000000/day")
}

/// Returns the error of a decision, and that of the verification at the start.
async fn errors(url: &str) -> (StoreError, Option<String>) {
    let builder = RedisStore::builder(url).prefix("shop").deadline(PATIENCE);
    let verified = builder.clone().connect_and_verify().await;
    let store = builder.build().unwrap();
    let error = take(&store, &user("alice"), &many()).await.unwrap_err();
    (error, verified.err().map(|error| error.to_string()))
}

async fn assert_permanent(url: &str, message: &str) {
    let (error, verified) = errors(url).await;
    assert!(error.to_string().contains(message), "{url}: {error}");
    assert_eq!(error.kind(), StoreErrorKind::Permanent, "{url}: {error}");
    let verified = verified.unwrap_or_else(|| panic!("{url} is verified: {error}"));
    assert!(verified.contains(message), "{url}: {verified}");
    assert!(!verified.contains("s3cret"), "{verified}");
}

/// Returns the message.
async fn assert_outage(url: &str) -> String {
    let (error, verified) = errors(url).await;
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{url}: {error}");
    assert_eq!(verified, None, "{url}");
    error.to_string()
}

/// Returns a server that requires a password, and has a user `lim` with few permissions.
fn server_with_password() -> Server {
    let server = Server::start_on_tcp();
    let may = ["on", ">pw", "~other:*", "+get"];
    server.run::<String>(&[&["ACL", "SETUSER", "lim"], &may[..]].concat());
    server.run::<String>(&["CONFIG", "SET", "requirepass", "s3cret"]);
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_database_is_permanent() {
    let server = server_with_password();
    let address = server.address();
    let cases = [
        ("", "/1", "rejects the credentials"),
        ("lim:pw@", "/1", "rejects database 1"),
        (":s3cret@", "/99", "rejects database 99"),
    ];
    for (login, database, message) in cases {
        assert_permanent(&format!("redis://{login}{address}{database}"), message).await;
    }
}

/// The first attempt to connect succeeds for a user without permissions.
#[tokio::test(flavor = "multi_thread")]
async fn missing_credentials_and_permissions_fail_the_verification() {
    let server = server_with_password();
    let address = server.address();
    assert_permanent(&format!("redis://{address}"), "rejects the credentials").await;
    let limited = format!("redis://lim:pw@{address}");
    assert_permanent(&limited, "denies a permission").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ordinary_server_in_a_sentinel_url_is_permanent() {
    let server = server_with_password();
    let url = |login: &str| format!("redis+sentinel://{login}{}/main", server.address());
    assert_permanent(&url(":s3cret@"), "is not a sentinel").await;
    assert_permanent(&url(""), "rejects the credentials").await;
    // Another host of the list is down.
    let down = format!(",127.0.0.1:{}/main", Server::free_port());
    let two = url(":s3cret@").replace("/main", &down);
    assert_permanent(&two, "is not a sentinel").await;
}

/// Users with exactly the documented permissions pass, and with each of these states of the server.
#[tokio::test(flavor = "multi_thread")]
async fn verification_needs_the_documented_permissions_and_writes_nothing() {
    let server = Server::start_on_tcp();
    let mut user = vec!["ACL", "SETUSER", "app", "on", ">pw", "~shop:*"];
    user.extend(DOCUMENTED.split_whitespace());
    server.run::<String>(&user);
    let url = format!("redis://app:pw@{}", server.address());
    let builder = RedisStore::builder(&url).prefix("shop").deadline(PATIENCE);
    let verify = async || {
        let verified = builder.clone().connect_and_verify().await;
        assert!(verified.is_ok(), "{verified:?}");
        assert!(server.keys().is_empty(), "{:?}", server.keys());
    };
    verify().await;
    server.run::<String>(&["CONFIG", "SET", "maxmemory", "1"]);
    verify().await;
    server.run::<String>(&["CONFIG", "SET", "maxmemory", "0"]);
    server.run::<String>(&["REPLICAOF", "127.0.0.1", "1"]);
    verify().await;
    server.run::<String>(&["REPLICAOF", "NO", "ONE"]);
    let store = builder.clone().build().unwrap();
    take(&store, &super::user("alice"), &many()).await.unwrap();
    for needed in ["get", "setrange", "hget", "evalsha", "time"] {
        server.run::<String>(&["ACL", "SETUSER", "app", &format!("-{needed}")]);
        let verified = builder.clone().connect_and_verify().await;
        let error = verified.unwrap_err().to_string();
        assert!(error.contains("denies a permission"), "{needed}: {error}");
        server.run::<String>(&["ACL", "SETUSER", "app", &format!("+{needed}")]);
    }
}

/// The reply comes to `PING` or to `AUTH`, because the server sends it to a new client at once.
#[tokio::test(flavor = "multi_thread")]
async fn client_limit_of_the_server_is_an_outage() {
    for login in ["", ":s3cret@"] {
        let server = Server::start_on_tcp();
        if !login.is_empty() {
            server.run::<String>(&["CONFIG", "SET", "requirepass", "s3cret"]);
        }
        let url = format!("redis://{login}{}", server.address());
        let client = redis::Client::open(url.as_str()).unwrap();
        let mut last = client.get_connection().unwrap();
        let mut set = redis::cmd("CONFIG");
        set.arg("SET").arg("maxclients").arg(1);
        set.query::<()>(&mut last).unwrap();
        let error = assert_outage(&url).await;
        assert!(error.contains("max number of clients"), "{error}");
        drop(last);
    }
}

/// What a stub server sends.
#[derive(Clone, Copy)]
enum Reply {
    /// To every new client, before it closes the connection.
    AtOnce(&'static str),
    /// To the first bytes of a client.
    ToFirstBytes(&'static str),
}

/// Starts a server that sends one reply to each client.
async fn stub(reply: Reply) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let mut clients = Vec::new();
        while let Ok((mut client, _)) = listener.accept().await {
            let text = match reply {
                Reply::AtOnce(text) => text,
                Reply::ToFirstBytes(text) => {
                    let _ = client.read(&mut [0; 1_024]).await;
                    text
                }
            };
            let _ = client.write_all(text.as_bytes()).await;
            if matches!(reply, Reply::ToFirstBytes(_)) {
                clients.push(client);
            }
        }
    });
    (address, serving)
}

#[tokio::test(flavor = "multi_thread")]
async fn error_reply_to_authentication_is_classified_by_its_code() {
    const NO_PASSWORD: &str = "-ERR AUTH <password> called without any password configured for the \
                               default user. Are you sure your configuration is correct?\r\n";
    for (reply, message) in [
        ("-WRONGPASS invalid pair\r\n", "rejects the credentials"),
        ("-NOPERM no auth\r\n", "rejects the credentials"),
        (NO_PASSWORD, "rejects the credentials"),
        ("-ERR something else\r\n", "failed"),
    ] {
        let (address, serving) = stub(Reply::ToFirstBytes(reply)).await;
        let (error, _) = errors(&format!("redis://:secret@{address}")).await;
        assert!(error.to_string().contains(message), "{reply}: {error}");
        assert_eq!(error.kind(), StoreErrorKind::Permanent, "{error}");
        serving.abort();
    }
    for reply in [
        "-LOADING Redis is loading the dataset in memory\r\n",
        "-MASTERDOWN Link with MASTER is down\r\n",
        "-BUSY Redis is busy running a script\r\n",
        "-TRYAGAIN later\r\n",
        "-CLUSTERDOWN The cluster is down\r\n",
        "-ERR max number of clients reached\r\n",
    ] {
        let (address, serving) = stub(Reply::ToFirstBytes(reply)).await;
        for database in ["", "/1"] {
            assert_outage(&format!("redis://:secret@{address}{database}")).await;
        }
        serving.abort();
    }
}

/// The server closes the connection before it reads a password.
#[tokio::test(flavor = "multi_thread")]
async fn protected_mode_is_permanent_with_and_without_a_password() {
    let reply = Reply::AtOnce(
        "-DENIED Redis is running in protected mode because protected mode is enabled and no \
         password is set for the default user.\r\n",
    );
    let (address, serving) = stub(reply).await;
    for login in ["", ":secret@"] {
        let url = format!("redis://{login}{address}");
        let (error, verified) = errors(&url).await;
        assert!(error.to_string().contains("protected mode"), "{error}");
        assert_eq!(error.kind(), StoreErrorKind::Permanent, "{error}");
        assert!(verified.is_some());
    }
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn server_of_another_protocol_is_permanent() {
    for reply in [
        Reply::ToFirstBytes("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
        Reply::AtOnce("SSH-2.0-OpenSSH_9.6\r\n"),
    ] {
        let (address, serving) = stub(reply).await;
        for scheme in ["redis", "redis+cluster"] {
            let url = format!("{scheme}://{address}");
            assert_permanent(&url, "is not a Redis server").await;
        }
        serving.abort();
    }
}
