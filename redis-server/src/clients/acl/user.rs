//! A user: passwords, and what it may do.

use super::password::PasswordHash;
use super::rule::{Defaults, RuleError, SetError, merged};
use super::selector::{Asked, Denied, Selector};
use crate::config::Level;
use crate::protocol::error::shown;

/// A user as it is at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    enabled: bool,
    no_password: bool,
    /// Whether RESTORE's payloads are checked in full, where the user's rules say anything of it.
    sanitize: Option<bool>,
    passwords: Vec<PasswordHash>,
    /// The user's own rules.
    root: Selector,
    selectors: Vec<Selector>,
}

impl User {
    /// One that may do nothing.
    pub fn new(defaults: Defaults) -> Self {
        Self {
            enabled: false,
            no_password: false,
            sanitize: None,
            passwords: Vec::new(),
            root: Selector::new(defaults),
            selectors: Vec::new(),
        }
    }

    /// One that may do everything, without a password.
    pub fn everything() -> Self {
        let root = Selector::everything();
        Self { enabled: true, no_password: true, sanitize: None, passwords: Vec::new(), root, selectors: Vec::new() }
    }

    /// The user that these rules make of this one.
    ///
    /// # Errors
    /// The first word that is wrong.
    pub fn changed(&self, words: &[&[u8]], defaults: Defaults) -> Result<Self, SetError> {
        let mut user = self.clone();
        for word in merged(words)? {
            let wrong = |error| SetError::Rule(shown(&word).into_owned(), error);
            user.apply(&word, defaults).map_err(wrong)?;
        }
        Ok(user)
    }

    /// [`User::changed`] with one password instead of those that it has; an empty one is none.
    pub fn with_password(&self, password: &[u8]) -> Self {
        let passwords = if password.is_empty() { Vec::new() } else { vec![PasswordHash::of(password)] };
        Self { no_password: password.is_empty(), passwords, ..self.clone() }
    }

    /// Follows one rule.
    pub(super) fn apply(&mut self, word: &[u8], defaults: Defaults) -> Result<(), RuleError> {
        match word.to_ascii_lowercase().as_slice() {
            // As in the genuine server, a blank word is none.
            b"" => {}
            b"on" => self.enabled = true,
            b"off" => self.enabled = false,
            b"nopass" => {
                self.no_password = true;
                self.passwords.clear();
            }
            b"resetpass" => {
                self.no_password = false;
                self.passwords.clear();
            }
            b"sanitize-payload" => self.sanitize = Some(true),
            b"skip-sanitize-payload" => self.sanitize = Some(false),
            b"clearselectors" => self.selectors.clear(),
            b"reset" => *self = Self { sanitize: Some(true), ..Self::new(defaults) },
            [b'>', ..] => self.add_password(PasswordHash::of(&word[1..])),
            [b'#', ..] => self.add_password(PasswordHash::parse(&word[1..]).ok_or(RuleError::BadHash)?),
            [b'<', ..] => return self.remove_password(&PasswordHash::of(&word[1..])),
            [b'!', ..] => {
                return self.remove_password(&PasswordHash::parse(&word[1..]).ok_or(RuleError::BadHash)?);
            }
            [b'(', rules @ .., b')'] => {
                let mut selector = Selector::new(defaults);
                let rules = &word[1..=rules.len()];
                for rule in rules.split(u8::is_ascii_whitespace).filter(|rule| !rule.is_empty()) {
                    // A selector that is told back would seem to end here.
                    if rule.ends_with(b")") {
                        return Err(RuleError::Syntax);
                    }
                    selector.apply(rule, defaults.registry)?;
                }
                self.selectors.push(selector);
            }
            _ => self.root.apply(word, defaults.registry)?,
        }
        Ok(())
    }

    fn add_password(&mut self, hash: PasswordHash) {
        if !self.passwords.contains(&hash) {
            self.passwords.push(hash);
        }
        self.no_password = false;
    }

