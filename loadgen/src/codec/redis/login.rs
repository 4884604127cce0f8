//! The commands that a client sends first.

use super::command::append_request;

/// The commands that a client sends first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// RESP3 instead of RESP2.
    pub resp3: bool,
    /// The user, where it is not `default`.
    pub user: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// The database.
    pub database: u32,
    /// The client's name.
    pub name: Option<String>,
    /// Whether the connection asks for tracking of the keys it reads (client-side caching).
    pub tracking: bool,
}

impl Login {
    /// The commands, and how many replies they have.
    pub(crate) fn encode(&self) -> (Vec<u8>, u32) {
        let mut commands: Vec<Vec<&str>> = Vec::new();
        let database = self.database.to_string();
        if self.resp3 {
            commands.push(vec!["HELLO", "3"]);
        }
        if let Some(password) = &self.password {
            let mut auth = vec!["AUTH"];
            auth.extend(self.user.as_deref());
            auth.push(password);
            // Before HELLO: a server with a password refuses everything else.
            commands.insert(0, auth);
        }
        if self.database != 0 {
            commands.push(vec!["SELECT", &database]);
        }
        if let Some(name) = &self.name {
            commands.push(vec!["CLIENT", "SETNAME", name]);
        }
        if self.tracking {
            commands.push(vec!["CLIENT", "TRACKING", "ON"]);
        }
        let mut bytes = Vec::new();
        for words in &commands {
            append_request(words.iter().map(|word| word.as_bytes()), &mut bytes);
        }
        (bytes, commands.len() as u32)
    }
}
