//! Conversion of a function's results to the answer: one value per parameter.

use std::ffi::CStr;
use std::sync::Arc;

use gridrpc_idl::{Kind, Mode};
use gridrpc_link::payload::{Payload, PayloadBuilder};
use gridrpc_typed::{dtype, encode_texts, gather};
use gridrpc_wire::{Array, Order, Value, encode_values};

use crate::link::WorkerLink;
use crate::module::arguments::{Argument, Arguments, Backing};
use crate::module::error::CallError;
use crate::module::files::CallFile;

impl Arguments {
    /// Builds the answer. Every OUT and INOUT argument has one section, in order.
    pub(super) fn into_results(mut self, link: &WorkerLink) -> Result<Payload, CallError> {
        let goes = |mode| matches!(mode, Mode::Out | Mode::InOut);
        if !self.interface().parameters.iter().any(|parameter| goes(parameter.mode)) {
            return Ok(Payload::default());
        }
        let mut payload = link.payload();
        let mut values = Vec::with_capacity(self.arguments.len());
        let mut sections = 1_u16;
        let mut arguments = std::mem::take(&mut self.arguments);
        let mut result = Ok(());
        for (argument, parameter) in arguments.iter_mut().zip(&self.interface().parameters) {
            if !goes(parameter.mode) {
                values.push(Value::None);
                continue;
            }
            let element = match &parameter.kind {
                Kind::Array { element, .. } => *element,
                Kind::Scalar(of) => *of,
                Kind::Callback(_) => {
                    values.push(Value::None);
                    continue;
                }
            };
            result = add(&mut payload, argument).map_err(|error| {
                CallError::Memory(format!("result `{}`: {error}", parameter.name))
            });
            if result.is_err() {
                break;
            }
            values.push(match dtype(element) {
                Some(dtype) => Value::Array(Array {
                    dtype,
                    fortran: false,
                    shape: vec![argument.shape.selected() as u64],
                    section: sections,
                }),
                None => Value::Bytes(sections),
            });
            sections += 1;
        }
        self.arguments = arguments;
        result?;
        let mut bytes = Vec::new();
        encode_values(&values, Order::NATIVE, &mut bytes)
            .map_err(|error| CallError::Arguments(error.to_string()))?;
        payload.add_first(&bytes).map_err(|error| CallError::Memory(error.to_string()))?;
        Ok(payload.finish())
    }
}

/// Adds the result in one argument.
fn add(payload: &mut PayloadBuilder<'_>, argument: &mut Argument) -> std::io::Result<()> {
    let Argument { place, shape } = argument;
    match std::mem::replace(place, Backing::None) {
        Backing::Room(at) => {
            payload.add_argument(at, shape.bytes() as u64);
            Ok(())
        }
        Backing::Shared(lent) => {
            let len = shape.bytes() as u64;
            lent.is_written(len);
            payload.add_shared(Arc::new(lent), 0, len, len);
            Ok(())
        }
        Backing::Buffer(bytes) if shape.is_whole() => payload.add(&bytes),
        Backing::Buffer(bytes) => {
            payload.add_with(shape.selected_bytes(), |packed| gather(shape, &bytes, packed))
        }
        Backing::Texts(texts) => {
            let text = |pointer: &*mut std::ffi::c_char| {
                // SAFETY: null, or a C string that the function has left.
                (!pointer.is_null())
                    .then(|| unsafe { CStr::from_ptr(*pointer) }.to_bytes().to_vec())
            };
            let encoded =
                encode_texts(&texts.now().iter().map(text).collect::<Vec<_>>(), Order::NATIVE);
            // They are freed with the arguments.
            *place = Backing::Texts(texts);
            payload.add(&encoded)
        }
        Backing::Files(mut files, _) => {
            let contents: std::io::Result<Vec<_>> = files
                .iter_mut()
                .map(|file| file.as_mut().map(CallFile::content).transpose())
                .collect();
            payload.add(&encode_texts(&contents?, Order::NATIVE))
        }
        Backing::None | Backing::Scalar(_) | Backing::Section(_) => payload.add(&[]),
    }
}
