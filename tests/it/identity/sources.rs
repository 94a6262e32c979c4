//! Keys, extensions, headers and closures, and all of them in a row.

use std::sync::Arc;

use http::Request;
use tollgate::Identity;
use tollgate::identity::{
    ApiKey, Authenticated, Chain, Custom, Identified, Identify, IdentifyContext, InvalidReason,
    UserIdHeader,
};

use super::{identify, request};

#[derive(Clone)]
struct Account {
    id: &'static str,
}

fn with_extension<T: Clone + Send + Sync + 'static>(extension: T) -> Request<()> {
    let mut request = request(&[]);
    request.extensions_mut().insert(extension);
    request
}

#[test]
fn identity_of_an_outer_layer_is_used() {
    let source = Authenticated::extension(|account: &Account| Identity::user(account.id));
    identify(&source, &request(&[])).is_absent();
    let alice = identify(&source, &with_extension(Account { id: "alice" })).known();
    assert_eq!(alice.primary(), Some(("user", "alice")));
    identify(&source, &with_extension(Account { id: "" })).is_invalid();

    let some = Authenticated::extension(|account: &Account| {
        (account.id != "guest").then(|| Identity::user(account.id))
    });
    identify(&some, &with_extension(Account { id: "guest" })).is_absent();
}

#[test]
fn an_identity_may_be_the_extension() {
    let source = Authenticated::identity();
    identify(&source, &request(&[])).is_absent();
    let plain = identify(&source, &with_extension(Identity::user("alice"))).known();
    assert_eq!(plain.primary(), Some(("user", "alice")));
    let bob = Arc::new(Identity::user("bob"));
    let shared = identify(&source, &with_extension(Arc::clone(&bob))).known();
    assert!(Arc::ptr_eq(&shared, &bob));
}

#[test]
fn a_user_header_is_one_plain_line() {
    let source = UserIdHeader::trusted("X-User-ID").unwrap();
    identify(&source, &request(&[])).is_absent();
    let alice = identify(&source, &request(&[("x-user-id", "alice|42")])).known();
    assert_eq!(alice.primary(), Some(("user", "alice|42")));
    let long = "a".repeat(257);
    for wrong in ["", "two words", "caf\u{e9}", "tab\tbed", &long] {
        identify(&source, &request(&[("x-user-id", wrong)])).is_invalid();
    }
    let twice = [("x-user-id", "alice"), ("x-user-id", "alice")];
    identify(&source, &request(&twice)).known();
    let different = [("x-user-id", "alice"), ("x-user-id", "bob")];
    identify(&source, &request(&different)).is_ambiguous();
    assert!(
        identify(&source, &request(&[("x-user-id", &long[..256])]))
            .known()
            .get("user")
            .is_some()
    );
    assert_eq!(
        UserIdHeader::trusted("x user").unwrap_err().field(),
        "user id header"
    );
}

#[test]
fn api_keys_are_verified_by_a_closure() {
    let source = ApiKey::header("x-api-key", |key| {
        let name = key.strip_prefix("good-")?;
        Some(Identity::new("api-key", name))
    })
    .unwrap();
    identify(&source, &request(&[])).is_absent();
    let good = identify(&source, &request(&[("x-api-key", "good-1")]));
    assert_eq!(good.known().primary(), Some(("api-key", "1")));
    identify(&source, &request(&[("x-api-key", "bad-1")])).is_invalid_for(InvalidReason::ApiKey);
    // The closure gives an identity without a value.
    identify(&source, &request(&[("x-api-key", "good-")])).is_invalid();
    identify(&source, &request(&[("x-api-key", "")])).is_absent();
}

