//! Header families, as written and as read.
