//! Reading of policy files and key files.

use std::fs;
use std::path::{Path, PathBuf};

use tollgate::RateLimitLayer;
use tollgate::config::{Config, Source};

use super::problems;

/// Creates an empty directory for one test.
fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// Reads a file that has one problem, and returns the problem.
fn problem_of(path: &Path) -> String {
    let source = Source::file(path).variables::<&str, &str>([]);
    let found = problems(&source.read().unwrap_err());
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

#[test]
fn missing_files_and_directories_are_reported() {
    let directory = directory("config-unreadable");
    fs::write(directory.join("limits.toml"), "x").unwrap();
    assert_eq!(
        problem_of(&directory.join("limit.toml")),
        "file not found; expected a policy file; did you mean `limits.toml`?"
    );
    let nowhere = directory.join("nowhere");
    assert_eq!(
        problem_of(&nowhere.join("limits.toml")),
        format!(
            "file not found; expected a policy file; directory `{}` not found",
            nowhere.display()
        )
    );
    assert_eq!(
        problem_of(&directory),
        "the path is a directory; expected a policy file"
    );
}

#[test]
fn files_over_8_mib_are_rejected() {
    let directory = directory("config-too-long");
    let path = directory.join("limits.toml");
    fs::write(&path, vec![b'#'; 10 << 20]).unwrap();
    assert!(problem_of(&path).starts_with("more than 8 MiB"));
}

#[test]
fn file_name_extension_determines_the_syntax() {
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

#[test]
fn source_reads_the_current_contents_of_its_file() {
    let path = directory("config-again").join("limits.toml");
    fs::write(&path, "global.authenticated = '7/s'").unwrap();
    let config = Config::from_file(&path).unwrap();
    fs::write(&path, "global.authenticated = '8/s'").unwrap();
    let again = config.source().read().unwrap();
    assert!(format!("{:?}", again.policy()).contains("8/1s"));
    fs::write(&path, "global.authenticated = '8/x'").unwrap();
    assert!(config.source().read().is_err());
}

#[test]
fn adjust_changes_the_policy_and_its_errors_are_reported() {
    let source = Source::toml("[[rules]]\nname = 'all'\nlimit = '5/s'")
        .variables::<&str, &str>([])
        .adjust(|policy| policy.endpoint("GET /", "7/s"));
    let config = source.read().unwrap();
    assert!(format!("{:?}", config.policy()).contains("7/1s"));

    let wrong = source.adjust(|policy| policy.endpoint("GET", "7/s"));
    let found = problems(&wrong.read().unwrap_err());
    assert_eq!(found.len(), 1);
    assert!(
        found[0].contains("a path that begins with `/`"),
        "{found:?}"
    );
}

#[test]
fn key_files_are_relative_to_the_policy_file() {
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
    // Keys of the wrong kind for the algorithm, a private key, and a missing file.
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
        assert!(
            problem_of(&path).starts_with(expected),
            "{}",
            problem_of(&path)
        );
    }
}
