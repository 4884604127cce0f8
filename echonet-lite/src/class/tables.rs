//! The tables, made from `classes.tsv` at build time.

use super::data::{Data, Unit};
use super::device_class::Class;
use super::property::Rule;
use super::table::*;
use super::typed::{Quantity, Record, Spec, states};
use crate::wire::{ClassCode, PropertySet};

include!(concat!(env!("OUT_DIR"), "/tables.rs"));

const _: () = assert!(is_sorted(ALL), "class::all promises it");

const fn is_sorted(classes: &[&Class]) -> bool {
    let mut at = 1;
    while at < classes.len() {
        if classes[at - 1].code.to_u16() >= classes[at].code.to_u16() {
            return false;
        }
        at += 1;
    }
    true
}
