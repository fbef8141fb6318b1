//! Size of a call: its bytes and operations, from its arguments.

use gridrpc_client::CallLimits;
use gridrpc_idl::{Function, Kind, Mode, extents};

use crate::argument::ArgumentValue;
use crate::limit_exceeded::CallLimit;
use crate::sizes::{SizeInputs, known_scalars};

/// Bytes of a scalar in a message.
const SCALAR: u64 = 8;

/// Bytes and operations of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallSize {
    /// Bytes of the arguments.
    pub bytes_in: u64,
    /// Bytes of them that travel: all but shared data.
    pub bytes_sent: u64,
    /// Bytes of arrays that only the worker has.
    pub work: u64,
    /// Bytes of the results.
    pub bytes_out: u64,
    /// Operations, by `CalcOrder`; none: the interface has no such expression, or it has no value here.
    pub operations: Option<f64>,
}

impl CallSize {
    /// The first limit that the call exceeds by itself, with the required and the allowed amount.
    pub(crate) fn exceeded(&self, limits: &CallLimits) -> Option<(CallLimit, u64, u64)> {
        [
            (CallLimit::Bytes, Some(self.bytes_sent), limits.bytes),
            (CallLimit::Memory, Some(self.work), limits.memory),
            (CallLimit::Workers, limits.cores, limits.workers),
        ]
        .into_iter()
        .find_map(|(limit, value, allowed)| {
            let (value, allowed) = (value?, allowed?);
            (value > allowed).then_some((limit, value, allowed))
        })
    }
}

/// The size of a call with these arguments. Arguments that do not fit count as nothing: preparing the call reports them.
///
/// # Safety
/// Arrays without a known length must be as long as the interface says.
#[must_use]
pub unsafe fn size_of_call(function: &Function, given: &[ArgumentValue]) -> CallSize {
    let Ok(scalars) = known_scalars(function, given) else { return CallSize::default() };
    let known = SizeInputs { function, given, scalars: &scalars };
    let mut size = CallSize::default();
    for (index, (parameter, given)) in function.parameters.iter().zip(given).enumerate() {
        let bytes = match (&parameter.kind, given) {
            (_, ArgumentValue::Texts(texts)) => {
                texts.iter().flatten().map(|text| text.len() as u64 + SCALAR).sum()
            }
            (Kind::Scalar(_), _) => SCALAR,
            (Kind::Array { element, .. }, _) => {
                extents(function, index, &known).map_or(0, |extents| {
                    let selected = extents.iter().map(gridrpc_idl::Extent::selected);
                    let count = selected.fold(1, u64::saturating_mul);
                    count.saturating_mul(element.size().unwrap_or(1) as u64)
                })
            }
            (Kind::Callback(_), _) => 0,
        };
        if matches!(parameter.mode, Mode::In | Mode::InOut) {
            size.bytes_in = size.bytes_in.saturating_add(bytes);
            if !matches!(given, ArgumentValue::Shared(_)) {
                size.bytes_sent = size.bytes_sent.saturating_add(bytes);
            }
        }
        if parameter.mode == Mode::Work {
            size.work = size.work.saturating_add(bytes);
        }
        if matches!(parameter.mode, Mode::Out | Mode::InOut) {
            size.bytes_out = size.bytes_out.saturating_add(bytes);
        }
    }
    size.operations = function.cost.as_ref().and_then(|cost| cost.cost(&known).ok());
    size
}

#[cfg(test)]
mod tests {
    use gridrpc_typed::Scalar;

    use super::*;

    #[test]
    fn arrays_and_operations_follow_from_scalars() {
        let source = "Module m; Define solve(IN int n, IN double eps, INOUT double a[n][n], OUT int p[n], \
                      WORK double w[n][n]) \
                      CalcOrder 2 * n ^ 3 / eps { }";
        let module = gridrpc_idl::parse(source).module.unwrap();
        let function = &module.functions[0];
        let given = [
            ArgumentValue::Scalar(Scalar::Int(10)),
            ArgumentValue::Scalar(Scalar::Float(0.5)),
            ArgumentValue::Absent,
            ArgumentValue::Absent,
            ArgumentValue::Absent,
        ];
        // SAFETY: there are no arrays.
        let size = unsafe { size_of_call(function, &given) };
        assert_eq!((size.bytes_in, size.bytes_sent, size.work), (816, 816, 800));
        assert_eq!(size.bytes_out, 800 + 40);
        assert_eq!(size.operations, Some(4000.0));
        let absent = vec![ArgumentValue::Absent; 5];
        // SAFETY: there are no arrays.
        let unknown = unsafe { size_of_call(function, &absent) };
        assert_eq!((unknown.bytes_out, unknown.operations), (0, None));
    }

    #[test]
    fn a_call_may_need_as_much_as_is_allowed() {
        let size = CallSize { bytes_sent: 100, work: 50, ..CallSize::default() };
        let limits = |bytes, memory, workers, cores| CallLimits {
            bytes,
            memory,
            workers,
            cores,
            ..CallLimits::default()
        };
        assert_eq!(size.exceeded(&CallLimits::default()), None);
        assert_eq!(size.exceeded(&limits(Some(100), Some(50), Some(2), Some(2))), None);
        let found = size.exceeded(&limits(Some(99), Some(49), None, None));
        assert_eq!(found, Some((CallLimit::Bytes, 100, 99)));
        let found = size.exceeded(&limits(None, Some(49), None, None));
        assert_eq!(found, Some((CallLimit::Memory, 50, 49)));
        let found = size.exceeded(&limits(None, None, Some(1), Some(2)));
        assert_eq!(found, Some((CallLimit::Workers, 2, 1)));
        // How many workers a call takes may not be known.
        assert_eq!(size.exceeded(&limits(None, None, Some(1), None)), None);
    }
}
