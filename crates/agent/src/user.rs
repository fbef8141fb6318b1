//! The user at the other end of a connection.

use std::fmt;
use std::sync::Arc;

use gridrpc_transport::certificates::Identity;
use gridrpc_transport::listener::Admitted;

/// How a user was recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// A process of this machine, by its user id.
    Local {
        /// The user id.
        uid: u32,
    },
    /// A certificate of a trusted authority, over TLS.
    Certificate(Identity),
}

/// The user at the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name: the certificate's, or the login name.
    pub name: Arc<str>,
    /// The groups that the certificate lists.
    pub groups: Vec<String>,
    /// Where the connection comes from: an address with a port, or `local`.
    pub address: String,
    /// How the user was recognised.
    pub proof: Proof,
}

impl User {
    /// A user of this machine.
    #[must_use]
    pub fn local(uid: u32) -> User {
        let found = nix::unistd::User::from_uid(uid.into()).ok().flatten();
        let name = found.map_or_else(|| format!("uid {uid}"), |user| user.name);
        let (groups, address) = (Vec::new(), "local".to_owned());
        User { name: name.into(), groups, address, proof: Proof::Local { uid } }
    }

    /// The user of an admitted certificate.
    pub(super) fn admitted(admitted: &Admitted) -> Option<User> {
        let identity = admitted.identity.clone()?;
        Some(User {
            name: identity.user.as_str().into(),
            groups: identity.groups.clone(),
            address: admitted.from.to_string(),
            proof: Proof::Certificate(identity),
        })
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.address)
    }
}