    fn remove_password(&mut self, hash: &PasswordHash) -> Result<(), RuleError> {
        let at = self.passwords.iter().position(|known| known == hash).ok_or(RuleError::NoSuchPassword)?;
        self.passwords.remove(at);
        Ok(())
    }

    /// Whether it may authenticate.
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Whether any password is right.
    pub fn has_no_password(&self) -> bool {
        self.no_password
    }

    /// Whether this is its password, in a time that does not tell how nearly.
    pub fn accepts(&self, password: &[u8]) -> bool {
        let hash = PasswordHash::of(password);
        let right = self.passwords.iter().fold(false, |right, known| right | known.matches(&hash));
        self.enabled && (self.no_password || right)
    }

    /// Its own rules, and the selectors beside them.
    pub fn selectors(&self) -> (&Selector, &[Selector]) {
        (&self.root, &self.selectors)
    }

    fn all_selectors(&self) -> impl Iterator<Item = &Selector> {
        std::iter::once(&self.root).chain(&self.selectors)
    }

    /// Whether nothing needs to be checked.
    pub fn is_unrestricted(&self) -> bool {
        self.all_selectors().any(Selector::is_everything)
    }

    /// Whether one of its selectors allows all of a call.
    ///
    /// # Errors
    /// Of what the selectors do not allow, what comes last: the call was allowed furthest.
    pub fn allow(&self, asked: &Asked<'_>) -> Result<(), Denied> {
        let mut worst = Denied::Database(0);
        for selector in self.all_selectors() {
            match selector.allow(asked) {
                Ok(()) => return Ok(()),
                Err(denied) => worst = worst.max(denied),
            }
        }
        Err(worst)
    }

    /// Whether a selector that allows the call lets it read every key, which SORT needs for BY and GET.
    pub fn reads_all_keys(&self, asked: &Asked<'_>) -> bool {
        self.all_selectors().any(|selector| selector.reads_all_keys() && selector.allow(asked).is_ok())
    }

    /// Whether it may have subscribed to a channel, or to a pattern.
    pub fn may_listen(&self, name: &[u8], is_pattern: bool) -> bool {
        self.all_selectors().any(|selector| selector.allows_channel(name, is_pattern))
    }

    /// Whether it may use every channel.
    pub fn uses_all_channels(&self) -> bool {
        self.all_selectors().any(Selector::uses_all_channels)
    }

    /// Whether one of its selectors does not allow all databases.
    pub fn is_kept_out_of_databases(&self) -> bool {
        self.all_selectors().any(|selector| !selector.uses_all_databases())
    }

    /// Whether its payloads are taken for granted where `sanitize-dump-payload clients` is set.
    pub fn skips_sanitizing(&self) -> bool {
        self.sanitize == Some(false)
    }

