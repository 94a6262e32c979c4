//! Integration tests of the program `tollgate`: each starts the built program.

mod check;
mod explain;
mod guide;
mod support;
mod terminal;
