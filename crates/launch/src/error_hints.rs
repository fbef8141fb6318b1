//! Why ssh failed to reach a host, and how to fix it.

/// Parts of ssh's messages and their meaning. The first match applies: the message for a changed key ends
/// like that for an unknown one. {host} and {ssh} are placeholders.
const REFUSALS: [(&[&str], &str); 9] = [
    (
        &["could not resolve hostname", "name or service not known"],
        "the host name {host} is not known here: see how it is written in grid.toml, or give it a `HostName` \
         in ssh's configuration",
    ),
    (
        &["connection refused"],
        "{host} refuses connections for ssh: see that sshd runs there, and whether it has another `Port`",
    ),
    (
        &["timed out", "timeout"],
        "{host} did not answer ssh in time: see that it is up, and that no firewall is between",
    ),
    (
        &["no route to host", "network is unreachable"],
        "there is no way from here to {host}: see that it is up and in a network that this machine \
         reaches, or name a `ProxyJump` in ssh's configuration",
    ),
    (
        &["host identification has changed"],
        "{host} shows another host key than before: if it was set up again, forget the old key by \
         `ssh-keygen -R {host}`; else somebody may be listening in between",
    ),
    (
        &["host key verification failed", "host key is known for"],
        "the host key of {host} is not known here: run `{ssh} {host} true` once by hand and compare \
         the key, or add it to ~/.ssh/known_hosts",
    ),
    (
        &["too many authentication failures"],
        "{host} gave up before it was shown the right key: name it by `IdentityFile`, with \
         `IdentitiesOnly yes`, in ssh's configuration",
    ),
    (
        &["permission denied"],
        "{host} does not let this user in without a password: put a public key of yours into \
         ~/.ssh/authorized_keys there (`ssh-copy-id {host}`), or have ssh-agent hold it",
    ),
    (
        &["connection closed by", "connection reset by", "kex_exchange_identification"],
        "{host} ended the connection before anybody could log in: it may have too many at once \
         (`MaxStartups` of sshd), or refuse this machine",
    ),
];

/// Why ssh did not get as far as the host. `lines`: its output, the last line at the end.
pub(super) fn refusal(host: &str, ssh: &str, lines: &[String]) -> String {
    let last = lines.iter().rev().find(|line| !line.is_empty());
    let Some(last) = last else {
        return format!(
            "ssh could not reach {host}, and does not say why; try `{ssh} {host} true`"
        );
    };
    let low: Vec<String> = lines.iter().map(|line| line.to_lowercase()).collect();
    let fits =
        |words: &&[&str]| words.iter().any(|word| low.iter().any(|line| line.contains(word)));
    match REFUSALS.iter().find(|(words, _)| fits(words)) {
        Some((_, text)) => {
            let text = text.replace("{host}", host).replace("{ssh}", ssh);
            // ssh's message about a changed key fills a page, which is reported as it arrives.
            format!("{text} (ssh: {last})")
        }
        None => format!("ssh could not reach {host}: {last}; try `{ssh} {host} true`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(lines: &[&str]) -> String {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        refusal("node1", "ssh -F mine", &lines)
    }

    #[test]
    fn what_ssh_says_becomes_advice() {
        for (line, advice) in [
            (
                "ssh: Could not resolve hostname node1: Name or service not known",
                "is not known here",
            ),
            ("ssh: connect to host node1 port 22: Connection refused", "refuses connections"),
            ("ssh: connect to host node1 port 22: Connection timed out", "did not answer"),
            ("ssh: connect to host node1 port 22: No route to host", "no way from here"),
            ("Host key verification failed.", "run `ssh -F mine node1 true` once by hand"),
            ("me@node1: Permission denied (publickey).", "ssh-copy-id node1"),
            ("kex_exchange_identification: Connection closed by remote host", "MaxStartups"),
        ] {
            let text = refused(&["Warning: something", line]);
            assert!(text.contains(advice) && text.contains(line), "{text}");
        }
    }

    #[test]
    fn a_changed_key_is_not_taken_for_an_unknown_one() {
        let text = refused(&[
            "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @",
            "Host key verification failed.",
        ]);
        assert!(text.contains("ssh-keygen -R node1"), "{text}");
    }

    #[test]
    fn what_is_not_known_is_passed_on() {
        let text = refused(&["Bad owner or permissions on /home/me/.ssh/config", ""]);
        assert!(text.contains("node1: Bad owner or permissions on"), "{text}");
        assert!(refused(&[]).contains("does not say why"));
    }
}
