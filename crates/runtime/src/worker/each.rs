//! `builtin/each`: one call that calls another function for many items.
//!
//! Arguments: the function's name, how many arguments an item has (at least 1), a limit in ns, and the
//! arguments of all items one after the other. Results: how many items have been done; for each how
//! many results it has, and those; and if an item failed, type and message of its error. Items behind
//! it are not run, nor are any begun when the limit has passed (0: there is none) or the results
//! leave no room for more.

use gridrpc_wire::Value;

use crate::sys::monotonic_ns;
use crate::worker::builtin;
use crate::worker::native::{Argument, NativeError, Results, call};

/// No item is begun with more results than that: a message has room for 65,535 values.
const MOST_RESULTS: usize = 50_000;

pub(super) fn each(arguments: &[Argument], results: &mut Results<'_>) -> Result<(), NativeError> {
    let [Argument::Text(name), width, limit, arguments @ ..] = arguments else {
        let takes = "it takes the name of a function, a number of arguments, a limit and arguments";
        return Err(NativeError::Arguments(takes.into()));
    };
    let function = builtin::find(name)
        .filter(|function| !std::ptr::fn_addr_eq(*function, each as builtin::Function));
    let function = function.ok_or_else(|| NativeError::UnknownFunction(name.clone()))?;
    let (width, limit) = (width.count("arguments of an item")?, limit.count("limit")? as u64);
    if width == 0 || !arguments.len().is_multiple_of(width) {
        let (given, wrong) = (arguments.len(), "are no whole number of items with");
        return Err(NativeError::Arguments(format!("{given} arguments {wrong} {width}")));
    }
    let until = if limit == 0 { u64::MAX } else { monotonic_ns().saturating_add(limit) };
    let all = results.len();
    results.push(Value::None);
    let mut done = 0;
    for item in arguments.chunks_exact(width) {
        // The values, the arguments of the next item returned, and room for an error.
        let full = results.len() > MOST_RESULTS || results.room() <= width + 1;
        if done > 0 && (full || limit != 0 && monotonic_ns() >= until) {
            break;
        }
        let own = results.len();
        results.push(Value::None);
        if let Err(error) = call(function, item, results) {
            results.cut(own);
            results.push(Value::Text(error.remote().name().into()));
            results.push(Value::Text(error.to_string()));
            break;
        }
        let count = results.len() - own - 1;
        results.replace(own, Value::Int(count as i64));
        done += 1;
    }
    results.replace(all, Value::Int(done));
    Ok(())
}
