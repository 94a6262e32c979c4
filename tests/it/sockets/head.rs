//! `HEAD`, whose answers have no body: over HTTP/2 one would end the stream with an error.

use tollgate::policy::Policy;

use super::{PLACES, start};
use crate::support::http::{echo, layer};
use crate::support::sockets::{Client, VERSIONS};

#[tokio::test]
async fn a_denied_head_has_the_headers_of_a_denied_get() {
    for version in VERSIONS {
        for place in PLACES {
            let (builder, _) = layer(Policy::builder().everyone("1/hour"));
            let server = start(echo(), &builder.build().unwrap(), place).await;
            let client = Client::new(version, server);
            assert_eq!(client.send("HEAD /", &[]).await.status, 200);

            let same_id = [("x-request-id", "same")];
            let head = client.send("HEAD /", &same_id).await;
            let get = client.send("GET /", &same_id).await;
            assert_eq!((head.status, head.body.as_str()), (429, ""));
            assert_eq!(get.status, 429);
            for (name, value) in &get.headers {
                let actual = head.headers.get(name);
                assert!(
                    actual == Some(value) || name == "date",
                    "{version:?}, around {place:?}: {name} is {actual:?}, not {value:?}"
                );
            }
        }
    }
}
