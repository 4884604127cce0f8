//! FT.EXPLAIN and FT.EXPLAINCLI.

use super::find::Request;
use super::lookup::queried;
use super::words::Words;
use crate::command::{Args, Result};
use crate::exec::core::Ctx;

fn tree(cx: &Ctx<'_>, args: Args<'_>) -> Result<String> {
    let index = queried(cx, args)?;
    let mut request = Request::parse(cx, args.at(2), Words::new(args, 3))?;
    request.common.explains = true;
    let engine = index.engine();
    Ok(request.parsed(&engine)?.explain(engine.schema()))
}

/// `FT.EXPLAIN index query [option …]`, with the options of FT.SEARCH
pub(super) fn explain(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let tree = tree(cx, args)?;
    cx.reply.bulk(tree.as_bytes());
    Ok(())
}

/// `FT.EXPLAINCLI index query [option …]`
pub(super) fn explain_cli(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let tree = tree(cx, args)?;
    let lines: Vec<&str> = tree.split('\n').collect();
    // The last line of RediSearch's text is empty, and one more follows it.
    let lines = &lines[..lines.len() - usize::from(tree.ends_with("\n\n"))];
    cx.reply.array(lines.len());
    lines.iter().for_each(|line| cx.reply.simple(line));
    Ok(())
}
