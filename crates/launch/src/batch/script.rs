//! Job scripts: the default one, or the user's template.

use std::path::Path;

use gridrpc_config::small_text;

/// The default script.
const USUAL: &str = "{{options}}\n\n{{agent}}\n";
/// Placeholder for the batch system's options, one per line.
const OPTIONS: &str = "{{options}}";
/// Placeholder for the command that starts the agent.
const AGENT: &str = "{{agent}}";

/// Values to fill into a script.
#[derive(Debug)]
pub(crate) struct Parts {
    /// First lines of the default script.
    pub(crate) head: &'static str,
    /// Option lines for the batch system.
    pub(crate) options: Vec<String>,
    /// Whether the batch system reads options only before the first command.
    pub(crate) options_lead: bool,
    /// Shell lines that become the agent.
    pub(crate) agent: String,
}

/// Fills in a job script. `template`: the user's file.
pub(crate) fn filled(template: Option<&str>, parts: &Parts) -> Result<String, String> {
    let text = match template {
        None => format!("{}{USUAL}", parts.head),
        Some(file) => {
            let text = small_text(Path::new(file)).map_err(|error| {
                format!("the job script `{file}` cannot be read: {error}; `template` in grid.toml names it")
            })?;
            check(&text, parts.options_lead)
                .map_err(|why| format!("the job script `{file}` {why}"))?;
            text
        }
    };
    Ok(text.replace(OPTIONS, &parts.options.join("\n")).replace(AGENT, &parts.agent))
}

/// Checks that a user's script can be filled in; the error says what to change. `options_lead`: as in
/// [`Parts`].
fn check(text: &str, options_lead: bool) -> Result<(), String> {
    let Some(agent) = text.lines().position(|line| line.contains(AGENT)) else {
        return Err(format!(
            "does not say where the agent starts: write {AGENT} there, and {OPTIONS} where the lines of the \
             batch system are to be"
        ));
    };
    let is_place = |line: &str| line.trim_end() == OPTIONS;
    let Some(options) = text.lines().position(is_place) else {
        return Err(format!(
            "does not say where the lines of the batch system are to be: write {OPTIONS} in a line of its \
             own, before {AGENT}"
        ));
    };
    if options > agent {
        return Err(format!(
            "has {OPTIONS} in line {}, behind {AGENT}: write it before that",
            options + 1
        ));
    }
    let is_command = |line: &str| !line.trim().is_empty() && !line.starts_with('#');
    match text.lines().take(options).position(is_command).filter(|_| options_lead) {
        Some(command) => Err(format!(
            "has a command in line {}, behind which the batch system reads none of its own lines: write \
             {OPTIONS} before it",
            command + 1
        )),
        None => Ok(()),
    }
}

/// The shell in a template's first line; none if it names none or cannot be read.
pub(crate) fn shell(template: &str) -> Option<String> {
    let text = small_text(Path::new(template)).ok()?;
    let mut words = text.lines().next()?.strip_prefix("#!")?.split_ascii_whitespace();
    let program = words.next()?;
    match program.strip_suffix("/env") {
        Some(_) => words.next().map(|name| format!("/bin/{name}")),
        None => Some(program.to_owned()),
    }
}

/// The agent's option to wait for its ticket, for jobs that may be requeued: the job may restart before the
/// new ticket is written.
pub(crate) fn timeout_option(requeue: bool) -> &'static str {
    if requeue { " --patience 60" } else { "" }
}

/// Shell lines that run one agent and record how it ends. `number`: a shell word, the agent's number.
/// `before`: lines to run first. `options`: those of the agent, after its ticket.
pub(crate) fn recorded(
    program: &str,
    folder: &str,
    number: &str,
    before: &str,
    options: &str,
) -> String {
    let (program, folder) = (quoted(program), quoted(folder));
    format!(
        "tickets={folder}\n\
         agent={number}\n\
         {before}\
         {program} agent --ticket \"$tickets/$agent\"{options} \\\n    \
         >\"$tickets/$agent.out\" 2>&1 || status=$?\n\
         echo \"$status\" >\"$tickets/$agent.end\"\n\
         exit \"$status\""
    )
}

