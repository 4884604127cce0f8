//! FT.EXPLAIN and FT.EXPLAINCLI.

use super::queried;
use super::query::Common;
use super::words::Words;
use crate::command::{Args, Result};
use crate::exec::Ctx;
use crate::protocol::error::Error;

fn tree(cx: &Ctx<'_>, args: Args<'_>) -> Result<String> {
    let index = queried(cx, args)?;
    let (mut words, mut common) = (Words::new(args, 3), Common::new(cx));
    while !words.is_empty() {
        if !common.take(&mut words)? {
            return Err(Error::Message(format!("Unknown argument `{}`", words.shown())));
        }
    }
    index.note_dialect(common.dialect);
    let engine = index.engine();
    Ok(common.parse(&engine, args.at(2))?.explain(engine.schema()))
}

/// `FT.EXPLAIN index query [DIALECT dialect]`
pub(super) fn explain(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let tree = tree(cx, args)?;
    cx.reply.bulk(tree.as_bytes());
    Ok(())
}

/// `FT.EXPLAINCLI index query [DIALECT dialect]`
pub(super) fn explain_cli(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let tree = tree(cx, args)?;
    let lines: Vec<&str> = tree.split('\n').collect();
    // The last line of RediSearch's text is empty, and one more follows it.
    let lines = &lines[..lines.len() - usize::from(tree.ends_with("\n\n"))];
    cx.reply.array(lines.len());
    lines.iter().for_each(|line| cx.reply.simple(line));
    Ok(())
}
