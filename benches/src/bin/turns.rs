//! Runs one path of [`benches::loops`] a number of times: `turns NAME TURNS`; `turns` alone lists the paths, each with the
//! requests of a turn. `cargo xtask paths` counts what it executes.

use std::process::ExitCode;

use benches::loops::ALL;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, turns] = &arguments[..] else {
        if !arguments.is_empty() {
            return usage("expected two arguments");
        }
        ALL.iter().for_each(|(name, requests, _)| println!("{name} {requests}"));
        return ExitCode::SUCCESS;
    };
    let Some((_, _, make)) = ALL.iter().find(|(known, ..)| known == name) else {
        return usage(&format!("NAME {name}: no such path"));
    };
    let Ok(turns) = turns.parse::<u32>() else { return usage(&format!("TURNS {turns}: expected a number")) };
    let mut turn = make();
    let bytes: usize = (0..turns).map(|_| turn()).sum();
    println!("{bytes}");
    ExitCode::SUCCESS
}

fn usage(problem: &str) -> ExitCode {
    let names: Vec<&str> = ALL.iter().map(|(name, ..)| *name).collect();
    eprintln!("{problem}\nusage: turns NAME TURNS\nNAME is one of {}", names.join(", "));
    ExitCode::FAILURE
}
