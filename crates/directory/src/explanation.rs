//! Explanation of a choice: the predicted time of a call on each server, with all terms.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use gridrpc_idl::{Function, Kind, Mode, Values, extents};
use gridrpc_placement::{ASSUMED_BANDWIDTH, Candidate, Policy, Work, choose, shares};
use gridrpc_typed::parse_interface;
use serde_json::Value;

/// Bytes of a scalar in a message.
const SCALAR: f64 = 8.0;

/// Values of a function's scalars, by name, as a user writes them.
#[derive(Clone, Debug, Default)]
pub struct Arguments(pub BTreeMap<String, f64>);

struct SizeInputs<'k> {
    function: &'k Function,
    arguments: &'k Arguments,
}

impl Values for SizeInputs<'_> {
    fn scalar(&self, parameter: usize) -> Option<i64> {
        self.real(parameter).filter(|value| value.fract() == 0.0).map(|value| value as i64)
    }

    fn element(&self, _: usize, _: u64) -> Option<i64> {
        None
    }

    fn real(&self, parameter: usize) -> Option<f64> {
        self.arguments.0.get(&self.function.parameters[parameter].name).copied()
    }
}

/// Bytes and operations of a call. Sizes that need arguments which are not given do not count.
fn work_of(function: &Function, arguments: &Arguments) -> Work {
    let known = SizeInputs { function, arguments };
    let (mut bytes_in, mut bytes_out) = (0.0, 0.0);
    for (index, parameter) in function.parameters.iter().enumerate() {
        let bytes = match &parameter.kind {
            Kind::Scalar(_) => SCALAR,
            Kind::Array { element, .. } => {
                let selected = extents(function, index, &known).map_or(0.0, |extents| {
                    extents.iter().map(|extent| extent.selected() as f64).product()
                });
                selected * element.size().unwrap_or(1) as f64
            }
            Kind::Callback(_) => 0.0,
        };
        if matches!(parameter.mode, Mode::In | Mode::InOut) {
            bytes_in += bytes;
        }
        if matches!(parameter.mode, Mode::Out | Mode::InOut) {
            bytes_out += bytes;
        }
    }
    let cost = function.cost.as_ref().and_then(|cost| cost.cost(&known).ok());
    Work { bytes_in, bytes_out, operations: cost.unwrap_or(1.0) }
}

/// Explains which server a client without measurements chooses. `lookup`: the answer of a directory.
#[must_use]
pub fn explain(lookup: &Value, arguments: &Arguments, policy: Policy) -> String {
    let name = lookup["function"].as_str().unwrap_or_default();
    let interface = lookup["interface"].as_str();
    let module = interface.and_then(|text| parse_interface(text, Path::new("the directory")).ok());
    let own = name.split_once('/').map_or(name, |(_, own)| own);
    let function = module.as_ref().and_then(|module| module.function(own));
    let work = function.map_or(Work { operations: 1.0, ..Work::default() }, |function| {
        work_of(function, arguments)
    });
    let has_cost = function.is_some_and(|function| function.cost.is_some());
    let offers = lookup["offers"].as_array().map_or(&[][..], Vec::as_slice);
    let number = |offer: &Value, key: &str| offer[key].as_f64().unwrap_or(0.0);
    let is = |offer: &Value, key: &str| offer[key].as_bool().unwrap_or(false);
    // The client keeps to the interface of the first server.
    let first = offers.iter().find_map(|offer| offer["signature"].as_str());
    let differs = |offer: &Value| {
        offer["signature"].as_str().is_some_and(|signature| Some(signature) != first)
    };
    let candidates: Vec<Candidate> = offers
        .iter()
        .map(|offer| Candidate {
            // Without `CalcOrder`, the speed is in calls per second.
            speed: if has_cost { number(offer, "speed") } else { 1.0 },
            load: number(offer, "load"),
            age: number(offer, "age"),
            cores: number(offer, "cores").max(1.0),
            own_load: 0.0,
            wait: 0.0,
            queue: 0.0,
            bandwidth_in: ASSUMED_BANDWIDTH,
            bandwidth_out: ASSUMED_BANDWIDTH,
            bytes_there: 0.0,
            is_full: is(offer, "is_full") || is(offer, "is_silent") || differs(offer),
            is_measured: false,
        })
        .collect();
    let shares = match policy {
        Policy::LeastTime => shares(&work, &candidates),
        _ => Vec::new(),
    };
    let share = |index: usize| shares.get(index).copied().unwrap_or(0.0);
    let chosen = choose(policy, &work, &candidates, 0).map(|drawn| {
        // The first of those with the largest share.
        let larger = |one: usize, other: usize| if share(other) > share(one) { other } else { one };
        if share(drawn) > 0.0 { (0..shares.len()).reduce(larger).unwrap_or(drawn) } else { drawn }
    });
    let mut text = String::new();
    if let Some(function) = function {
        let _ = writeln!(text, "{name}: {}", function.signature());
        let missing: Vec<&str> = function
            .parameters
            .iter()
            .filter(|one| matches!(&one.kind, Kind::Scalar(of) if of.is_integer()))
            .map(|one| one.name.as_str())
            .filter(|name| !arguments.0.contains_key(*name))
            .collect();
        if !missing.is_empty() {
            let _ = writeln!(
                text,
                "sizes are incomplete: add values, as in `{}=1000`",
                missing.join("=1000 ")
            );
        }
    } else {
        let _ = writeln!(text, "{name}: in Python, without an interface");
    }
    let operations = if has_cost {
        format!("{:.3e} operations", work.operations)
    } else {
        "no CalcOrder: a call is assumed to take 1 s on an idle server".to_owned()
    };
    let _ = writeln!(
        text,
        "{:.3e} bytes in, {:.3e} bytes out, {operations}; bandwidths assumed: {ASSUMED_BANDWIDTH:.2e} bytes/s\n",
        work.bytes_in, work.bytes_out
    );
    let _ = writeln!(
        text,
        "  {:16} {:24} {:>10} {:>7} {:>10} {:>10} {:>10} {:>10}  state",
        "server", "address", "speed", "load", "send", "run", "receive", "total"
    );
    for (index, (offer, candidate)) in offers.iter().zip(&candidates).enumerate() {
        let predicted = candidate.predict(&work);
        let part = format!("{:.0} % of calls", 100.0 * share(index));
        let is_part = share(index) > 0.0 && share(index) < 1.0;
        let state = match () {
            () if chosen == Some(index) && is_part => &format!("chosen for {part}"),
            () if chosen == Some(index) => "chosen",
            () if is_part => &part,
            () if is(offer, "is_silent") => "silent",
            () if differs(offer) => "another interface",
            () if candidate.is_full => "full",
            () => "",
        };
        let mark = if chosen == Some(index) { '*' } else { ' ' };
        let line = format!(
            "{mark} {:16} {:24} {:>10.2e} {:>7.2} {:>8.2e} s {:>8.2e} s {:>8.2e} s {:>8.2e} s  {state}",
            offer["name"].as_str().unwrap_or_default(),
            offer["address"].as_str().unwrap_or_default(),
            candidate.speed,
            candidate.load,
            predicted.send,
            predicted.run,
            predicted.receive,
            predicted.total(),
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if chosen.is_none() {
        text.push_str("\nno server takes the call now: all are full or silent\n");
    }
    for offer in offers.iter().filter(|offer| differs(offer)) {
        let _ = writeln!(
            text,
            "\n{} has another interface: {}",
            offer["address"].as_str().unwrap_or_default(),
            offer["signature"].as_str().unwrap_or_default()
        );
    }
    text
}
