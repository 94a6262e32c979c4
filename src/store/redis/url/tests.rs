use super::*;

fn one(url: &str) -> Address {
    match RedisTarget::parse(url).expect(url) {
        RedisTarget::One(address) => address,
        other => panic!("{other:?}"),
    }
}

fn tcp(host: &str, port: u16) -> Endpoint {
    Endpoint::Tcp {
        host: host.to_owned(),
        port,
    }
}

fn endpoints(addresses: &[Address]) -> Vec<Endpoint> {
    let endpoints = addresses.iter().map(|address| address.endpoint.clone());
    endpoints.collect()
}

#[test]
fn urls_of_one_server_are_read() {
    for (url, endpoint, user, password, database) in [
        ("redis://localhost", tcp("localhost", 6379), None, None, 0),
        ("valkey://cache:7000/3", tcp("cache", 7000), None, None, 3),
        ("redis://:s3@h/", tcp("h", 6379), None, Some("s3"), 0),
        (
            "redis://app:p%40ss%2F@h:1/2",
            tcp("h", 1),
            Some("app"),
            Some("p@ss/"),
            2,
        ),
        ("redis://[::1]:6380", tcp("::1", 6380), None, None, 0),
        (
            "redis+unix:///run/redis.sock?db=4",
            Endpoint::Unix("/run/redis.sock".into()),
            None,
            None,
            4,
        ),
        (
            "unix://:word@/r.sock",
            Endpoint::Unix("/r.sock".into()),
            None,
            Some("word"),
            0,
        ),
    ] {
        let read = one(url);
        assert_eq!(read.endpoint, endpoint, "{url}");
        assert_eq!(read.login.user.as_deref(), user, "{url}");
        assert_eq!(read.login.password.as_deref(), password, "{url}");
        assert_eq!(read.login.database, database, "{url}");
        assert!(!read.login.is_tls, "{url}");
    }
    assert!(one("rediss://h").login.is_tls && one("valkeys://h").login.is_tls);
}

#[test]
fn urls_of_several_servers_are_read() {
    for scheme in ["redis+cluster", "rediss+cluster", "redis-cluster"] {
        let url = format!("{scheme}://:word@h1:7000,h2,[::1]:7002/");
        let RedisTarget::Cluster(seeds) = RedisTarget::parse(&url).expect("valid") else {
            panic!("{url}");
        };
        let expected = [tcp("h1", 7000), tcp("h2", 6379), tcp("::1", 7002)];
        assert_eq!(endpoints(&seeds), expected);
        assert_eq!(seeds[1].login.password.as_deref(), Some("word"));
        assert_eq!(seeds[2].login.is_tls, scheme == "rediss+cluster");
    }
    let url = "redis+sentinel://app:word@s1,s2:26380/main/2";
    let RedisTarget::Sentinels {
        sentinels,
        name,
        login,
    } = RedisTarget::parse(url).expect("valid")
    else {
        panic!("{url}");
    };
    assert_eq!(
        endpoints(&sentinels),
        [tcp("s1", 26_379), tcp("s2", 26_380)]
    );
    assert_eq!((name.as_str(), login.database), ("main", 2));
    assert_eq!(login.user.as_deref(), Some("app"));
    // A sentinel has no databases.
    assert_eq!(sentinels[0].login.database, 0);
}

#[test]
fn errors_do_not_contain_the_password() {
    for url in [
        "localhost:6379",
        "http://app:hunter2@h",
        "redis://app:hunter2@",
        "redis://app:hunter2@h:port",
        "redis://app:hunter2@h/one",
        "redis://app:hunter2@h/1?timeout=5",
        "redis://app:hunter2@h/1#x",
        "redis://app:hunter2@[::1/0",
        "redis://app:hunter2@h1,h2",
        "redis://app@h",
        "redis+unix://app:hunter2@host/r.sock",
        "redis+unix://",
        "rediss+unix:///r.sock",
        "redis+cluster://app:hunter2@h1,,h2",
        "redis+cluster://app:hunter2@h1/1",
        "redis+sentinel://app:hunter2@h1,h2",
        "redis+sentinel://app:hunter2@h1/main/one",
        "redis+ring://h",
        "redis://app:hunter2",
        "redis://:hunter2/0",
        "redis+unix://:hunter2/r.sock",
    ] {
        let refused = RedisTarget::parse(url).expect_err(url);
        let message = format!("{refused} {refused:?}");
        assert_eq!(refused.field(), "redis url");
        assert!(!message.contains("hunter2"), "{message}");
        assert!(!message.contains("app"), "{message}");
    }
    let target = RedisTarget::parse("redis://app:hunter2@h").expect("valid");
    assert!(!format!("{target:?}").contains("hunter2"));
    // A slash in a password ends it, and then nothing makes sense; it must not be shown.
    let refused = RedisTarget::parse("redis://app:hun/ter2@h").expect_err("a slash");
    assert!(!refused.to_string().contains("ter2"), "{refused}");
}
