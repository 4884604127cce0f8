//! Command lines, split into words as a shell does, but run without one: the process is the server itself.

use std::fmt;
use std::path::Path;

use serde::Deserialize;

/// A command line of at least one word.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Words {
    text: String,
    words: Vec<String>,
}

impl TryFrom<String> for Words {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let words = shlex::split(&text)
            .ok_or_else(|| format!("the command is `{text}`, expected every quotation mark to be closed"))?;
        if words.first().is_none_or(String::is_empty) {
            return Err(format!("the command is `{text}`, expected a program's name"));
        }
        Ok(Self { text, words })
    }
}

/// As it was written.
impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Words {
    /// The words.
    #[must_use]
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Replaces how long the load lasts, if its words say that.
    pub(crate) fn set_duration(&mut self, duration: &str) {
        // hey's -z; with redis-benchmark -d is a size.
        let (short, long) = match self.words.first().map(String::as_str) {
            Some("hey") => ("-z", "--z"),
            Some("redis-benchmark") => return,
            _ => ("-d", "--duration"),
        };
        let mut index = 1;
        while index < self.words.len() {
            let word = &self.words[index];
            if (word == short || word == long) && index + 1 < self.words.len() {
                duration.clone_into(&mut self.words[index + 1]);
                index += 1;
            } else if word.starts_with(&format!("{long}=")) {
                self.words[index] = format!("{long}={duration}");
            } else if word.strip_prefix(short).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
                self.words[index] = format!("{short}{duration}");
            }
            index += 1;
        }
        let quoted = self.words.iter().map(|word| {
            let plain = word.chars().all(|c| c.is_alphanumeric() || "-=:/.,{}_".contains(c));
            let quoted = shlex::try_quote(word).map_or_else(|_| word.clone(), Into::into);
            if plain && !word.is_empty() { word.clone() } else { quoted }
        });
        self.text = quoted.collect::<Vec<_>>().join(" ");
    }

    /// Whether a word holds a text.
    #[must_use]
    pub fn mention(&self, text: &str) -> bool {
        self.words.iter().any(|word| word.contains(text))
    }

    /// The words of a load against a target: it comes behind the first one, the subcommand, and before a path that stands there,
    /// unless the words place the port themselves. `more` is added behind the target.
    #[must_use]
    pub fn aimed(&self, host: &str, port: u16, more: &[String]) -> Vec<String> {
        let number = port.to_string();
        let mut words: Vec<String> = self.words.iter().map(|word| word.replace("{port}", &number)).collect();
        let mut behind = 1;
        if !self.mention("{port}") {
            let path =
                if words.get(1).is_some_and(|word| word.starts_with('/')) { words.remove(1) } else { String::new() };
            words.insert(1, format!("{host}:{port}{path}"));
            behind = 2;
        }
        words.splice(behind..behind, more.iter().cloned());
        words
    }
}

/// Values for the places that a recipe cannot know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    pub(crate) port: u16,
    pub(crate) here: &'a Path,
    pub(crate) scratch: &'a Path,
}

impl Places<'_> {
    /// Puts them into a text.
    pub(crate) fn fill(&self, text: &str) -> String {
        let [here, scratch] = [self.here, self.scratch].map(|folder| folder.display().to_string());
        text.replace("{port}", &self.port.to_string()).replace("{here}", &here).replace("{scratch}", &scratch)
    }

    /// Puts them into a command. A program that is named by a relative path is looked for from the folder of the file,
    /// because the command runs elsewhere.
    pub(crate) fn command(&self, words: &Words) -> Vec<String> {
        let mut filled: Vec<String> = words.words.iter().map(|word| self.fill(word)).collect();
        if filled[0].contains('/') {
            filled[0] = self.here.join(&filled[0]).display().to_string();
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Words {
        Words::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn targets_are_put_in() {
        #[track_caller]
        fn check(text: &str, more: &[&str], expected: &str) {
            let more: Vec<String> = more.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(words(text).aimed("127.0.0.1", 7, &more).join(" "), expected);
        }
        check("redis -c 5 GET key:{key}", &[], "redis 127.0.0.1:7 -c 5 GET key:{key}");
        check("http /json -c 9", &["-q"], "http 127.0.0.1:7/json -q -c 9");
        check("redis GET a", &["--server-pid", "9"], "redis 127.0.0.1:7 --server-pid 9 GET a");
        check("http http://127.0.0.1:{port}/json -c 9", &["-q"], "http -q http://127.0.0.1:7/json -c 9");
    }

    #[test]
    fn durations_are_replaced() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            let mut words = words(text);
            words.set_duration("5s");
            assert_eq!(words.to_string(), expected);
        }
        check("redis -c 5 -d 1s GET 'a b'", "redis -c 5 -d 5s GET 'a b'");
        check("http --duration=1m /", "http --duration=5s /");
        check("wrk -t2 -d30 -c9 /d9", "wrk -t2 -d5s -c9 /d9");
        check("hey -z 3s -c 9 -d body /", "hey -z 5s -c 9 -d body /");
        check("redis-benchmark -n 100 -d 3", "redis-benchmark -n 100 -d 3");
        check("redis -n 100 GET a", "redis -n 100 GET a");
    }

    #[test]
    fn places_are_filled_in() {
        let places = Places { port: 7, here: Path::new("/h"), scratch: Path::new("/s") };
        let check = |text: &str, expected: &[&str]| assert_eq!(places.command(&words(text)), expected);
        check("redis-server --port {port} --dir {scratch}", &["redis-server", "--port", "7", "--dir", "/s"]);
        check("target/x '{here}/a b' ''", &["/h/target/x", "/h/a b", ""]);
        check("/bin/x", &["/bin/x"]);
    }
}
