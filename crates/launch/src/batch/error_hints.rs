//! Why a batch system has not done what it was asked for, and what to do about it.

use super::commands::Failure;

/// What is known of the words of a batch system.
#[derive(Debug)]
pub(crate) struct ErrorHints {
    /// What people call it.
    pub(crate) system: &'static str,
    /// What is in the words of a command, in small letters, if nobody answers it.
    pub(crate) silent: &'static [&'static str],
    /// What to do then.
    pub(crate) silence: &'static str,
    /// What is in the words of a refusal, in small letters, and what to do. The first that fits holds.
    pub(crate) remedies: &'static [(&'static [&'static str], &'static str)],
    /// What its words are without what says nothing, on one line.
    pub(crate) told: fn(&str) -> String,
}

impl ErrorHints {
    /// What to do about these words, in small letters.
    fn remedy(&self, low: &str) -> Option<&'static str> {
        let fits = |parts: &[&str]| parts.iter().any(|part| low.contains(part));
        self.remedies.iter().find(|(parts, _)| fits(parts)).map(|(_, remedy)| *remedy)
    }

    /// What is told of a request that was not taken.
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
                let words = (self.told)(&words);
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

/// How the process of an agent has ended, as what its job did. `status`: as a shell has it.
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

/// Whether each line of a command's words has one of these parts; empty ones do not count.
pub(crate) fn each_line_has(words: &str, parts: &[&str]) -> bool {
    let has = |line: &str| parts.iter().any(|part| line.contains(part));
    words.lines().filter(|line| !line.trim().is_empty()).all(has)
}
