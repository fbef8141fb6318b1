//! Job scripts: the usual one, or the user's own with places to fill in.

/// The usual script.
const USUAL: &str = "#!/bin/sh\n{{options}}\n\n{{agent}}\n";
/// Where the options of the batch system come, in lines of their own.
const OPTIONS: &str = "{{options}}";
/// Where the agent is started.
const AGENT: &str = "{{agent}}";

/// What is put into a script.
#[derive(Debug)]
pub(in crate::launcher) struct Parts {
    /// Lines that tell the batch system what is wanted.
    pub(in crate::launcher) options: Vec<String>,
    /// Lines of shell that become the agent.
    pub(in crate::launcher) agent: String,
}

/// The script of a job. `template`: a file with the user's own.
pub(in crate::launcher) fn filled(template: Option<&str>, parts: &Parts) -> Result<String, String> {
    let text = match template {
        None => USUAL.to_owned(),
        Some(file) => {
            let text = std::fs::read_to_string(file).map_err(|error| {
                format!("the job script `{file}` cannot be read: {error}; `template` in grid.toml names it")
            })?;
            if !text.contains(AGENT) {
                return Err(format!(
                    "the job script `{file}` does not say where the agent starts: write {AGENT} there, and \
                     {OPTIONS} where the lines of the batch system are to be"
                ));
            }
            text
        }
    };
    Ok(text.replace(OPTIONS, &parts.options.join("\n")).replace(AGENT, &parts.agent))
}

/// As one word of a POSIX shell.
pub(in crate::launcher) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> Parts {
        Parts { options: vec!["#X -a".into(), "#X -b".into()], agent: "exec it".into() }
    }

    #[test]
    fn the_usual_script_has_options_first() {
        let script = filled(None, &parts()).unwrap();
        assert_eq!(script, "#!/bin/sh\n#X -a\n#X -b\n\nexec it\n");
    }

    #[test]
    fn a_script_of_the_users_says_where_the_agent_starts() {
        let error = filled(Some("/no/script"), &parts()).unwrap_err();
        assert!(error.contains("/no/script") && error.contains("`template`"), "{error}");
        let error = filled(Some("/etc/passwd"), &parts()).unwrap_err();
        assert!(error.contains("write {{agent}} there"), "{error}");
    }

    #[test]
    fn words_survive_the_shell() {
        assert_eq!(quoted("/a/b-c.d"), "/a/b-c.d");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
