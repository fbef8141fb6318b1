//! Roles: who a user is, and what the configuration allows.

use std::ffi::CString;

use nix::unistd::{Gid, Group, Uid, User, geteuid, getgrouplist};

use crate::config::{CallSettings, Grants, Modules, ServerConfig};
use crate::limits::{Limit, Limits};

/// Weight of a user without any other.
const WEIGHT: u32 = 1;

/// What a user may do: each value is the user's own, else the largest of the user's groups, else that of everyone,
/// else built in.
#[derive(Clone, Debug, PartialEq)]
pub struct Role {
    /// Name of the user.
    pub user: String,
    /// Groups of the user.
    pub groups: Vec<String>,
    /// Modules that the user may call; built in: all.
    pub modules: Modules,
    /// Whether calls may send code; built in: no.
    pub code: bool,
    /// Whether the user may see metrics and the state of all users; built in: no.
    pub monitor: bool,
    /// Share of the workers, relative to other users.
    pub weight: u32,
    /// Priority of calls.
    pub priority: i32,
    /// Limits.
    pub limits: Limits,
}

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalUser {
    /// The login name, or `uid:NUMBER` without one.
    pub name: String,
    /// Names of the groups.
    pub groups: Vec<String>,
    /// Whether the user may control the server: the server's own user and root.
    pub is_administrator: bool,
}

impl Role {
    /// The role of a user with these groups.
    #[must_use]
    pub fn of(config: &ServerConfig, user: &str, groups: &[String]) -> Role {
        let tables = Tables {
            user: config.users.get(user),
            groups: groups.iter().filter_map(|group| config.groups.get(group)).collect(),
            everyone: &config.everyone,
        };
        let built_in = Limits::default();
        let limit = |read: fn(&Grants) -> Option<Limit>| tables.value(read, Limit::max);
        Role {
            user: user.to_owned(),
            groups: groups.to_vec(),
            modules: tables
                .value(|grants| grants.modules.clone(), Modules::union)
                .unwrap_or(Modules::All),
            code: tables.value(|grants| grants.code, |a, b| a || b).unwrap_or(false),
            monitor: tables.value(|grants| grants.monitor, |a, b| a || b).unwrap_or(false),
            weight: tables.value(|grants| grants.weight, u32::max).unwrap_or(WEIGHT),
            priority: tables.value(|grants| grants.priority, i32::max).unwrap_or(0),
            limits: Limits {
                calls: limit(|grants| grants.calls).unwrap_or(built_in.calls),
                queued: limit(|grants| grants.queued).unwrap_or(built_in.queued),
                bytes: limit(|grants| grants.bytes).unwrap_or(built_in.bytes),
                rate: tables.value(|grants| grants.rate, f64::max).unwrap_or(built_in.rate),
                workers: limit(|grants| grants.workers).unwrap_or(built_in.workers),
                cpu_seconds: limit(|grants| grants.cpu_seconds).unwrap_or(built_in.cpu_seconds),
                shared_bytes: limit(|grants| grants.shared_bytes).unwrap_or(built_in.shared_bytes),
            },
        }
    }

    /// Whether the user may call the functions of a module. `calls`: the settings of the module, if it has any.
    #[must_use]
    pub fn may_call(&self, module: &str, calls: Option<&CallSettings>) -> bool {
        let is_admitted = calls.is_none_or(|calls| calls.admits(&self.user, &self.groups));
        is_admitted && self.modules.contains(module)
    }
}

/// The tables that apply to a user.
struct Tables<'c> {
    user: Option<&'c Grants>,
    groups: Vec<&'c Grants>,
    everyone: &'c Grants,
}

impl Tables<'_> {
    /// The most specific value; `larger` combines those of groups.
    fn value<T>(
        &self,
        read: impl Fn(&Grants) -> Option<T>,
        larger: impl Fn(T, T) -> T,
    ) -> Option<T> {
        let of_groups = || self.groups.iter().filter_map(|grants| read(grants)).reduce(&larger);
        self.user.and_then(&read).or_else(of_groups).or_else(|| read(self.everyone))
    }
}

impl LocalUser {
    /// The user with this id.
    #[must_use]
    pub fn of(uid: u32) -> LocalUser {
        let is_administrator = uid == 0 || uid == geteuid().as_raw();
        let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
        let Some(user) = user else {
            return LocalUser { name: format!("uid:{uid}"), groups: Vec::new(), is_administrator };
        };
        LocalUser { groups: groups(&user.name, user.gid), name: user.name, is_administrator }
    }
}

