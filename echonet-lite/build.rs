//! Makes the class tables and the types of properties from `classes.tsv`.

#[path = "build/facts.rs"]
mod facts;
#[path = "build/names.rs"]
mod names;
#[path = "build/tables.rs"]
mod tables;
#[path = "build/types.rs"]
mod types;

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=classes.tsv");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    let text = fs::read_to_string("classes.tsv").expect("the package has its facts");
    let classes = facts::read(&text);
    let mut statics = tables::Statics::default();
    let mut out = String::new();
    for class in &classes {
        tables::class(&mut out, class, &mut statics);
    }
    tables::all(&mut out, &classes);
    types::modules(&mut out, &classes, &mut statics);
    statics.write(&mut out);
    let folder = env::var_os("OUT_DIR").expect("cargo says where");
    fs::write(Path::new(&folder).join("tables.rs"), out).expect("cargo's folder can be written to");
}