#[test]
fn api_keys_in_several_lines_or_over_the_size_limit() {
    let verify = |key: &str| Some(Identity::new("api-key", key.get(..4)?));
    let (limit, over) = ("x".repeat(16 << 10), "x".repeat((16 << 10) + 1));
    for source in [
        ApiKey::header("x-api-key", verify).unwrap(),
        ApiKey::known("x-api-key", ["good-1", "good-2", &limit]).unwrap(),
        ApiKey::any_insecure("x-api-key").unwrap(),
    ] {
        let with = |keys: &[&str]| {
            let headers: Vec<_> = keys.iter().map(|key| ("x-api-key", *key)).collect();
            identify(&source, &request(&headers))
        };
        with(&["good-1", "good-1", "good-1"]).known();
        with(&["good-1", "good-2"]).is_ambiguous();
        with(&["good-1", ""]).is_ambiguous();
        with(&[&limit]).known();
        with(&[&over]).is_too_large();
    }
}

#[test]
fn known_api_keys_become_digests() {
    let source = ApiKey::known("x-api-key", ["abc", "def"]).unwrap();
    let one = identify(&source, &request(&[("x-api-key", "abc")])).known();
    // SHA-256 of "abc", as FIPS 180 has it.
    let expected = Some(("api-key", "ba7816bf8f01cfea414140de5dae2223"));
    assert_eq!(one.primary(), expected);
    let other = identify(&source, &request(&[("x-api-key", "def")])).known();
    assert_ne!(one, other);
    for wrong in ["ab", "abcd", "ABC", " "] {
        identify(&source, &request(&[("x-api-key", wrong)])).is_invalid();
    }
    assert!(!format!("{source:?}").contains("abc"));

    let any = ApiKey::any_insecure("x-api-key").unwrap();
    assert_eq!(
        identify(&any, &request(&[("x-api-key", "abc")]))
            .known()
            .primary(),
        expected
    );

    assert_eq!(
        ApiKey::known("x-api-key", [""]).unwrap_err().field(),
        "API key"
    );
    assert_eq!(
        ApiKey::any_insecure("").unwrap_err().field(),
        "API key header"
    );
}

#[test]
fn a_closure_over_the_head() {
    let source = Custom::new(|head| Some(Identity::new("device", head.header("x-device")?)));
    identify(&source, &request(&[])).is_absent();
    let device = identify(&source, &request(&[("x-device", "d1")])).known();
    assert_eq!(device.primary(), Some(("device", "d1")));
    identify(&source, &request(&[("x-device", "")])).is_invalid();
}

/// A source that always answers the same.
#[derive(Debug)]
struct Always(Identified);

impl Identify for Always {
    fn identify(&self, _: &IdentifyContext<'_>) -> Identified {
        self.0.clone()
    }
}

fn user(name: &str) -> Always {
    Always(Identified::Known(Arc::new(Identity::user(name))))
}

#[test]
fn first_source_that_identifies_the_caller_applies() {
    let nothing = request(&[]);
    identify(&Chain::new(), &nothing).is_absent();
    identify(&(), &nothing).is_absent();

    let chain = Chain::new()
        .then(())
        .then(Always(Identified::Absent))
        .then(user("alice"))
        .then(user("bob"));
    assert_eq!(
        identify(&chain, &nothing).known().get("user"),
        Some("alice")
    );
    assert_eq!(chain.len(), 4);

    // An invalid credential does not hide a valid one, and is reported if there is none.
    let invalid = Chain::new().then(Always(Identified::Invalid(InvalidReason::Signature)));
    let later = invalid.clone().then(user("bob"));
    assert_eq!(identify(&later, &nothing).known().get("user"), Some("bob"));
    identify(&invalid.clone().then(Always(Identified::Absent)), &nothing)
        .is_invalid_for(InvalidReason::Signature);
}

#[test]
fn a_reason_that_is_charged_is_reported_first() {
    let nothing = request(&[]);
    let [expired, signature, issuer] = [
        InvalidReason::Expired,
        InvalidReason::Signature,
        InvalidReason::Issuer,
    ]
    .map(|reason| Arc::new(Always(Identified::Invalid(reason))));
    for (sources, reason) in [
        ([&expired, &expired, &signature], InvalidReason::Signature),
        ([&signature, &expired, &issuer], InvalidReason::Signature),
        ([&expired, &expired, &expired], InvalidReason::Expired),
    ] {
        let chain = sources
            .into_iter()
            .fold(Chain::new(), |chain, source| chain.then(Arc::clone(source)));
        identify(&chain, &nothing).is_invalid_for(reason);
    }
}

