//! Why a batch system refused a request, and how to fix it.

use super::commands::Failure;

/// Known messages of a batch system.
#[derive(Debug)]
pub(crate) struct ErrorHints {
    /// Its common name.
    pub(crate) system: &'static str,
    /// Parts of a command's output, in lower case, when the batch system does not answer.
    pub(crate) silent: &'static [&'static str],
    /// What to do in that case.
    pub(crate) silence: &'static str,
    /// Parts of a refusal's message, in lower case, each with a remedy. The first match applies.
    pub(crate) remedies: &'static [(&'static [&'static str], &'static str)],
    /// Reduces a message to one line without noise.
    pub(crate) message_of: fn(&str) -> String,
}

impl ErrorHints {
    /// The remedy for a message in lower case.
    fn remedy(&self, low: &str) -> Option<&'static str> {
        let fits = |parts: &[&str]| parts.iter().any(|part| low.contains(part));
        self.remedies.iter().find(|(parts, _)| fits(parts)).map(|(_, remedy)| *remedy)
    }

    /// The failure of a refused request, as users see it.
    pub(crate) fn explain(&self, failure: Failure) -> Failure {
        let ErrorHints { system, silence, .. } = self;
        match failure {
            Failure::Absent(why) => Failure::Absent(format!(
                "{why}; {system}'s commands are missing here: start this program on a login node of the \
                 cluster"
            )),
            Failure::Silent(words) => {
                let low = words.to_lowercase();
                let remedy = self.remedy(&low).unwrap_or(silence);
                Failure::Silent(format!("{system} does not answer: {words}; {remedy}"))
            }
            Failure::Refused(words) => {
                let words = (self.message_of)(&words);
                let low = words.to_lowercase();
                if self.silent.iter().any(|part| low.contains(part)) {
                    return self.explain(Failure::Silent(words));
                }
                let remedy =
                    self.remedy(&low).unwrap_or("`gridrpc script` shows what it was given");
                Failure::Refused(format!("{system} has refused the job: {words}; {remedy}"))
            }
        }
    }
}

/// How an agent's process ended, as the predicate of a sentence about its job. `status`: the shell's exit
/// status.
pub(crate) fn ended_with(status: u32) -> String {
    match status {
        0 => "ended by itself".to_owned(),
        127 => "ended with status 127: the program is not there on its node. The folder that `staging` names \
                has to be one that the nodes share"
            .to_owned(),
        126 => "ended with status 126: the program cannot be run on its node, whose file system may be \
                mounted `noexec`; name another folder by `staging`"
            .to_owned(),
        129..=192 => format!("was ended by signal {}", status - 128),
        status => format!("ended with status {status}"),
    }
}

/// Whether each non-empty line of a command's output contains one of these parts.
pub(crate) fn each_line_has(words: &str, parts: &[&str]) -> bool {
    let has = |line: &str| parts.iter().any(|part| line.contains(part));
    words.lines().filter(|line| !line.trim().is_empty()).all(has)
}
