//! All users of a server.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::file::{self, FileError, LoadError};
use super::log::{Entry, Log};
use super::rule::{Defaults, SetError};
use super::user::User;
use crate::command::Registry;
use crate::config::{Config, Level, settings};

/// The user that clients are before they authenticate.
const DEFAULT: &[u8] = b"default";

/// A name, and the user that has it at the moment.
#[derive(Debug)]
pub struct Account {
    name: Box<[u8]>,
    user: RwLock<Arc<User>>,
    gone: AtomicBool,
}

impl Account {
    fn new(name: &[u8], user: User) -> Arc<Self> {
        Arc::new(Self { name: name.into(), user: RwLock::new(Arc::new(user)), gone: AtomicBool::new(false) })
    }

    /// The name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The user in force.
    pub fn user(&self) -> Arc<User> {
        Arc::clone(&self.user.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, user: User) -> Arc<User> {
        std::mem::replace(&mut *self.user.write().unwrap_or_else(PoisonError::into_inner), Arc::new(user))
    }

    /// Whether it has been removed: another account may have the name.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }
}

type Accounts = BTreeMap<Box<[u8]>, Arc<Account>>;

/// A user that has been replaced by another one.
#[derive(Debug)]
pub struct Change {
    /// The account of the user.
    pub account: Arc<Account>,
    /// The user in force now.
    pub after: Arc<User>,
}

/// All users of a server, and the log of what they were refused.
#[derive(Debug)]
pub struct Table {
    /// The commands that rules speak of.
    registry: &'static Registry,
    /// Grows with every change, after it; begins at 1.
    version: AtomicU64,
    /// Whether the default user needs no password.
    open: AtomicBool,
    /// Held for writing throughout a change.
    accounts: RwLock<Accounts>,
    default: Arc<Account>,
    log: Mutex<Log>,
}

impl Table {
    /// The users that the configuration defines, in its lines or in its file, and the default user.
    ///
    /// # Errors
    /// A line that cannot be followed, a file that cannot be read.
    pub fn from_config(config: &Config, registry: &'static Registry) -> Result<Self, LoadError> {
        let default = User::everything().with_password(&config.text(settings::REQUIREPASS));
        let default = Account::new(DEFAULT, default);
        let table = Self {
            registry,
            version: AtomicU64::new(1),
            open: AtomicBool::new(false),
            accounts: RwLock::new(BTreeMap::from([(default.name.clone(), Arc::clone(&default))])),
            default,
            log: Mutex::default(),
        };
        for (name, user) in file::from_lines(config, registry)? {
            table.put(&mut table.write(), &name, user);
        }
        if !config.text(settings::ACLFILE).is_empty() {
            table.load(config)?;
        }
        table.note_default();
        Ok(table)
    }

    /// The version, for the owners of cached permissions to compare.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Whether clients need not authenticate.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// The user that clients are before they authenticate.
    pub fn default_account(&self) -> &Arc<Account> {
        &self.default
    }

    /// The account of this name.
    pub fn account(&self, name: &[u8]) -> Option<Arc<Account>> {
        self.read().get(name).cloned()
    }

    /// All accounts by name.
    pub fn accounts(&self) -> Vec<Arc<Account>> {
        self.read().values().cloned().collect()
    }

    /// The account that name and password prove.
    pub fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<Arc<Account>> {
        let account = self.account(name);
        // A name that nobody has takes the same time.
        let user = account.as_ref().map_or_else(|| self.default.user(), |account| account.user());
        let accepts = user.accepts(password);
        account.filter(|_| accepts)
    }

    /// Changes a user by rules, or makes it.
    ///
    /// # Errors
    /// The first rule that is wrong; nothing has changed then.
    pub fn change(&self, name: &[u8], rules: &[&[u8]], config: &Config) -> Result<Change, SetError> {
        let defaults = Defaults::new(config, self.registry);
        let mut accounts = self.write();
        let before = accounts.get(name).map_or_else(|| Arc::new(User::new(defaults)), |account| account.user());
        let user = before.changed(rules, defaults)?;
        let change = self.put(&mut accounts, name, user);
        self.note_default();
        Ok(change)
    }

