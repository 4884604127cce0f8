//! The template of the process' title (`proc-title-template`).

/// Names in a template that stand for something.
pub(crate) const NAMES: [&str; 7] =
    ["title", "listen-addr", "server-mode", "port", "tls-port", "unixsocket", "config-file"];

/// The values of a template's variables.
type Values<'a> = &'a [(&'static str, String)];

/// The title that a template makes; blanks around it are left out. `None` if it names what there is not.
pub(crate) fn expand(template: &str, values: Values<'_>) -> Option<String> {
    let (mut title, mut rest) = (String::new(), template);
    while let Some(begin) = rest.find('{') {
        let (plain, named) = rest.split_at(begin);
        let (name, behind) = named[1..].split_once('}')?;
        title.push_str(plain);
        title.push_str(values.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())?);
        rest = behind;
    }
    title.push_str(rest);
    Some(title.trim_matches(' ').to_owned())
}

/// Whether a template says something, and names only what there is.
pub(super) fn is_template(text: &str) -> bool {
    !text.is_empty() && expand(text, &NAMES.map(|name| (name, String::new()))).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_expanded() {
        let values = NAMES.map(|name| (name, if name == "server-mode" { String::new() } else { name.to_uppercase() }));
        for (template, expected) in [
            ("{title} {listen-addr} {server-mode}", Some("TITLE LISTEN-ADDR")),
            ("{port}/{tls-port}: {config-file}", Some("PORT/TLS-PORT: CONFIG-FILE")),
            ("", Some("")),
            ("no name}", Some("no name}")),
            ("{title", None),
            ("{}", None),
            ("{nothing}", None),
        ] {
            assert_eq!(expand(template, &values).as_deref(), expected, "{template}");
            assert_eq!(is_template(template), expected.is_some_and(|_| !template.is_empty()), "{template}");
        }
    }
}
