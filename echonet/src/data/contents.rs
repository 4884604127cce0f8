//! The contents of a file of `--data`, checked.

use std::collections::BTreeMap;

use echonet_lite::class::Class;
use echonet_lite::wire::PropertySet;

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Data {
    pub(super) makers: BTreeMap<[u8; 3], &'static str>,
    pub(super) classes: Vec<&'static Class>,
    pub(super) variants: Vec<Variant>,
}

/// A class as the devices of a maker have it.
#[derive(Debug)]
pub(super) struct Variant {
    pub(super) maker: [u8; 3],
    /// The product code of these devices; none for all others of the maker.
    pub(super) product: Option<String>,
    pub(super) class: &'static Class,
    /// The properties that the file has.
    #[cfg_attr(
        not(any(feature = "mqtt", feature = "web")),
        expect(dead_code, reason = "only servers tell them from those of the tables")
    )]
    pub(super) own: PropertySet,
}

impl Data {
    /// The class as the devices of a maker, or those of a product code, have it.
    pub(super) fn variant(
        &self,
        class: &'static Class,
        maker: Option<[u8; 3]>,
        product: Option<&[u8]>,
    ) -> &'static Class {
        let product = product.map(|bytes| String::from_utf8_lossy(bytes).trim_end_matches(['\0', ' ']).to_owned());
        let is_of = |variant: &&Variant| variant.class.code == class.code && Some(variant.maker) == maker;
        let of_maker = || self.variants.iter().filter(is_of);
        let of_product = of_maker().find(|variant| variant.product.is_some() && variant.product == product);
        let found = of_product.or_else(|| of_maker().find(|variant| variant.product.is_none()));
        found.map_or(class, |variant| variant.class)
    }
}
