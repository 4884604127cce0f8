//! FT.PROFILE: a query with the time that it took.

use super::words::Words;
use super::{aggregate, cursor, find, load, pipeline, queried, show};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::exec::core::clock::now_us;
use crate::protocol::Reply;
use crate::protocol::error::Error;

/// `FT.PROFILE index SEARCH|AGGREGATE [LIMITED] QUERY query [option …]`
pub(super) fn profile(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let index = queried(cx, args)?;
    let mut words = Words::new(args, 2);
    let is_search = words.take("SEARCH");
    if !is_search && !words.take("AGGREGATE") {
        return Err(Error::Static("No `SEARCH` or `AGGREGATE` provided"));
    }
    words.take("LIMITED");
    if !words.take("QUERY") {
        return Err(Error::Static("The QUERY keyword is expected"));
    }
    let query = words.need("QUERY")?;
    let began = now_us();
    let is_map = cx.reply.is_resp3();
    if is_search {
        let request = find::Request::parse(cx, query, words)?;
        let parsed = now_us();
        let deadline = super::current(cx, &request.common);
        let hits = find::run(cx, &index, &request, deadline)?;
        let definition = index.definition();
        let loaded = load::Loader::new(cx, cx.instance(), &definition, request.common.dialect, deadline)
            .load(&index, &request, hits);
        if !is_map {
            cx.reply.array(2);
        }
        show::hits_and(cx, &index, &request, &loaded, usize::from(is_map))?;
        times(cx.reply, began, parsed);
        return Ok(());
    }
    let request = pipeline::Request::parse(cx, query, words)?;
    let parsed = now_us();
    let mut rows = aggregate::run(cx, &index, &request)?;
    if !is_map {
        cx.reply.array(2);
    }
    cursor::show_rows(cx.reply, &mut rows, usize::MAX, usize::from(is_map));
    times(cx.reply, began, parsed);
    Ok(())
}

/// The times of the parts, in milliseconds. The engine does not tell its iterators apart.
fn times(reply: &mut Reply, began: u64, parsed: u64) {
    let ms = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1000.0;
    let ended = now_us();
    let times = [
        ("Total profile time", ms(began, ended)),
        ("Parsing time", ms(began, parsed)),
        ("Pipeline creation time", 0.0),
    ];
    let is_map = reply.is_resp3();
    if is_map {
        reply.simple("profile");
        reply.map(times.len());
    } else {
        reply.array(times.len());
    }
    for (name, time) in times {
        if !is_map {
            reply.array(2);
        }
        reply.simple(name);
        reply.double(time);
    }
}
