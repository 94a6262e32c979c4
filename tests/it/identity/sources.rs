//! Keys, extensions, headers and closures, and all of them in a row.

use std::cell::RefCell;
use std::sync::Arc;

use http::Request;
use tollgate::identity::{
    ApiKey, Asking, Authenticated, Budget, Chain, Custom, Identified, Identify, UserIdHeader,
};
use tollgate::{Head, Identity, Timestamp};

use super::{NOW, ask, ask_if, request};

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
fn what_an_outer_layer_has_verified() {
    let source = Authenticated::extension(|account: &Account| Identity::user(account.id));
    ask(&source, &request(&[])).is_absent();
    let alice = ask(&source, &with_extension(Account { id: "alice" })).known();
    assert_eq!(alice.primary(), ("user", "alice"));
    ask(&source, &with_extension(Account { id: "" })).is_invalid();

    let some = Authenticated::extension(|account: &Account| {
        (account.id != "guest").then(|| Identity::user(account.id))
    });
    ask(&some, &with_extension(Account { id: "guest" })).is_absent();
}

#[test]
fn an_identity_may_be_the_extension() {
    let source = Authenticated::identity();
    ask(&source, &request(&[])).is_absent();
    let plain = ask(&source, &with_extension(Identity::user("alice"))).known();
    assert_eq!(plain.primary(), ("user", "alice"));
    let bob = Arc::new(Identity::user("bob"));
    let shared = ask(&source, &with_extension(Arc::clone(&bob))).known();
    assert!(Arc::ptr_eq(&shared, &bob));
}

