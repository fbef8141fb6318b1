//! Imports Python functions and classes in a process of their own, as workers do.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::config::PythonModule;

/// How long the imports of a module may take.
const LIMIT: Duration = Duration::from_secs(60);
/// Time between two looks at the process.
const PAUSE: Duration = Duration::from_millis(20);
/// Most bytes of its output.
const MOST: u64 = 64 << 10;

/// Imports each of its arguments, `module:name`, after a folder of `sys.path` for each line of the first one. Prints a
/// line for each that fails, and whatever the modules print to standard error.
const PROGRAM: &str = "
import importlib, os, sys
out = os.fdopen(os.dup(1), 'w')
os.dup2(2, 1)
sys.path[:0] = sys.argv[1].splitlines()
for name in sys.argv[2:]:
    module, _, attribute = name.partition(':')
    try:
        value = getattr(importlib.import_module(module), attribute)
        if not callable(value):
            raise TypeError('it cannot be called')
    except BaseException as error:
        print(f'`{name}`: {type(error).__name__}: {error}'.replace(chr(10), ' '), file=out, flush=True)
";

/// Imports the functions and classes of a module. Returns what cannot be imported.
pub(crate) fn import(interpreter: &str, name: &str, python: &PythonModule) -> Vec<String> {
    import_within(interpreter, name, python, LIMIT)
}

fn import_within(
    interpreter: &str,
    name: &str,
    python: &PythonModule,
    limit: Duration,
) -> Vec<String> {
    let folders: Vec<String> = python.path.iter().map(|path| path.display().to_string()).collect();
    let names = python.functions.iter().chain(&python.classes);
    let mut command = Command::new(interpreter);
    command.args(["-P", "-c", PROGRAM]).arg(folders.join("\n"));
    command.args(names.map(|name| format!("{}:{}", name.module, name.name)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let one_problem = |what: String| vec![format!("[python.{name}]: {what}")];
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            return one_problem(format!("the interpreter `{interpreter}` does not run: {error}"));
        }
    };
    let output = child.stdout.take();
    let reading = thread::spawn(move || {
        let mut text = String::new();
        let _ = output.map(|output| output.take(MOST).read_to_string(&mut text));
        text
    });
    let until = Instant::now() + limit;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < until => thread::sleep(PAUSE),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                // A process that it has started may hold the pipe, so its output is not waited for.
                return one_problem(format!(
                    "its imports have not ended within {} s: see what holds them up with `{interpreter} -c 'import \
                     MODULE'`",
                    limit.as_secs()
                ));
            }
        }
    };
    let text = reading.join().unwrap_or_default();
    let mut problems: Vec<String> =
        text.lines().map(|line| format!("[python.{name}]: cannot import {line}")).collect();
    if !status.success() && problems.is_empty() {
        problems =
            one_problem(format!("its imports end the interpreter `{interpreter}` ({status})"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PythonName;

    fn module(names: &[&str]) -> PythonModule {
        let read = |name: &&str| {
            let (module, name) = name.split_once(':').unwrap();
            PythonName { module: module.into(), name: name.into() }
        };
        PythonModule { functions: names.iter().map(read).collect(), ..PythonModule::default() }
    }

    #[test]
    fn each_name_that_cannot_be_imported_is_named() {
        let good = module(&["math:hypot", "statistics:median"]);
        assert_eq!(import("python3", "site", &good), Vec::<String>::new());
        let bad = module(&["math:hypotenuse", "no_such_module:f", "math:hypot", "math:pi"]);
        let problems = import("python3", "site", &bad);
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(
            problems[0].starts_with("[python.site]: cannot import `math:hypotenuse`: Attribute")
        );
        assert!(problems[1].contains("No module named 'no_such_module'"), "{problems:?}");
        assert!(problems[2].contains("it cannot be called"), "{problems:?}");
        let problems = import("/no/such/python", "site", &good);
        assert!(problems[0].contains("`/no/such/python` does not run"), "{problems:?}");
    }

    #[test]
    fn imports_that_hang_or_end_the_interpreter_are_problems() {
        let folder = std::env::temp_dir().join(format!("gridrpc-imports-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("hangs.py"), "import time; time.sleep(1000)").unwrap();
        std::fs::write(folder.join("ends.py"), "import os; os._exit(3)").unwrap();
        let path = vec![folder.clone()];
        let hangs = PythonModule { path: path.clone(), ..module(&["hangs:f"]) };
        let problems = import_within("python3", "site", &hangs, Duration::from_secs(1));
        assert!(problems[0].contains("have not ended within 1 s"), "{problems:?}");
        let ends = PythonModule { path, ..module(&["ends:f"]) };
        let problems = import("python3", "site", &ends);
        assert!(problems[0].contains("end the interpreter"), "{problems:?}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
