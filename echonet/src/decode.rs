//! `echonet decode`: explains frames.

use std::io::{self, BufRead};

use echonet_lite::wire::Frame;

use crate::commands::Decode;
use crate::failure::Failure;
use crate::output::Output;
use crate::{frame, names};

/// Lines on standard input are no longer than this: the largest datagram, and room for spaces.
const LINE_MAX: usize = 1 << 18;

pub(crate) fn run(args: &Decode, out: &Output) -> Result<(), Failure> {
    let text = args.hex.join(" ");
    if !text.is_empty() && text != "-" {
        return explain(&text, out);
    }
    let mut failed = None;
    let mut count = 0_u64;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        count += 1;
        let result = if line.len() > LINE_MAX {
            Err(Failure::Input(format!("a line of {} bytes", line.len())))
        } else {
            explain(line, out)
        };
        match result {
            Err(Failure::Input(error)) => {
                eprintln!("frame {count}: {error}");
                failed = failed.or(Some(count));
            }
            result => result?,
        }
    }
    match (count, failed) {
        (0, _) => Err(Failure::Input("nothing to decode: give the bytes of a frame in hexadecimal".to_owned())),
        (_, Some(first)) => {
            Err(Failure::Input(format!("not all are frames; the first that is none is number {first}")))
        }
        (_, None) => Ok(()),
    }
}

fn explain(text: &str, out: &Output) -> Result<(), Failure> {
    let bytes = names::bytes(text)?;
    match Frame::parse(&bytes) {
        Ok(frame) => out
            .result(|| frame::json(&frame), || format!("{frame}\n  {}{}", frame::line(&frame), frame::details(&frame))),
        Err(error) => {
            if out.json {
                out.line(frame::error_json(&error, &bytes))?;
            }
            Err(Failure::Input(format!("no frame: {}", frame::fault(&error, &bytes))))
        }
    }
}