/// Whether `skip` names this option, with or without its value: `--time`, `-l`, `-l h_rt`.
pub(crate) fn is_left_out(skip: &[String], option: &str) -> bool {
    let name = |text: &str, end: char| text.split(end).next().unwrap_or_default().to_owned();
    let (whole, word) = (name(option, '='), name(option, ' '));
    skip.iter().map(|skipped| name(skipped, '=')).any(|skipped| skipped == whole || skipped == word)
}

/// Checks that gridrpc sets every option in `skip`; the error says which it does not. `known`: the options it
/// sets.
pub(crate) fn check_skip(skip: &[String], known: &[&str]) -> Result<(), String> {
    let name = |option: &str| option.split(['=', ' ']).next().unwrap_or_default().to_owned();
    match skip.iter().find(|skipped| !known.contains(&&*name(skipped))) {
        Some(skipped) => Err(format!(
            "`skip` names `{skipped}`, which is no option that gridrpc sets: it sets {}",
            known.join(", ")
        )),
        None => Ok(()),
    }
}

/// Quotes text as one word of a POSIX shell.
pub(crate) fn quoted(text: &str) -> String {
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
        Parts {
            head: "#!/bin/sh\n",
            options: vec!["#X -a".into(), "#X -b".into()],
            options_lead: true,
            agent: "exec it".into(),
        }
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
        let error = filled(Some("/dev/zero"), &parts()).unwrap_err();
        assert!(error.contains("it is not a regular file"), "{error}");
        let error = filled(Some("/etc/passwd"), &parts()).unwrap_err();
        assert!(error.contains("write {{agent}} there"), "{error}");
    }

    #[test]
    fn a_script_of_the_users_has_options_where_they_are_read() {
        let good = "#!/bin/sh\n# mine\n\n{{options}}\nmodule load gcc\n{{agent}}\n";
        assert_eq!(check(good, true), Ok(()));
        let late = "#!/bin/sh\nmodule load gcc\n{{options}}\n{{agent}}\n";
        assert_eq!(check(late, false), Ok(()));
        for (text, expected) in [
            (late, "has a command in line 2"),
            ("#!/bin/sh\n{{agent}}\n", "write {{options}} in a line of its own, before {{agent}}"),
            ("# {{options}} are missing\n{{agent}}\n", "write {{options}} in a line of its own"),
            ("{{agent}}\n{{options}}\n", "has {{options}} in line 2, behind {{agent}}"),
        ] {
            let why = check(text, true).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
    }

    #[test]
    fn options_are_left_out_by_their_names() {
        let skip: Vec<String> = ["--time=9", "-w", "-l h_rt"].map(str::to_owned).into();
        for option in ["--time=00:01:00", "--time", "-w e", "-l h_rt=60"] {
            assert!(is_left_out(&skip, option), "{option}");
        }
        for option in ["--times=1", "-V", "-l mem_free=1G", "-wd /tmp"] {
            assert!(!is_left_out(&skip, option), "{option}");
        }
    }

    #[test]
    fn what_is_left_out_has_to_be_there() {
        let known = ["--time", "-l"];
        let skip = |skip: &[&str]| skip.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
        assert_eq!(check_skip(&skip(&["--time=9", "-l h_rt"]), &known), Ok(()));
        let why = check_skip(&skip(&["--time", "--tim"]), &known).unwrap_err();
        assert!(why.contains("`skip` names `--tim`") && why.ends_with("--time, -l"), "{why}");
    }

    #[test]
    fn words_survive_the_shell() {
        assert_eq!(quoted("/a/b-c.d"), "/a/b-c.d");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
