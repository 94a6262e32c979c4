//! axum-governor: governor per address, with IETF headers that cannot be switched off.

use std::net::IpAddr;
use std::num::NonZeroU32;

use axum_governor::extractor::PeerIp;
use axum_governor::{GovernorConfigBuilder, GovernorLayer, Quota};

pub const NAME: &str = "axum-governor";

pub const NOTE: &str = "axum-governor always writes headers; there is no row of it without.";

pub fn layer(amount: u32) -> GovernorLayer<IpAddr> {
    let amount = NonZeroU32::new(amount).expect("not zero");
    let config = GovernorConfigBuilder::default()
        .with_extractor(PeerIp::default())
        .expect_connect_info()
        .quota_default(Quota::requests_per_hour(amount))
        .finish();
    GovernorLayer::new(config.expect("valid settings"))
}