#[test]
fn a_user_header_is_one_plain_line() {
    let source = UserIdHeader::trusted("X-User-ID").unwrap();
    ask(&source, &request(&[])).is_absent();
    let alice = ask(&source, &request(&[("x-user-id", "alice|42")])).known();
    assert_eq!(alice.primary(), ("user", "alice|42"));
    let long = "a".repeat(257);
    for wrong in ["", "two words", "caf\u{e9}", "tab\tbed", &long] {
        ask(&source, &request(&[("x-user-id", wrong)])).is_invalid();
    }
    let twice = [("x-user-id", "alice"), ("x-user-id", "alice")];
    ask(&source, &request(&twice)).is_invalid();
    assert!(
        ask(&source, &request(&[("x-user-id", &long[..256])]))
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
    ask(&source, &request(&[])).is_absent();
    let good = ask(&source, &request(&[("x-api-key", "good-1")]));
    assert_eq!(good.verifications, 1);
    assert_eq!(good.known().primary(), ("api-key", "1"));

    let wrong = ask(&source, &request(&[("x-api-key", "bad-1")]));
    assert_eq!(wrong.verifications, 1);
    wrong.is_invalid();
    // Known by nothing.
    ask(&source, &request(&[("x-api-key", "good-")])).is_invalid();

    let long = "x".repeat(9_000);
    for headers in [
        &[("x-api-key", "")][..],
        &[("x-api-key", &long)],
        &[("x-api-key", "good-1"), ("x-api-key", "good-2")],
    ] {
        let asked = ask(&source, &request(headers));
        assert_eq!(asked.verifications, 0);
        asked.is_invalid();
    }
    let now = Timestamp::from_secs(NOW);
    let throttled = ask_if(&source, &request(&[("x-api-key", "good-1")]), now, false);
    assert!(matches!(throttled.found, Identified::Throttled));
}

#[test]
fn known_api_keys_become_digests() {
    let source = ApiKey::known("x-api-key", ["abc", "def"]).unwrap();
    let one = ask(&source, &request(&[("x-api-key", "abc")])).known();
    // SHA-256 of "abc", as FIPS 180 has it.
    let expected = ("api-key", "ba7816bf8f01cfea414140de5dae2223");
    assert_eq!(one.primary(), expected);
    let other = ask(&source, &request(&[("x-api-key", "def")])).known();
    assert_ne!(one, other);
    for wrong in ["ab", "abcd", "ABC", " "] {
        ask(&source, &request(&[("x-api-key", wrong)])).is_invalid();
    }
    assert!(!format!("{source:?}").contains("abc"));

    let any = ApiKey::any_insecure("x-api-key").unwrap();
    assert_eq!(
        ask(&any, &request(&[("x-api-key", "abc")]))
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
    ask(&source, &request(&[])).is_absent();
    let device = ask(&source, &request(&[("x-device", "d1")])).known();
    assert_eq!(device.primary(), ("device", "d1"));
    ask(&source, &request(&[("x-device", "")])).is_invalid();
}

/// A source that always answers the same.
#[derive(Debug)]
struct Always(Identified);

impl Identify for Always {
    fn identify(&self, _: &Asking<'_>) -> Identified {
        self.0.clone()
    }
}

fn user(name: &str) -> Always {
    Always(Identified::Known(Arc::new(Identity::user(name))))
}

#[test]
fn the_first_who_knows_wins() {
    let nothing = request(&[]);
    ask(&Chain::new(), &nothing).is_absent();
    ask(&(), &nothing).is_absent();

    let chain = Chain::new()
        .then(())
        .then(Always(Identified::Absent))
        .then(user("alice"))
        .then(user("bob"));
    assert_eq!(ask(&chain, &nothing).known().get("user"), Some("alice"));
    assert_eq!(chain.len(), 4);

    // Wrong credentials do not hide good ones, but are not forgotten either.
    let invalid = Chain::new().then(Always(Identified::Invalid));
    let later = invalid.clone().then(user("bob"));
    assert_eq!(ask(&later, &nothing).known().get("user"), Some("bob"));
    ask(&invalid.clone().then(Always(Identified::Absent)), &nothing).is_invalid();

    // Nor does a source that may not look hide one that need not ask.
    let throttled = invalid.then(Always(Identified::Throttled));
    let later = throttled.clone().then(user("bob"));
    assert_eq!(ask(&later, &nothing).known().get("user"), Some("bob"));
    for last in [Identified::Absent, Identified::Invalid] {
        let found = ask(&throttled.clone().then(Always(last)), &nothing).found;
        assert!(matches!(found, Identified::Throttled), "{found:?}");
    }
}

/// Notes what it is told.
#[derive(Default)]
struct Book(RefCell<Vec<&'static str>>);

impl Budget for Book {
    fn charge(&self) -> bool {
        self.0.borrow_mut().push("charge");
        true
    }

    fn forgive(&self) {
        self.0.borrow_mut().push("forgive");
    }

    fn keep(&self) {
        self.0.borrow_mut().push("keep");
    }
}

#[test]
fn each_source_is_settled_before_the_next_is_asked() {
    let key = |name| {
        ApiKey::header(name, |key| {
            (key == "good").then(|| Identity::new("api-key", key))
        })
        .unwrap()
    };
    // Also where one of them is a chain itself.
    let chain = Chain::new()
        .then(Chain::new().then(key("x-first")).then(key("x-second")))
        .then(key("x-third"));
    let noted = |headers: &[(&str, &str)]| {
        let (request, book) = (request(headers), Book::default());
        let now = Timestamp::from_secs(NOW);
        let asking = Asking::new(Head::of(&request), None, now, &book);
        let _ = chain.identify(&asking);
        let mut noted = book.0.into_inner();
        // Settling what was never charged, or settled before, means nothing.
        let mut open = false;
        noted.retain(|entry| std::mem::replace(&mut open, *entry == "charge") || open);
        noted.join(" ")
    };
    assert_eq!(noted(&[]), "");
    assert_eq!(noted(&[("x-second", "good")]), "charge forgive");
    assert_eq!(noted(&[("x-second", "bad")]), "charge keep");
    let one_of_each = [("x-first", "bad"), ("x-third", "good")];
    assert_eq!(noted(&one_of_each), "charge keep charge forgive");
}

#[test]
fn nobody_is_known_by_nothing() {
    let nothing = request(&[]);
    ask(&Chain::new().then(user("")), &nothing).is_invalid();
    let later = Chain::new().then(user("")).then(user("bob"));
    assert_eq!(ask(&later, &nothing).known().get("user"), Some("bob"));
}

#[test]
fn chains_nest_and_are_shared() {
    let inner: Arc<dyn Identify> = Arc::new(Chain::new().then(user("alice")));
    let outer = Chain::new().then(Arc::clone(&inner)).then(inner);
    assert_eq!(
        ask(&outer, &request(&[])).known().get("user"),
        Some("alice")
    );
}
