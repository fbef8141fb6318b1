//! Client side of callbacks: decodes their arguments and encodes their results.

use std::sync::Arc;

use gridrpc_idl::{Function, Kind, Mode, Parameter, Type, callback_extents};
use gridrpc_link::payload::{Incoming, Payload, PayloadBuilder};
use gridrpc_typed::{Scalar, Scalars, Shape, callbacks, decode_texts, dtype, gather, scatter};
use gridrpc_wire::{Array, Order, Value, decode_values, encode_values};

use crate::results::converted;
use crate::target::Target;

/// One argument of a callback.
#[derive(Debug)]
pub enum CallbackValue {
    /// A number.
    Scalar(Scalar),
    /// A whole array with its dimensions. Changes by the callback are sent back if it is OUT or INOUT.
    Array {
        /// Its elements.
        elements: Vec<u8>,
        /// Its dimensions, in the order of the interface.
        dimensions: Vec<u64>,
    },
    /// Strings: one, or as many as an array of them has; `None` stands for NULL.
    Texts(Vec<Option<Vec<u8>>>),
}

/// Data of a call whose function calls back.
#[derive(Debug)]
pub struct CallbackFrame {
    target: Arc<Target>,
    scalars: Scalars,
}

/// The arguments of a callback, and the shapes needed to send them back.
type CallbackInput = (Vec<CallbackValue>, Vec<Shape>);

impl CallbackFrame {
    /// For calls of `target` with these scalars.
    #[must_use]
    pub fn new(target: Arc<Target>, scalars: Scalars) -> CallbackFrame {
        CallbackFrame { target, scalars }
    }

    /// The index among all parameters of callback parameter number `index`.
    #[must_use]
    pub fn parameter(&self, index: u16) -> Option<usize> {
        Some(callbacks(self.interface()).nth(usize::from(index))?.0)
    }

    fn interface(&self) -> &Function {
        self.target.interface()
    }

    /// Runs a callback: `call` receives its arguments, which come in this byte order, and changes them. Returns the
    /// results.
    ///
    /// # Errors
    /// When they do not match the interface, or `call` fails.
    pub fn run(
        &self,
        index: u16,
        (sections, order): (Vec<Incoming>, Order),
        payload: PayloadBuilder<'_>,
        call: impl FnOnce(&[Parameter], &mut [CallbackValue]) -> Result<(), String>,
    ) -> Result<Payload, String> {
        let callback = callbacks(self.interface()).nth(usize::from(index));
        let (number, own) = callback.ok_or("there is no such callback")?;
        let (mut values, shapes) = self.take(number, own, sections, order)?;
        call(own, &mut values)?;
        give(own, &values, &shapes, payload)
    }

