//! One request: who, which rules, one decision.
