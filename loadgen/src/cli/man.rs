//! Manual pages (man(7)), made of what `--help` is made of.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use clap::{Arg, ArgAction, Command};

/// The pages of the command and of its subcommands: names and texts.
pub(super) fn pages(command: &Command) -> Vec<(String, String)> {
    let mut command = command.clone();
    // Usages and inherited options are only known to a command that is built.
    command.build();
    let name = command.get_name().to_owned();
    let subcommands = command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help");
    let pages = subcommands.map(|subcommand| (format!("{name}-{}", subcommand.get_name()), page(subcommand, &name)));
    let pages: Vec<_> = pages.collect();
    [vec![(name, page(&command, ""))], pages].concat()
}

/// Writes all pages into a folder, which is made if need be.
///
/// # Errors
/// Names the file that cannot be written.
pub(super) fn write(command: &Command, folder: &Path) -> Result<(), String> {
    let cannot =
        |path: &Path, error: &std::io::Error| format!("--to is `{}`, expected a folder ({error})", path.display());
    fs::create_dir_all(folder).map_err(|error| cannot(folder, &error))?;
    for (name, text) in pages(command) {
        let path = folder.join(format!("{name}.1"));
        fs::write(&path, text).map_err(|error| cannot(&path, &error))?;
    }
    Ok(())
}

/// The page of a command, or of a subcommand of `parent`.
fn page(command: &Command, parent: &str) -> String {
    let name =
        if parent.is_empty() { command.get_name().to_owned() } else { format!("{parent}-{}", command.get_name()) };
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(".TH {} 1 \"\" \"loadgen {version}\"\n", roff(&name.to_uppercase()));
    push(&mut page, ".SH NAME\n", &format!("{name} \\- {}", roff(about.trim_end_matches('.'))));
    let usage = command.clone().render_usage().to_string();
    page.push_str(".SH SYNOPSIS\n.nf\n");
    usage.lines().for_each(|line| push(&mut page, "", &roff(line.trim_start_matches("Usage:").trim())));
    page.push_str(".fi\n.SH DESCRIPTION\n");
    let description = command.get_long_about().map_or(about, ToString::to_string);
    description.split("\n\n").for_each(|part| push(&mut page, ".PP\n", &roff(&part.replace('\n', " "))));
    for (heading, options) in headings(command) {
        push(&mut page, ".SH ", &roff(&heading.to_uppercase()));
        options.into_iter().for_each(|option| entry(&mut page, &written(option), &explained(option)));
    }
    let subcommands: Vec<_> = command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help").collect();
    if !subcommands.is_empty() {
        page.push_str(".SH COMMANDS\n");
    }
    for subcommand in subcommands {
        let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
        entry(&mut page, &format!("{name}-{}(1)", subcommand.get_name()), &[about]);
    }
    if let Some(after) = command.get_after_help() {
        push(&mut page, ".SH NOTES\n", &roff(&after.to_string().replace('\n', " ")));
    }
    if !parent.is_empty() {
        push(&mut page, ".SH SEE ALSO\n", &format!("{}(1)", roff(parent)));
    }
    page
}

/// The options by their headings, in the order of the help.
fn headings(command: &Command) -> Vec<(String, Vec<&Arg>)> {
    let mut found: Vec<(String, Vec<&Arg>)> = Vec::new();
    for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
        let default = if argument.is_positional() { "Arguments" } else { "Options" };
        let heading = argument.get_help_heading().unwrap_or(default);
        match found.iter_mut().find(|(known, _)| known == heading) {
            Some((_, arguments)) => arguments.push(argument),
            None => found.push((heading.to_owned(), vec![argument])),
        }
    }
    found
}

/// `-c, --connections <N>`.
fn written(argument: &Arg) -> String {
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let takes_value = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    let values = argument.get_value_names().unwrap_or_default().iter().map(|name| format!("<{name}>"));
    let values: Vec<String> = if takes_value { values.collect() } else { Vec::new() };
    [names.join(", "), values.join(" ")].join(" ").trim().to_owned()
}

/// The effect of an option, and the rest of its help.
fn explained(argument: &Arg) -> Vec<String> {
    let help = argument.get_long_help().or_else(|| argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut parts = vec![help.replace('\n', " ")];
    let defaults: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if !defaults.is_empty() && argument.get_action().takes_values() {
        parts.push(format!("[default: {}]", defaults.join(" ")));
    }
    let aliases = argument.get_visible_aliases().unwrap_or_default();
    if !aliases.is_empty() {
        let aliases: Vec<_> = aliases.iter().map(|alias| format!("--{alias}")).collect();
        parts.push(format!("[aliases: {}]", aliases.join(", ")));
    }
    if let Some(variable) = argument.get_env() {
        parts.push(format!("[env: {}]", variable.to_string_lossy()));
    }
    let values: Vec<_> = argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    if !values.is_empty() && argument.get_action().takes_values() {
        parts.push(format!("[possible values: {}]", values.join(", ")));
    }
    parts
}

/// A name, and behind it lines about it.
fn entry(page: &mut String, name: &str, lines: &[String]) {
    push(page, ".TP\n.B ", &roff(name));
    for (place, line) in lines.iter().enumerate() {
        push(page, if place == 0 { "" } else { ".br\n" }, &roff(line));
    }
}

/// Adds a line behind a request; one that is empty would be a gap.
fn push(page: &mut String, request: &str, line: &str) {
    if !line.is_empty() {
        writeln!(page, "{request}{line}").expect("a string takes all");
    }
}

/// Escapes text that roff would read as commands.
fn roff(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_and_option_has_its_place() {
        let mut command = Cli::command();
        command.build();
        let pages = pages(&Cli::command());
        let text = |name: &str| &pages.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("{name}")).1;
        assert!(text("loadgen").contains(".B loadgen\\-redis(1)\n"), "{}", text("loadgen"));
        assert!(text("loadgen").contains("130 interrupted"), "{}", text("loadgen"));
        for subcommand in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
            let page = text(&format!("loadgen-{}", subcommand.get_name()));
            for option in subcommand.get_arguments().filter_map(Arg::get_long) {
                assert!(page.contains(&roff(&format!("--{option}"))), "{}: --{option}", subcommand.get_name());
            }
        }
        let redis = text("loadgen-redis");
        for part in [
            ".TH LOADGEN\\-REDIS 1 ",
            ".SH LOAD\n",
            ".B \\-c, \\-\\-connections <N>\nConnections, over all threads\n.br\n[default: 50]\n",
            ".br\n[aliases: \\-\\-pipeline, \\-\\-streams, \\-\\-window]\n",
            ".br\n[possible values: constant, poisson]\n",
            ".br\n[env: REDISCLI_AUTH]\n",
            ".SH SEE ALSO\nloadgen(1)\n",
        ] {
            assert!(redis.contains(part), "{part} is not in:\n{redis}");
        }
    }

    #[test]
    fn lines_are_text() {
        assert_eq!(roff(".a-b\\n"), "\\&.a\\-b\\en");
        assert_eq!(roff("'quoted'"), "\\&'quoted'");
    }
}
