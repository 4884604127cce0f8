//! Completions for bash.

use std::collections::BTreeSet;

/// A script that completes the flags that a program's help names, and else files.
pub(super) fn bash(program: &str, help: &str) -> String {
    let words = flags(help).into_iter().collect::<Vec<_>>().join("\n        ");
    let function = program.replace('-', "_");
    format!(
        "# Completions of {program} for bash, from its help.\n\
         _{function}() {{\n    \
             local flags=\"\n        {words}\n    \"\n    \
             case ${{COMP_WORDS[COMP_CWORD]}} in\n    \
             -*) mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"${{COMP_WORDS[COMP_CWORD]}}\") ;;\n    \
             *) mapfile -t COMPREPLY < <(compgen -f -- \"${{COMP_WORDS[COMP_CWORD]}}\") ;;\n    \
             esac\n\
         }}\n\
         complete -o filenames -F _{function} {program}\n"
    )
}

/// All long flags that begin a line, or stand behind a short one there.
fn flags(help: &str) -> BTreeSet<&str> {
    let heads = help.lines().filter(|line| line.starts_with(' ')).map(str::trim_start);
    let words = heads.filter_map(|line| {
        let long = if line.starts_with("--") { line } else { line.strip_prefix('-')?.split_once(", ")?.1 };
        long.split([' ', '=']).next()
    });
    words.filter(|word| word.starts_with("--")).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn flags_are_completed() {
        let help = "Usage: a [OPTIONS]\n\nOptions:\n  -h, --help\n          with --other\n      --listen <PLACE>\n  --port   a [1]\n";
        assert_eq!(flags(help).into_iter().collect::<Vec<_>>(), ["--help", "--listen", "--port"]);
        let ask = "COMP_WORDS=(a --l); COMP_CWORD=1; _a; echo \"${COMPREPLY[@]}\"";
        let output = Command::new("bash").args(["-c", &format!("{}\n{ask}", bash("a", help))]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "--listen\n", "{output:?}");
    }
}
