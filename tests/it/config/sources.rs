//! Files that are there, files that are not.

use std::fs;
use std::path::{Path, PathBuf};

use tollgate::RateLimitLayer;
use tollgate::config::{Config, Source};

use super::problems;

/// A directory of this test's own.
fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn told(path: &Path) -> String {
    let source = Source::file(path).variables::<&str, &str>([]);
    let told = problems(&source.read().unwrap_err());
    assert_eq!(told.len(), 1, "{told:?}");
    told[0].clone()
}

#[test]
fn what_cannot_be_read_is_told() {
    let directory = directory("config-unreadable");
    fs::write(directory.join("limits.toml"), "x").unwrap();
    assert_eq!(
        told(&directory.join("limit.toml")),
        "file not found; expected a policy file; did you mean `limits.toml`?"
    );
    let nowhere = directory.join("nowhere");
    assert_eq!(
        told(&nowhere.join("limits.toml")),
        format!(
            "file not found; expected a policy file; directory `{}` not found",
            nowhere.display()
        )
    );
    assert_eq!(
        told(&directory),
        "the path is a directory; expected a policy file"
    );
}

#[test]
fn what_is_too_long_is_not_looked_at() {
    let directory = directory("config-too-long");
    let path = directory.join("limits.toml");
    fs::write(&path, vec![b'#'; 10 << 20]).unwrap();
    assert!(told(&path).starts_with("more than 8 MiB"));
}

#[test]
fn the_name_tells_the_language() {
    let directory = directory("config-language");
    for (name, text) in [
        ("a.toml", "[global]\nauthenticated = '7/s'"),
        ("a.json", r#"{"global": {"authenticated": "7/s"}}"#),
        ("a.JSON", r#"{"global": {"authenticated": "7/s"}}"#),
        ("a.conf", "[global]\nauthenticated = '7/s'"),
        ("bom.toml", "\u{feff}[global]\nauthenticated = '7/s'"),
        (
            "bom.json",
            "\u{feff}{\"global\": {\"authenticated\": \"7/s\"}}",
        ),
        ("crlf.toml", "[global]\r\nauthenticated = '7/s'\r\n"),
    ] {
        let path = directory.join(name);
        fs::write(&path, text).unwrap();
        let config = Config::from_file(&path).unwrap();
        assert_eq!(config.source().path(), Some(path.as_path()));
        assert!(format!("{:?}", config.policy()).contains("7/1s"), "{name}");
        assert!(RateLimitLayer::from_file(&path).is_ok());
    }
}

/// A source is read again for what is there then.
#[test]
fn a_source_can_be_read_again() {
    let path = directory("config-again").join("limits.toml");
    fs::write(&path, "global.authenticated = '7/s'").unwrap();
    let config = Config::from_file(&path).unwrap();
    fs::write(&path, "global.authenticated = '8/s'").unwrap();
    let again = config.source().read().unwrap();
    assert!(format!("{:?}", again.policy()).contains("8/1s"));
    fs::write(&path, "global.authenticated = '8/x'").unwrap();
    assert!(config.source().read().is_err());
}

/// What only code can say is said each time, and what is wrong with it is told like the rest.
#[test]
fn code_adds_to_a_file() {
    let source = Source::toml("[[rules]]\nname = 'all'\nlimit = '5/s'")
        .variables::<&str, &str>([])
        .adjust(|policy| policy.endpoint("GET /", "7/s"));
    let config = source.read().unwrap();
    assert!(format!("{:?}", config.policy()).contains("7/1s"));

    let wrong = source.adjust(|policy| policy.endpoint("GET", "7/s"));
    let told = problems(&wrong.read().unwrap_err());
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("a path that begins with `/`"), "{told:?}");
}

#[test]
fn keys_are_found_beside_the_file() {
    use crate::support::tokens;

    let directory = directory("config-keys");
    fs::create_dir(directory.join("keys")).unwrap();
    fs::write(
        directory.join("keys/secret"),
        format!("{}\n", tokens::SECRET),
    )
    .unwrap();
    fs::write(directory.join("keys/public.pem"), tokens::RSA_1).unwrap();
    fs::write(
        directory.join("keys/jwks.json"),
        tokens::jwks(&[tokens::rsa_jwk(tokens::RSA_2_PRIVATE, "")]),
    )
    .unwrap();
    let path = directory.join("limits.toml");
    for (algorithm, key) in [
        ("HS256", "secret_file = 'keys/secret'"),
        ("RS256", "public_key_file = 'keys/public.pem'"),
        ("RS256", "jwks_file = 'keys/jwks.json'"),
    ] {
        let text = format!(
            "[[rules]]\nname = 'a'\nlimit = '1/s'\n[identity.jwt]\nalgorithms = ['{algorithm}']\n{key}\n"
        );
        fs::write(&path, text).unwrap();
        let source = Source::file(&path).variables::<&str, &str>([]);
        assert!(source.read().is_ok(), "{:?}", source.read().unwrap_err());
    }
    // A key that does not go with the algorithm, and a private one.
    fs::write(directory.join("keys/private.pem"), tokens::RSA_1_PRIVATE).unwrap();
    for (algorithm, key, expected) in [
        (
            "ES256",
            "public_key_file = 'keys/public.pem'",
            "identity.jwt.algorithms: invalid JWT algorithms `ES256`",
        ),
        (
            "RS256",
            "public_key_file = 'keys/private.pem'",
            "identity.jwt.public_key_file: invalid JWT public key: a private key",
        ),
        (
            "RS256",
            "jwks_file = 'keys/public.pem'",
            "identity.jwt.jwks_file: invalid JWK set",
        ),
        (
            "HS256",
            "secret_file = 'keys/public.pem'",
            "identity.jwt.secret_file: invalid JWT secret: a PEM text",
        ),
        (
            "HS256",
            "secret_file = 'keys/none'",
            "identity.jwt.secret_file: `keys/none`: file not found",
        ),
    ] {
        let text = format!(
            "[[rules]]\nname = 'a'\nlimit = '1/s'\n[identity.jwt]\nalgorithms = ['{algorithm}']\n{key}\n"
        );
        fs::write(&path, text).unwrap();
        assert!(told(&path).starts_with(expected), "{}", told(&path));
    }
}
