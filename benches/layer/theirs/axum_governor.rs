//! axum-governor: governor per address, with IETF headers that cannot be switched off.

use std::net::IpAddr;
use std::num::NonZeroU32;

use axum_governor::extractor::PeerIp;
use axum_governor::{GovernorConfigBuilder, GovernorLayer, Quota};

use crate::work::interval;

pub const NAME: &str = "axum-governor";

pub const NOTE: &str = "axum-governor always writes headers; there is no row of it without.";

pub fn layer(amount: u32) -> GovernorLayer<IpAddr> {
    let per_hour = 3_600_f64 / interval(amount).as_secs_f64();
    let [amount, per_hour] =
        [amount, per_hour.ceil() as u32].map(|count| NonZeroU32::new(count).expect("not zero"));
    let config = GovernorConfigBuilder::default()
        .with_extractor(PeerIp::default())
        .expect_connect_info()
        .quota_default(Quota::requests_per_hour(per_hour).burst(amount))
        .finish();
    GovernorLayer::new(config.expect("valid settings"))
}
