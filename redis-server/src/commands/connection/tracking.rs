//! CLIENT TRACKING and what belongs to it: client-side caching.

use bytes::Bytes;

use crate::clients::tracking::{Mode, Overlap};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::exec::run::tracking;
use crate::protocol::error::{Error, shown};

/// The options of CLIENT TRACKING.
#[derive(Default)]
struct Options {
    mode: Mode,
    redirect: Option<std::sync::Arc<crate::clients::client::ClientShared>>,
    prefixes: Vec<Bytes>,
}

impl Options {
    fn parse(cx: &Ctx<'_>, args: Args<'_>) -> Result<Self> {
        let mut options = Self::default();
        let mut at = 3;
        while at < args.len() {
            let has_value = at + 1 < args.len();
            if args.is(at, "redirect") && has_value {
                at += 1;
                if options.redirect.is_some() {
                    return Err(Error::Static("ERR A client can only redirect to a single other client"));
                }
                let target = u64::try_from(args.int(at)?).ok().and_then(|id| cx.instance().client(id));
                let missing = Error::Static("ERR The client ID you want redirect to does not exist");
                options.redirect = Some(target.ok_or(missing)?);
            } else if args.is(at, "prefix") && has_value {
                at += 1;
                options.prefixes.push(Bytes::copy_from_slice(args.at(at)));
            } else if args.is(at, "bcast") {
                options.mode.bcast = true;
            } else if args.is(at, "optin") {
                options.mode.optin = true;
            } else if args.is(at, "optout") {
                options.mode.optout = true;
            } else if args.is(at, "noloop") {
                options.mode.noloop = true;
            } else {
                return Err(Error::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }

    /// Whether the options go together, and with how the client tracks now.
    fn check(&self, now: Option<&crate::clients::tracking::Own>) -> Result {
        let (mode, before) = (self.mode, now.map(|own| own.tracker.mode()));
        let text = if !mode.bcast && !self.prefixes.is_empty() {
            "ERR PREFIX option requires BCAST mode to be enabled"
        } else if before.is_some_and(|before| before.bcast != mode.bcast) {
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it \
             with a different mode."
        } else if mode.bcast && (mode.optin || mode.optout) {
            "ERR OPTIN and OPTOUT are not compatible with BCAST"
        } else if mode.optin && mode.optout {
            "ERR You can't specify both OPTIN mode and OPTOUT mode"
        } else if before.is_some_and(|before| mode.optin && before.optout || mode.optout && before.optin) {
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it \
             with a different mode."
        } else {
            let none = Default::default();
            let overlap = Overlap::find(&self.prefixes, now.map_or(&none, |own| &own.prefixes));
            return overlap.map_or(Ok(()), |overlap| Err(overlaps(&overlap)));
        };
        Err(Error::Static(text))
    }
}

fn overlaps(overlap: &Overlap) -> Error {
    let (prefix, other) = (shown(&overlap.prefix), shown(&overlap.other));
    let which = if overlap.existing { "an existing" } else { "another provided" };
    Error::Message(format!(
        "ERR Prefix '{prefix}' overlaps with {which} prefix '{other}'. Prefixes for a single client must not overlap."
    ))
}

/// `CLIENT TRACKING ON | OFF [REDIRECT client-id] [PREFIX prefix …] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]`
pub(super) fn tracking(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let options = Options::parse(cx, args)?;
    if args.is(2, "on") {
        options.check(cx.client.tracking.as_deref())?;
        tracking::start(cx.instance(), cx.client, options.mode, options.redirect.as_ref(), options.prefixes);
    } else if args.is(2, "off") {
        tracking::stop(cx.instance(), cx.client);
    } else {
        return Err(Error::Syntax);
    }
    cx.reply.ok();
    Ok(())
}

/// `CLIENT CACHING YES | NO`
pub(super) fn caching(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let Some(own) = &mut cx.client.tracking else {
        return Err(Error::Static(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ));
    };
    let mode = own.tracker.mode();
    if args.is(2, "yes") && !mode.optin {
        return Err(Error::Static("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."));
    }
    if args.is(2, "no") && !mode.optout {
        return Err(Error::Static("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."));
    }
    if !args.is(2, "yes") && !args.is(2, "no") {
        return Err(Error::Syntax);
    }
    own.caching = true;
    cx.reply.ok();
    Ok(())
}

/// CLIENT GETREDIR
pub(super) fn getredir(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    cx.reply.int(redirect(cx));
    Ok(())
}

/// Number of the client that is told in this one's place: 0 if none is, -1 if it does not track.
fn redirect(cx: &Ctx<'_>) -> i64 {
    cx.client.tracking.as_ref().map_or(-1, |own| own.tracker.redirect() as i64)
}

/// CLIENT TRACKINGINFO
pub(super) fn trackinginfo(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let own = cx.client.tracking.as_deref();
    let mode = own.map(|own| own.tracker.mode()).unwrap_or_default();
    let caching = own.is_some_and(|own| own.caching);
    let flags = [
        (own.is_none(), "off"),
        (own.is_some(), "on"),
        (mode.bcast, "bcast"),
        (mode.optin, "optin"),
        (mode.optin && caching, "caching-yes"),
        (mode.optout, "optout"),
        (mode.optout && caching, "caching-no"),
        (mode.noloop, "noloop"),
        (cx.client.shared.has_flag(crate::clients::client::flag::TRACKING_BROKEN), "broken_redirect"),
    ];
    let set: Vec<&str> = flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
    cx.reply.map(3);
    cx.reply.bulk(b"flags");
    cx.reply.set(set.len());
    set.iter().for_each(|name| cx.reply.bulk(name.as_bytes()));
    cx.reply.bulk(b"redirect");
    cx.reply.int(redirect(cx));
    cx.reply.bulk(b"prefixes");
    cx.reply.array(own.map_or(0, |own| own.prefixes.len()));
    own.iter().flat_map(|own| &own.prefixes).for_each(|prefix| cx.reply.bulk(prefix));
    Ok(())
}