    /// Its flags, as ACL GETUSER names them. Of a user of whom nothing was said Redis tells since 7.2 that payloads are sanitized, and Valkey nothing.
    pub fn flags(&self, level: Level) -> impl Iterator<Item = &'static str> {
        let sanitize = self.sanitize.or_else(|| (level.is_72() && !level.is_valkey()).then_some(true));
        let sanitize = sanitize.map(|on| if on { "sanitize-payload" } else { "skip-sanitize-payload" });
        let state = if self.enabled { "on" } else { "off" };
        std::iter::once(state).chain(self.no_password.then_some("nopass")).chain(sanitize)
    }

    /// The hashes of its passwords.
    pub fn passwords(&self) -> &[PasswordHash] {
        &self.passwords
    }

    /// The words that make it, those of each selector in parentheses.
    pub fn describe(&self, level: Level) -> Vec<u8> {
        let mut out = Vec::new();
        for flag in self.flags(level) {
            out.extend_from_slice(flag.as_bytes());
            out.push(b' ');
        }
        for password in &self.passwords {
            out.extend_from_slice(format!("#{password} ").as_bytes());
        }
        self.root.describe(&mut out);
        for selector in &self.selectors {
            out.extend_from_slice(b" (");
            selector.describe(&mut out);
            out.push(b')');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &[&str] = &[
        "on",
        "off",
        "nopass",
        ">a",
        "<a",
        ">b",
        "resetpass",
        "reset",
        "allkeys",
        "resetkeys",
        "~a*",
        "~b",
        "%R~a*",
        "%W~c",
        "%R",
        "%RW~",
        "~",
        "~)",
        "~(",
        "&*",
        "&a",
        "&a*",
        "resetchannels",
        "alldbs",
        "resetdbs",
        "db=0",
        "DB=3,1,3",
        "db=,1",
        "db=-1",
        "allcommands",
        "-@all",
        "+@read",
        "-@read",
        "+@write",
        "-@slow",
        "+@connection",
        "+get",
        "-get",
        "+client",
        "-client|id",
        "+client|id",
        "-client",
        "+config|get",
        "-config",
        "+debug|a",
        "+debug|b",
        "-debug",
        "+select|0",
        "(~x",
        "+set",
        "-@dangerous)",
        "(+get)",
        "()",
        "(",
        ")",
        "(~a &b +@all)",
        "(db=2 +@all)",
        "(%R~a) b)",
        "clearselectors",
        "sanitize-payload",
        "skip-sanitize-payload",
        "",
        "nonesuch",
        "+nonesuch",
        "~a b",
    ];

    /// The description of any user defines the same user again, so that a file neither loses nor adds anything.
    #[test]
    fn user_descriptions_recreate_the_same_user() {
        let mut seed = 11_u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        let mut made = 0;
        for round in 0..20_000 {
            let defaults = Defaults { registry: crate::commands::REGISTRY, all_channels: round % 2 == 0 };
            let words: Vec<&[u8]> = (0..1 + random(7)).map(|_| WORDS[random(WORDS.len())].as_bytes()).collect();
            let Ok(user) = User::new(defaults).changed(&words, defaults) else { continue };
            let told = user.describe(Level::Redis70);
            let again: Vec<&[u8]> = told.split(|byte| *byte == b' ').collect();
            let shown = String::from_utf8_lossy(&told);
            assert_eq!(User::new(defaults).changed(&again, defaults).as_ref(), Ok(&user), "{shown}");
            made += 1;
        }
        assert!(made > 2000, "{made}");
    }

    #[test]
    fn a_change_takes_effect_as_a_whole_or_not_at_all() {
        let defaults = Defaults { registry: crate::commands::REGISTRY, all_channels: false };
        let user = User::new(defaults);
        let check = |words: &[&str], expected: SetError| {
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            assert_eq!(user.changed(&words, defaults), Err(expected), "{words:?}");
        };
        let rule = |word: &str, error| SetError::Rule(word.to_owned(), error);
        check(&["on", "+nonesuch"], rule("+nonesuch", RuleError::Unknown));
        check(&["(~a", "+get"], SetError::Unmatched("(~a".to_owned()));
        check(&["(~a", "+nonesuch)"], rule("(~a +nonesuch)", RuleError::Unknown));
        check(&["(~a)", "b)"], rule("b)", RuleError::Syntax));
        check(&["<a"], rule("<a", RuleError::NoSuchPassword));
        check(&["#a"], rule("#a", RuleError::BadHash));
        check(&["~*", "~a"], rule("~a", RuleError::AllKeys));
        check(&["&*", "&a"], rule("&a", RuleError::AllChannels));
        for word in ["db=", "db=,0", "db=0,", "db=0,,1", "db=a", "db= 0", "db=+1", "db=0x1", "db=-"] {
            check(&[word], rule(word, RuleError::Syntax));
        }
        for word in ["db=-1", "db=0,2147483648", "db=99999999999999999999"] {
            check(&[word], rule(word, RuleError::DatabaseRange));
        }
    }
}
