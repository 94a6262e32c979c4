//! The schema that is published is that of the file.

use std::fs;
use std::path::Path;

/// Run with `BLESS=1` to write it.
#[test]
fn the_published_schema_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/tollgate.schema.json");
    let schema = tollgate::config::schema();
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &schema).unwrap();
    }
    let published = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(schema, published, "run the test with BLESS=1");
}
