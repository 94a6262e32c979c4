//! What the denied are told.
