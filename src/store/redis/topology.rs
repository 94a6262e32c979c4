//! Slot map as a node of the cluster reports it.

use std::time::Duration;

use redis::{Cmd, Value};

use super::address::Endpoint;
use super::error::{ErrorCause, RedisStoreError};
use super::queue::{QueuedCommand, RequestQueue};

/// Time that one node has to reply, connecting included. Short, because the next node is tried then.
const WITHIN: Duration = Duration::from_millis(500);

/// First and last slot, both included, and the primary that has them.
pub(super) type SlotRange = (u16, u16, Endpoint);

/// Loads the slot map from one node.
pub(super) async fn load(
    queue: &RequestQueue,
    endpoint: &Endpoint,
) -> Result<Vec<SlotRange>, RedisStoreError> {
    let mut command = Cmd::new();
    command.arg("CLUSTER").arg("SLOTS");
    let reply: Value = queue
        .enqueue(QueuedCommand::Plain(command), WITHIN)
        .value()
        .await?;
    read(endpoint, reply)
        .ok_or_else(|| RedisStoreError::new(queue.place(), ErrorCause::UnexpectedReply))
}

/// `[[first, last, [host, port, …], replicas …], …]`
fn read(source: &Endpoint, reply: Value) -> Option<Vec<SlotRange>> {
    let Value::Array(ranges) = reply else {
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
        let primary = source.resolve(&host, u16::try_from(*port).ok()?);
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
    fn primaries_are_read_and_replicas_ignored() {
        let source = Endpoint::tcp("seed", 7).expect("a host");
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
        assert_eq!(read(&source, ranges), Some(expected));
    }

    #[test]
    fn malformed_replies_are_rejected() {
        let source = Endpoint::tcp("seed", 7).expect("a host");
        let short = Value::Array(vec![Value::Int(0), Value::Int(9)]);
        let port = Value::Array(vec![Value::Int(0), Value::Int(9), host("a", 70_000)]);
        for wrong in [
            Value::Nil,
            Value::Array(vec![short]),
            Value::Array(vec![port]),
        ] {
            assert_eq!(read(&source, wrong), None);
        }
    }
}