#[test]
fn an_empty_subject_is_charged_after_an_expired_token() {
    let chain = Chain::new()
        .then(Always(Identified::Invalid(InvalidReason::Expired)))
        .then(user(""));
    identify(&chain, &request(&[])).is_invalid_for(InvalidReason::Custom);
}

/// A token source of the application.
#[derive(Debug)]
struct OwnTokens(Always);

impl Identify for OwnTokens {
    fn identify(&self, asking: &IdentifyContext<'_>) -> Identified {
        self.0.identify(asking)
    }

    fn is_token_source(&self) -> bool {
        true
    }
}

#[test]
fn tokens_of_own_sources_must_be_of_one_user() {
    let nothing = request(&[]);
    let own = |name| OwnTokens(user(name));
    let ambiguous = [
        Chain::new().then(own("alice")).then(own("bob")),
        Chain::new()
            .then(own("alice"))
            .then(user("carol"))
            .then(Chain::new().then(own("bob"))),
        Chain::new()
            .then(Arc::new(Chain::new().then(own("alice"))))
            .then(own("bob")),
    ];
    for chain in ambiguous {
        identify(&chain, &nothing).is_ambiguous();
    }
    let known = [
        Chain::new().then(own("alice")).then(own("alice")),
        Chain::new().then(own("alice")).then(user("carol")),
        // What is not a token ends the search, also in a chain that reads tokens as well.
        Chain::new().then(user("alice")).then(own("bob")),
        Chain::new()
            .then(Chain::new().then(user("alice")).then(own("carol")))
            .then(own("bob")),
        Chain::new()
            .then(own("alice"))
            .then(Arc::new(Chain::new().then(user("bob")).then(own("alice")))),
    ];
    for chain in known {
        assert_eq!(
            identify(&chain, &nothing).known().get("user"),
            Some("alice")
        );
    }
}

#[test]
fn identity_without_subject_applies_only_if_no_source_authenticates_the_caller() {
    let nothing = request(&[]);
    let service = Identity::unauthenticated().role("service");
    let first = Chain::new().then(Always(Identified::Known(Arc::new(service.clone()))));
    assert_eq!(*identify(&first, &nothing).known(), service);
    let invalid = Always(Identified::Invalid(InvalidReason::ApiKey));
    let beside = identify(&first.clone().then(invalid), &nothing);
    assert_eq!(*beside.partly_invalid_for(InvalidReason::ApiKey), service);
    let known = identify(&first.then(user("bob")), &nothing).known();
    assert_eq!(known.primary(), Some(("user", "bob")));
}

#[test]
fn rejections_end_the_search() {
    let nothing = request(&[]);
    for rejected in [Identified::Ambiguous, Identified::TooLarge] {
        let chain = Chain::new()
            .then(Always(Identified::Invalid(InvalidReason::Custom)))
            .then(Always(rejected.clone()))
            .then(user("bob"));
        let found = identify(&chain, &nothing).found;
        assert_eq!(format!("{found:?}"), format!("{rejected:?}"));
    }
}

#[test]
fn empty_subject_is_invalid() {
    let nothing = request(&[]);
    identify(&Chain::new().then(user("")), &nothing).is_invalid();
    let later = Chain::new().then(user("")).then(user("bob"));
    assert_eq!(identify(&later, &nothing).known().get("user"), Some("bob"));
}

#[test]
fn chains_nest_and_are_shared() {
    let inner: Arc<dyn Identify> = Arc::new(Chain::new().then(user("alice")));
    let outer = Chain::new().then(Arc::clone(&inner)).then(inner);
    assert_eq!(
        identify(&outer, &request(&[])).known().get("user"),
        Some("alice")
    );
}
