//! What a server of a cluster knows about it: who has which slots.

use std::time::Duration;

use redis::{Cmd, Value};
use tokio::time::timeout;

use super::address::{Address, Endpoint};
use super::connect;
use super::error::RedisStoreError;

/// How long one server is asked. There are others.
const PATIENCE: Duration = Duration::from_millis(500);

/// Slots from one to another, both included, and the primary that has them.
pub(super) type Range = (u16, u16, Endpoint);

/// Asks a server, on a connection for this one question: who is asked, and whether he is still
/// there, changes just when there is something to ask.
pub(super) async fn ask(address: &Address) -> Result<Vec<Range>, RedisStoreError> {
    let place = address.place();
    let answer = timeout(PATIENCE, async {
        let (mut connection, driver) = connect::open(address)
            .await
            .map_err(|error| RedisStoreError::connecting(&place, error))?;
        let driver = tokio::spawn(driver);
        let mut command = Cmd::new();
        command.arg("CLUSTER").arg("SLOTS");
        let answer = command.query_async::<Value>(&mut connection).await;
        driver.abort();
        answer.map_err(|error| RedisStoreError::calling(&place, error))
    });
    let Ok(answer) = answer.await else {
        return Err(RedisStoreError::late(&place, PATIENCE));
    };
    read(&address.endpoint, answer?).ok_or_else(|| RedisStoreError::unexpected_reply(&place))
}

/// `[[first, last, [host, port, …], replicas …], …]`
fn read(asked: &Endpoint, answer: Value) -> Option<Vec<Range>> {
    let Value::Array(ranges) = answer else {
        return None;
    };
    let ranges = ranges.into_iter().map(|range| {
        let Value::Array(range) = range else {
            return None;
        };
        let [
            Value::Int(first),
            Value::Int(last),
            Value::Array(primary),
            ..,
        ] = range.as_slice()
        else {
            return None;
        };
        let [host, Value::Int(port), ..] = primary.as_slice() else {
            return None;
        };
        let host = match host {
            Value::BulkString(host) => String::from_utf8_lossy(host).into_owned(),
            Value::SimpleString(host) => host.clone(),
            _ => String::new(),
        };
        let primary = asked.told(&host, u16::try_from(*port).ok()?);
        Some((
            u16::try_from(*first).ok()?,
            u16::try_from(*last).ok()?,
            primary,
        ))
    });
    ranges.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, port: i64) -> Value {
        let id = Value::BulkString(b"id".to_vec());
        let name = Value::BulkString(name.as_bytes().to_vec());
        Value::Array(vec![name, Value::Int(port), id])
    }

    #[test]
    fn primaries_are_read_and_replicas_passed_over() {
        let asked = Endpoint::tcp("seed", 7).expect("a host");
        let ranges = Value::Array(vec![
            Value::Array(vec![
                Value::Int(0),
                Value::Int(9),
                host("a", 1),
                host("b", 2),
            ]),
            Value::Array(vec![Value::Int(10), Value::Int(16_383), host("", 3)]),
        ]);
        let expected = vec![
            (0, 9, Endpoint::tcp("a:1", 0).expect("a host")),
            (10, 16_383, Endpoint::tcp("seed:3", 0).expect("a host")),
        ];
        assert_eq!(read(&asked, ranges), Some(expected));
    }

    #[test]
    fn anything_else_is_nonsense() {
        let asked = Endpoint::tcp("seed", 7).expect("a host");
        let short = Value::Array(vec![Value::Int(0), Value::Int(9)]);
        let port = Value::Array(vec![Value::Int(0), Value::Int(9), host("a", 70_000)]);
        for wrong in [
            Value::Nil,
            Value::Array(vec![short]),
            Value::Array(vec![port]),
        ] {
            assert_eq!(read(&asked, wrong), None);
        }
    }
}
