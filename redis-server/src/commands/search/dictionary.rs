//! Dictionaries (FT.DICT…) and synonyms (FT.SYN…).

use super::create::named;
use super::lookup::{NO_INDEX, index_for, settle};
use super::words::Words;
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::protocol::error::Error;

/// `FT.DICTADD dictionary term [term …]`
pub(super) fn add(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let terms = args.from(2);
    let added = cx.instance().search.with_dictionary(args.at(1), |dictionary| {
        terms.iter().filter(|term| !term.is_empty() && dictionary.insert(Box::from(*term))).count()
    });
    cx.count_changes(added as u64);
    cx.reply.count(added);
    Ok(())
}

/// `FT.DICTDEL dictionary term [term …]`
pub(super) fn del(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let terms = args.from(2);
    let removed = cx
        .instance()
        .search
        .with_dictionary(args.at(1), |dictionary| terms.iter().filter(|term| dictionary.remove(*term)).count());
    cx.count_changes(removed as u64);
    cx.reply.count(removed);
    Ok(())
}

/// `FT.DICTDUMP dictionary`
pub(super) fn dump(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let dictionary = cx.instance().search.dictionary(args.at(1));
    let dictionary = dictionary.ok_or(Error::Static("could not open dict key"))?;
    cx.reply.set(dictionary.len());
    dictionary.iter().for_each(|term| cx.reply.bulk(term));
    Ok(())
}

/// `FT.SYNUPDATE index group [SKIPINITIALSCAN] term [term …]`
pub(super) fn syn_update(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let index = index_for(cx, args, NO_INDEX)?;
    let mut words = Words::new(args, 3);
    let skips_scan = words.take("SKIPINITIALSCAN");
    if words.is_empty() {
        return Err(Error::WrongArity("FT.SYNUPDATE".into()));
    }
    settle(cx);
    index.alter(|definition, engine| {
        engine.add_synonyms(args.at(2), words.rest());
        definition.commands.push(named(args, &index));
        Ok::<_, Error>(())
    })?;
    if !skips_scan {
        cx.instance().search.scan(&index, true);
    }
    cx.count_changes(1);
    cx.reply.ok();
    Ok(())
}

/// `FT.SYNDUMP index`
pub(super) fn syn_dump(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let index = index_for(cx, args, NO_INDEX)?;
    let engine = index.engine();
    let terms: Vec<(&[u8], Vec<&[u8]>)> =
        engine.schema().synonyms.iter().map(|(term, groups)| (term, groups.collect())).collect();
    cx.reply.map(terms.len());
    for (term, groups) in terms {
        cx.reply.bulk(term);
        cx.reply.array(groups.len());
        groups.iter().for_each(|group| cx.reply.bulk(group));
    }
    Ok(())
}