    fn take(
        &self,
        number: usize,
        own: &[Parameter],
        mut sections: Vec<Incoming>,
        order: Order,
    ) -> Result<CallbackInput, String> {
        let came = match sections.first() {
            Some(values) => decode_values(values.bytes(), order)
                .map_err(|error| format!("broken arguments: {error}"))?,
            None => Vec::new(),
        };
        if came.len() != own.len() {
            return Err(format!("{} arguments came for {} parameters", came.len(), own.len()));
        }
        for value in &came {
            if let Value::Array(array) = value
                && order != Order::NATIVE
                && let Some(section) = sections.get_mut(usize::from(array.section))
            {
                let taken = std::mem::replace(section, Incoming::Bytes(Vec::new()));
                *section = converted(taken, array.dtype);
            }
        }
        let known = came.iter().map(|value| match value {
            Value::Int(value) => Some(*value),
            _ => None,
        });
        let known = self.scalars.behind(known.collect());
        let mut values = Vec::with_capacity(own.len());
        let mut shapes = Vec::with_capacity(own.len());
        for (index, (parameter, value)) in own.iter().zip(&came).enumerate() {
            let misfit = || format!("argument `{}` does not fit its interface", parameter.name);
            let content =
                |array: &Array| sections.get(usize::from(array.section)).map(Incoming::bytes);
            let texts = |section: u16, count: usize| {
                let section = sections.get(usize::from(section))?;
                decode_texts(section.bytes(), order, count)
            };
            let mut shape = Shape::new(Vec::new(), false, 1);
            values.push(match (&parameter.kind, value) {
                (Kind::Scalar(_), Value::Int(value)) => CallbackValue::Scalar(Scalar::Int(*value)),
                (Kind::Scalar(_), Value::Float(value)) => {
                    CallbackValue::Scalar(Scalar::Float(*value))
                }
                (Kind::Scalar(of), Value::Array(array)) => {
                    let bytes = content(array).ok_or_else(misfit)?;
                    CallbackValue::Scalar(Scalar::from_bytes(*of, bytes).ok_or_else(misfit)?)
                }
                (Kind::Scalar(_), Value::Bytes(section)) => {
                    CallbackValue::Texts(texts(*section, 1).ok_or_else(misfit)?)
                }
                (Kind::Array { element: Type::String, .. }, Value::Bytes(section)) => {
                    let extents = callback_extents(self.interface(), number, index, &known)
                        .map_err(|error| error.to_string())?;
                    let count = extents.iter().map(|extent| extent.size).product::<u64>();
                    let texts = texts(*section, count as usize).ok_or_else(misfit)?;
                    CallbackValue::Texts(texts)
                }
                (Kind::Array { element, .. }, value) => {
                    let extents = callback_extents(self.interface(), number, index, &known)
                        .map_err(|error| error.to_string())?;
                    let dimensions = extents.iter().map(|extent| extent.size).collect();
                    let fortran = self.interface().fortran();
                    shape = Shape::new(extents, fortran, element.size().unwrap_or(1));
                    let mut elements = Vec::new();
                    elements
                        .try_reserve_exact(shape.bytes())
                        .map_err(|_| format!("no memory for argument `{}`", parameter.name))?;
                    elements.resize(shape.bytes(), 0);
                    if let Value::Array(array) = value {
                        let bytes = content(array)
                            .filter(|bytes| bytes.len() == shape.selected_bytes())
                            .filter(|_| Some(array.dtype) == dtype(*element));
                        scatter(&shape, bytes.ok_or_else(misfit)?, &mut elements);
                    } else if parameter.mode != Mode::Out && parameter.mode != Mode::Work {
                        return Err(misfit());
                    }
                    CallbackValue::Array { elements, dimensions }
                }
                _ => return Err(misfit()),
            });
            shapes.push(shape);
        }
        Ok((values, shapes))
    }
}

/// Adds the callback's OUT and INOUT arguments.
fn give(
    own: &[Parameter],
    values: &[CallbackValue],
    shapes: &[Shape],
    mut payload: PayloadBuilder<'_>,
) -> Result<Payload, String> {
    let mut encoded = Vec::with_capacity(own.len());
    let mut section = 1_u16;
    for ((parameter, value), shape) in own.iter().zip(values).zip(shapes) {
        let goes = matches!(parameter.mode, Mode::Out | Mode::InOut);
        encoded.push(match (&parameter.kind, value) {
            (Kind::Array { element, .. }, CallbackValue::Array { elements, .. }) if goes => {
                payload
                    .add_with(shape.selected_bytes(), |packed| gather(shape, elements, packed))
                    .map_err(|error| error.to_string())?;
                section += 1;
                let dtype = dtype(*element).ok_or("a callback with a result of no numbers")?;
                let shape = vec![shape.selected() as u64];
                Value::Array(Array { dtype, fortran: false, shape, section: section - 1 })
            }
            _ => Value::None,
        });
    }
    let mut bytes = Vec::new();
    encode_values(&encoded, Order::NATIVE, &mut bytes).map_err(|error| error.to_string())?;
    payload.add_first(&bytes).map_err(|error| error.to_string())?;
    Ok(payload.finish())
}
