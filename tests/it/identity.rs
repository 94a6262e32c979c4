//! Who is asking, also when they lie.
