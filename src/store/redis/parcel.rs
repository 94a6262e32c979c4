//! Several requests in one call of the script, and to each its own answer.

use std::sync::Arc;

use bytes::Bytes;
use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};

use super::error::RedisStoreError;
use super::request::{INSTANT_BYTES, Request};
use super::script::{self, Kinds, SEVERAL};

/// What stands in an answer for a request that met with an error: no instant is that late.
const NO_ANSWER: [u8; INSTANT_BYTES] = [0xff; INSTANT_BYTES];

/// How long a request is, most of the time.
const LIKELY_BYTES: usize = 69;

/// How the server is told which script to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// By its hash.
    ByHash,
    /// By its text, because it has said that it does not know the hash.
    ByText,
}

/// The command that decides about these requests, one after the other.
pub(super) fn command<'a>(
    requests: impl Iterator<Item = &'a Request> + Clone,
    known: Known,
) -> Cmd {
    let kinds = requests.clone().fold(Kinds::default(), |kinds, request| {
        kinds.with_all(request.kinds)
    });
    let script = script::deciding(kinds);
    let mut command = match known {
        Known::ByHash => redis::cmd("EVALSHA"),
        Known::ByText => redis::cmd("EVAL"),
    };
    command.arg(match known {
        Known::ByHash => &script.hash,
        Known::ByText => &script.text,
    });
    let keys = || requests.clone().flat_map(|request| &request.keys);
    command.arg(keys().count());
    for key in keys() {
        command.arg(key);
    }
    let mut bodies = requests.map(|request| request.body.as_slice());
    match (bodies.next(), bodies.next()) {
        (Some(only), None) => command.arg(only),
        (first, second) => command.arg(together(first.into_iter().chain(second).chain(bodies))),
    };
    command
}

/// Several requests as one argument. Most of them differ in nothing but their keys, which come
/// apart. So two numbers say which request it is, and how many such follow each other: that of an
/// equal one before it, or else the next, with the request after it.
fn together<'a>(bodies: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut written = Vec::with_capacity(4 * LIKELY_BYTES);
    written.push(SEVERAL);
    let mut known: Vec<&[u8]> = Vec::new();
    let (mut last, mut count_at) = (0, 0);
    for body in bodies {
        if known.get(last) == Some(&body) {
            // There are fewer in a call than a byte can count.
            written[count_at] += 1;
            continue;
        }
        let equal = known.iter().position(|other| *other == body);
        last = equal.unwrap_or(known.len());
        count_at = written.len() + 1;
        written.extend([u8::try_from(last + 1).unwrap_or(u8::MAX), 1]);
        if equal.is_none() {
            known.push(body);
            written.extend(body);
        }
    }
    written
}

/// The answer to each of these requests, out of the answer to all of them.
pub(super) fn unpack<'a>(
    requests: impl ExactSizeIterator<Item = &'a Request>,
    answer: Value,
    place: &Arc<str>,
) -> Vec<Result<Bytes, RedisStoreError>> {
    let (answer, errors) = match answer {
        Value::BulkString(answer) => (answer, Vec::new()),
        Value::Array(parts) => {
            let mut parts = parts.into_iter();
            match parts.next() {
                Some(Value::BulkString(answer)) => (answer, parts.collect()),
                _ => (Vec::new(), Vec::new()),
            }
        }
        _ => (Vec::new(), Vec::new()),
    };
    let mut rest = Bytes::from(answer);
    let mut errors = errors.into_iter();
    let mut one = |request: &Request| {
        if rest.starts_with(&NO_ANSWER) {
            let _ = rest.split_to(INSTANT_BYTES);
            return Err(RedisStoreError::calling(place, error(errors.next())));
        }
        if rest.len() < request.answer_bytes() {
            return Err(RedisStoreError::unexpected_reply(place));
        }
        Ok(rest.split_to(request.answer_bytes()))
    };
    requests.map(&mut one).collect()
}

