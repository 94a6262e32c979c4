//! Several requests in one call of the script, and the reply to each of them.

use std::sync::Arc;

use bytes::Bytes;
use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};

use super::error::{ErrorCause, RedisStoreError};
use super::reply::INSTANT_BYTES;
use super::request::Request;
use super::script::{self, Kinds};

/// Stands in a reply for a request that failed. No instant is that late.
const FAILED: [u8; INSTANT_BYTES] = [0xff; INSTANT_BYTES];

/// Length of the template of a request with one check.
const LIKELY_BYTES: usize = 72;

/// How a call refers to its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScriptRef {
    /// By its hash (`EVALSHA`).
    Hash,
    /// By its text (`EVAL`), after the server has replied `NOSCRIPT`. The text also caches it.
    Text,
}

/// Returns the command that decides these requests, one after the other.
pub(super) fn command<'a>(
    requests: impl Iterator<Item = &'a Request> + Clone,
    script_ref: ScriptRef,
) -> Cmd {
    let kinds = requests.clone().fold(Kinds::default(), |kinds, request| {
        kinds.with_all(request.kinds)
    });
    let script = script::deciding(kinds);
    let (name, argument) = match script_ref {
        ScriptRef::Hash => ("EVALSHA", &script.hash),
        ScriptRef::Text => ("EVAL", &script.text),
    };
    let mut command = redis::cmd(name);
    command.arg(argument);
    let keys = || requests.clone().flat_map(|request| &request.keys);
    command.arg(keys().count());
    for key in keys() {
        command.arg(key);
    }
    command.arg(encode(requests.map(|request| request.body.as_slice())));
    command
}

/// Encodes several templates as one argument: runs of a number, a count, and the template if it is the
/// first of this number. Most requests differ in their keys only, so their template is sent once.
///
/// A call has fewer requests than a byte can count.
fn encode<'a>(templates: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(2 * LIKELY_BYTES);
    let mut known: Vec<&[u8]> = Vec::new();
    let (mut last, mut count_at) = (0, 0);
    for template in templates {
        if known.get(last) == Some(&template) {
            encoded[count_at] += 1;
            continue;
        }
        let equal = known.iter().position(|other| *other == template);
        last = equal.unwrap_or(known.len());
        count_at = encoded.len() + 1;
        encoded.extend([u8::try_from(last + 1).unwrap_or(u8::MAX), 1]);
        if equal.is_none() {
            known.push(template);
            encoded.extend(template);
        }
    }
    encoded
}

/// Splits the reply to a call into the replies to its requests.
pub(super) fn unpack<'a>(
    requests: impl ExactSizeIterator<Item = &'a Request>,
    reply: Value,
    place: &Arc<str>,
) -> Vec<Result<Bytes, RedisStoreError>> {
    let (replies, errors) = match reply {
        Value::BulkString(replies) => (replies, Vec::new()),
        Value::Array(parts) => {
            let mut parts = parts.into_iter();
            match parts.next() {
                Some(Value::BulkString(replies)) => (replies, parts.collect()),
                _ => (Vec::new(), Vec::new()),
            }
        }
        _ => (Vec::new(), Vec::new()),
    };
    let mut rest = Bytes::from(replies);
    let mut errors = errors.into_iter();
    let mut one = |request: &Request| {
        if rest.starts_with(&FAILED) {
            let _ = rest.split_to(INSTANT_BYTES);
            return Err(RedisStoreError::calling(place, script_error(errors.next())));
        }
        if rest.len() < request.answer_bytes() {
            return Err(RedisStoreError::new(place, ErrorCause::UnexpectedReply));
        }
        Ok(rest.split_to(request.answer_bytes()))
    };
    requests.map(&mut one).collect()
}

/// The error of one request, from the text that the script returned.
fn script_error(text: Option<Value>) -> RedisError {
    let text = match text {
        Some(Value::BulkString(text)) => String::from_utf8_lossy(&text).into_owned(),
        _ => String::new(),
    };
    let kind = ErrorKind::Server(ServerErrorKind::ResponseError);
    RedisError::from((kind, "the script failed", text))
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

    fn lengths(answers: &[Result<Bytes, RedisStoreError>]) -> Vec<Result<usize, String>> {
        let length = |answer: &Result<Bytes, RedisStoreError>| match answer {
            Ok(answer) => Ok(answer.len()),
            Err(error) => Err(error.to_string()),
        };
        answers.iter().map(length).collect()
    }

    #[test]
    fn template_of_several_requests_is_sent_once() {
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
        let written = encode(bodies.iter().copied());
        let expected: [&[u8]; 8] = [
            &[1, 2],
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
    fn each_request_gets_its_own_reply() {
        let requests = [
            request(Verb::Decide, &["a", "b"]),
            request(Verb::Refund, &["c"]),
            request(Verb::Peek, &["d"]),
        ];
        let answer = Value::BulkString(vec![1; 37 + 7 + 22]);
        let answers = unpack(requests.iter(), answer, &place());
        assert_eq!(lengths(&answers), [Ok(37), Ok(7), Ok(22)]);
    }

    #[test]
    fn error_of_one_request_fails_no_other() {
        let requests = [
            request(Verb::Decide, &["a"]),
            request(Verb::Decide, &["b"]),
            request(Verb::Decide, &["c"]),
        ];
        let mut answer = vec![1; 22];
        answer.extend(FAILED);
        answer.extend([2; 22]);
        let full = Value::BulkString(b"OOM there is no room".to_vec());
        let answer = Value::Array(vec![Value::BulkString(answer), full]);
        let answers = unpack(requests.iter(), answer, &place());
        let lengths = lengths(&answers);
        assert_eq!((&lengths[0], &lengths[2]), (&Ok(22), &Ok(22)));
        assert!(
            lengths[1]
                .as_ref()
                .is_err_and(|words| words.contains("OOM"))
        );
    }

    #[test]
    fn short_reply_fails_the_requests_it_does_not_cover() {
        let requests = [request(Verb::Decide, &["a"]), request(Verb::Decide, &["b"])];
        let answers = unpack(requests.iter(), Value::BulkString(vec![1; 30]), &place());
        assert!(answers[0].is_ok() && answers[1].is_err());
        let answers = unpack(requests.iter(), Value::Nil, &place());
        assert!(answers.iter().all(Result::is_err));
    }
}
