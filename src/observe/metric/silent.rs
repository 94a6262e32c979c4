//! Without the feature `metrics`, nobody is told.

use std::time::Duration;

use super::Retried;
use crate::observe::counters::DecisionCounters;
use crate::observe::tick::Figures;

#[derive(Debug, Default)]
pub(in crate::observe) struct OfLayer {}

#[derive(Debug, Default)]
pub(in crate::observe) struct OfRetries {}

pub(in crate::observe) fn allowed(_: &DecisionCounters, _: impl FnOnce() -> Option<f64>) {}
pub(in crate::observe) fn denied(_: &DecisionCounters, _: &DecisionCounters) {}
pub(in crate::observe) fn would_deny(_: &DecisionCounters) {}
pub(in crate::observe) fn exempt(_: &'static str) {}
pub(in crate::observe) fn invalid_credentials(_: &'static str) {}
pub(in crate::observe) fn rejected(_: &'static str) {}
pub(in crate::observe) fn unavailable() {}
pub(in crate::observe) fn store_failed() {}
pub(in crate::observe) fn record_duration(_: &OfLayer, _: Duration, _: bool) {}
pub(in crate::observe) fn reloaded(_: u64) {}
pub(in crate::observe) fn reload_failed() {}
pub(in crate::observe) fn retried(_: &OfRetries, _: Retried) {}
pub(in crate::observe) fn looked(_: &OfLayer, _: &Figures) {}
pub(in crate::observe) fn version(_: &OfLayer, _: u64) {}
pub(in crate::observe) fn store(_: &OfLayer, _: bool, _: Option<u64>, _: u64) {}