fn groups(user: &str, first: Gid) -> Vec<String> {
    let Ok(user) = CString::new(user) else { return Vec::new() };
    let ids = getgrouplist(&user, first).unwrap_or_else(|_| vec![first]);
    let named = ids.into_iter().filter_map(|id| Group::from_gid(id).ok()?);
    named.map(|group| group.name).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::{Defaults, read};

    fn config(text: &str) -> ServerConfig {
        let defaults = Defaults {
            name: "here".into(),
            folder: PathBuf::from("/etc/gridrpc"),
            sockets: None,
            state: Some(PathBuf::from("/var/lib/gridrpc")),
            workers: 2,
            opentelemetry: std::collections::BTreeMap::new(),
        };
        read(text, "server.toml", &defaults).unwrap()
    }

    const ROLES: &str = "
[everyone]
modules = ['lapack']
calls = 1
rate = 0.5
weight = 2

[groups.staff]
modules = ['fft', 'blas']
calls = 8
bytes = '1 MiB'
rate = 10
priority = -3

[groups.guests]
modules = 'secret'
calls = 2
bytes = 'unlimited'
code = true
priority = -5

[users.ann]
calls = 4
code = false
modules = '*'
";

    fn role(user: &str, groups: &[&str]) -> Role {
        let groups: Vec<String> = groups.iter().map(|&group| group.into()).collect();
        Role::of(&config(ROLES), user, &groups)
    }

    fn named(names: &[&str]) -> Modules {
        Modules::Named(names.iter().map(|&name| name.into()).collect())
    }

    #[test]
    fn without_tables_users_may_call_all_modules_but_send_no_code() {
        let role = Role::of(&config(""), "ann", &[]);
        assert_eq!(role.modules, Modules::All);
        assert!(!role.code);
        assert_eq!((role.weight, role.priority), (1, 0));
        assert_eq!(role.limits, Limits::default());
    }

    #[test]
    fn the_users_own_values_are_first() {
        let ann = role("ann", &["staff", "guests"]);
        assert_eq!(ann.limits.calls, Limit::At(4));
        assert_eq!(ann.modules, Modules::All);
        assert!(!ann.code);
        assert_eq!(ann.limits.rate, 10.0);
        assert_eq!(ann.weight, 2);
    }

    #[test]
    fn the_largest_value_of_the_groups_is_next() {
        let bob = role("bob", &["staff", "guests", "unknown"]);
        assert_eq!(bob.limits.calls, Limit::At(8));
        assert_eq!(bob.limits.bytes, Limit::Unlimited);
        assert_eq!(bob.priority, -3);
        assert!(bob.code);
        assert_eq!(bob.modules, named(&["fft", "blas", "secret"]));
    }

    #[test]
    fn everyones_values_are_last() {
        let eve = role("eve", &[]);
        assert_eq!(eve.limits.calls, Limit::At(1));
        assert_eq!(eve.limits.rate, 0.5);
        assert_eq!(eve.modules, named(&["lapack"]));
        assert_eq!(eve.limits.bytes, Limit::Unlimited);
    }

    #[test]
    fn a_group_is_not_a_user_with_its_name() {
        assert_eq!(role("staff", &[]).limits.calls, Limit::At(1));
    }

    #[test]
    fn both_the_role_and_the_module_must_admit_a_user() {
        let config = config(
            "[modules.fft]\nusers = ['bob']\n[modules.blas]\ngroups = 'staff'\n[modules.free]\n\
             [everyone]\nmodules = ['fft', 'blas']",
        );
        let may = |user: &str, groups: &[String], module: &str| {
            Role::of(&config, user, groups).may_call(module, config.calls(module))
        };
        let staff = ["staff".to_owned()];
        assert!(may("bob", &[], "fft"));
        assert!(!may("ann", &staff, "fft"));
        assert!(may("ann", &staff, "blas"));
        assert!(!may("bob", &[], "blas"));
        assert!(!may("bob", &[], "free"));
    }

    #[test]
    fn local_users_have_their_login_names() {
        let root = LocalUser::of(0);
        assert_eq!(root.name, "root");
        assert!(root.groups.contains(&"root".to_owned()));
        assert!(root.is_administrator);
        let nobody = LocalUser::of(4_000_123_456);
        assert_eq!(nobody.name, "uid:4000123456");
        assert!(!nobody.is_administrator && nobody.groups.is_empty());
        assert!(LocalUser::of(geteuid().as_raw()).is_administrator);
    }
}