/// What the script says that one of its requests met with.
fn error(told: Option<Value>) -> RedisError {
    let told = match told {
        Some(Value::BulkString(told)) => String::from_utf8_lossy(&told).into_owned(),
        _ => String::new(),
    };
    let kind = ErrorKind::Server(ServerErrorKind::ResponseError);
    RedisError::from((kind, "the script failed", told))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Batch, Check};
    use crate::clock::Timestamp;
    use crate::key::{Counter, Subject};
    use crate::store::redis::key::Prefix;
    use crate::store::redis::script::Verb;

    fn request(verb: Verb, names: &[&str]) -> Request {
        let counter = Counter::new("rule", "5/minute".parse().expect("valid")).expect("valid");
        let subjects: Vec<Subject<'_>> = names.iter().map(|name| Subject::from(*name)).collect();
        let checks: Vec<Check<'_>> = subjects
            .iter()
            .map(|subject| Check::new(subject, &counter))
            .collect();
        let batch = Batch::new(&checks).expect("valid");
        let prefix = Prefix::new("app").expect("plain");
        Request::new(verb, &batch, None, Timestamp::EPOCH, &prefix).0
    }

    fn place() -> Arc<str> {
        "localhost".into()
    }

    fn told(answers: &[Result<Bytes, RedisStoreError>]) -> Vec<Result<usize, String>> {
        let told = |answer: &Result<Bytes, RedisStoreError>| match answer {
            Ok(answer) => Ok(answer.len()),
            Err(trouble) => Err(trouble.to_string()),
        };
        answers.iter().map(told).collect()
    }

    #[test]
    fn requests_that_differ_in_their_keys_alone_are_written_once() {
        let requests = [
            request(Verb::Decide, &["a"]),
            request(Verb::Decide, &["b"]),
            request(Verb::Peek, &["c"]),
            request(Verb::Decide, &["d"]),
            request(Verb::Decide, &["e", "f"]),
            request(Verb::Decide, &["g", "h"]),
            request(Verb::Decide, &["i"]),
        ];
        let bodies: Vec<_> = requests.iter().map(|request| &*request.body).collect();
        let written = together(bodies.iter().copied());
        let expected: [&[u8]; 8] = [
            &[SEVERAL, 1, 2],
            bodies[0],
            &[2, 1],
            bodies[2],
            &[1, 1],
            &[3, 2],
            bodies[4],
            &[1, 1],
        ];
        assert_eq!(written, expected.concat());
    }

    #[test]
    fn each_request_gets_its_own_answer() {
        let requests = [
            request(Verb::Decide, &["a", "b"]),
            request(Verb::Refund, &["c"]),
            request(Verb::Peek, &["d"]),
        ];
        let answer = Value::BulkString(vec![1; 37 + 7 + 22]);
        let answers = unpack(requests.iter(), answer, &place());
        assert_eq!(told(&answers), [Ok(37), Ok(7), Ok(22)]);
    }

    #[test]
    fn what_one_request_met_with_is_told_to_no_other() {
        let requests = [
            request(Verb::Decide, &["a"]),
            request(Verb::Decide, &["b"]),
            request(Verb::Decide, &["c"]),
        ];
        let mut answer = vec![1; 22];
        answer.extend(NO_ANSWER);
        answer.extend([2; 22]);
        let full = Value::BulkString(b"OOM there is no room".to_vec());
        let answer = Value::Array(vec![Value::BulkString(answer), full]);
        let answers = unpack(requests.iter(), answer, &place());
        let told = told(&answers);
        assert_eq!((&told[0], &told[2]), (&Ok(22), &Ok(22)));
        assert!(told[1].as_ref().is_err_and(|words| words.contains("OOM")));
    }

    #[test]
    fn an_answer_that_is_too_short_is_told_to_those_it_does_not_reach() {
        let requests = [request(Verb::Decide, &["a"]), request(Verb::Decide, &["b"])];
        let answers = unpack(requests.iter(), Value::BulkString(vec![1; 30]), &place());
        assert!(answers[0].is_ok() && answers[1].is_err());
        let answers = unpack(requests.iter(), Value::Nil, &place());
        assert!(answers.iter().all(Result::is_err));
    }
}