    /// Gives the default user this password alone, or none if it is empty: `CONFIG SET requirepass`.
    pub fn set_default_password(&self, password: &[u8]) {
        let mut accounts = self.write();
        let user = self.default.user().with_password(password);
        self.put(&mut accounts, DEFAULT, user);
        self.note_default();
    }

    /// Removes users, if none of them is the default one. Returns those that there were.
    pub fn remove<'a>(&self, names: impl Iterator<Item = &'a [u8]> + Clone) -> Option<Vec<Arc<Account>>> {
        if names.clone().any(|name| name == DEFAULT) {
            return None;
        }
        let mut accounts = self.write();
        let removed: Vec<_> = names.filter_map(|name| accounts.remove(name)).collect();
        removed.iter().for_each(|account| account.gone.store(true, Ordering::Release));
        self.note_default();
        Some(removed)
    }

    /// Replaces all users by those of the file. Returns the accounts that are gone, and the changes of those that are not: since level 7.2
    /// whoever is in the file stays logged in, before only the default user.
    ///
    /// # Errors
    /// If the file has an error; nothing has changed then.
    pub fn load(&self, config: &Config) -> Result<(Vec<Arc<Account>>, Vec<Change>), FileError> {
        let mut accounts = self.write();
        let mut users = file::load(config, self.registry)?;
        users.entry(DEFAULT.into()).or_insert_with(User::everything);
        let is_72 = config.level().is_72();
        let stays = |name: &[u8]| name == DEFAULT || is_72 && users.contains_key(name);
        let (stay, gone): (Accounts, Accounts) =
            std::mem::take(&mut *accounts).into_iter().partition(|(name, _)| stays(name));
        *accounts = stay;
        let changes = users.into_iter().map(|(name, user)| self.put(&mut accounts, &name, user)).collect();
        let gone: Vec<_> = gone.into_values().collect();
        gone.iter().for_each(|account| account.gone.store(true, Ordering::Release));
        self.note_default();
        Ok((gone, changes))
    }

    /// Writes all users to the file.
    ///
    /// # Errors
    /// The file cannot be written; it is as before then.
    pub fn save(&self, config: &Config) -> Result<(), FileError> {
        // Held meanwhile, so that two that save do not overtake each other.
        let accounts = self.write();
        let lines: Vec<Vec<u8>> = accounts.values().map(|account| Self::line(account, config.level())).collect();
        file::save(config, &lines)
    }

    /// The line that defines an account's user.
    pub fn line(account: &Account, level: Level) -> Vec<u8> {
        [b"user ".as_slice(), account.name(), b" ", &account.user().describe(level)].concat()
    }

    /// The lines that a configuration file needs to have these users: none where they have a file of their own. A default user that differs
    /// only by `requirepass` needs no line.
    pub fn config_lines(&self, config: &Config) -> Vec<Vec<u8>> {
        if !config.text(settings::ACLFILE).is_empty() {
            return Vec::new();
        }
        let plain = User::everything().with_password(&config.text(settings::REQUIREPASS));
        let is_plain = |account: &Arc<Account>| Arc::ptr_eq(account, &self.default) && *account.user() == plain;
        self.accounts()
            .iter()
            .filter(|account| !is_plain(account))
            .map(|account| Self::line(account, config.level()))
            .collect()
    }

    /// Notes something that was refused.
    pub fn log(&self, entry: Entry, config: &Config) {
        self.lock_log().add(entry, config.size(settings::ACLLOG_MAX_LEN));
    }

    /// The log.
    pub fn lock_log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, accounts: &mut Accounts, name: &[u8], user: User) -> Change {
        let account = accounts.entry(name.into()).or_insert_with(|| Account::new(name, User::everything()));
        account.replace(user);
        Change { account: Arc::clone(account), after: account.user() }
    }

    /// Ends a change, which then is visible to all threads.
    fn note_default(&self) {
        let user = self.default.user();
        self.open.store(user.is_enabled() && user.has_no_password(), Ordering::Release);
        // Sequential, for those who add what a change would withdraw: either they see the version, or it sees them.
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    fn read(&self) -> RwLockReadGuard<'_, Accounts> {
        self.accounts.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Accounts> {
        self.accounts.write().unwrap_or_else(PoisonError::into_inner)
    }
}
