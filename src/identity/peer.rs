//! The address of the TCP peer: [`PeerAddr`].

use std::net::SocketAddr;

use crate::head::RequestHead;

/// Peer address, as a request extension.
///
/// Insert it in servers that do not provide the address: hyper, TLS acceptors, the PROXY protocol.
/// axum provides it through `into_make_service_with_connect_info::<SocketAddr>()`, tonic on plain
/// TCP. This extension takes precedence over both.
///
/// ```
/// use http::Request;
/// use tollgate::RequestHead;
/// use tollgate::identity::{ClientIp, PeerAddr};
///
/// let mut request = Request::get("/").body(()).unwrap();
/// request.extensions_mut().insert(PeerAddr("203.0.113.9:54321".parse().unwrap()));
///
/// let client = ClientIp::default().locate(&RequestHead::of(&request)).unwrap();
/// assert_eq!(client.ip().to_string(), "203.0.113.9");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PeerAddr(pub SocketAddr);

/// Hides the address.
impl std::fmt::Debug for PeerAddr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PeerAddr(…)")
    }
}

impl From<SocketAddr> for PeerAddr {
    fn from(address: SocketAddr) -> Self {
        Self(address)
    }
}

/// Returns the peer address, if an extension of the request contains it.
///
/// The most explicit extension comes first. A missing extension costs a few nanoseconds.
#[inline]
pub(super) fn address<'a>(head: &RequestHead<'a>) -> Option<&'a SocketAddr> {
    let found = head.extension::<PeerAddr>().map(|peer| &peer.0);
    #[cfg(feature = "axum")]
    let found = found.or_else(|| axum_peer(head));
    let found = found.or_else(|| head.extension::<SocketAddr>());
    #[cfg(feature = "grpc")]
    let found = found.or_else(|| tonic_peer(head));
    found
}

#[cfg(feature = "axum")]
#[inline]
fn axum_peer<'a>(head: &RequestHead<'a>) -> Option<&'a SocketAddr> {
    use axum::extract::connect_info::{ConnectInfo, MockConnectInfo};

    let real = head.extension::<ConnectInfo<SocketAddr>>();
    let mock = || head.extension::<MockConnectInfo<SocketAddr>>();
    real.map(|info| &info.0)
        .or_else(|| mock().map(|info| &info.0))
}

#[cfg(feature = "grpc")]
fn tonic_peer<'a>(head: &RequestHead<'a>) -> Option<&'a SocketAddr> {
    let info = head.extension::<tonic::transport::server::TcpConnectInfo>()?;
    info.remote_addr.as_ref()
}
