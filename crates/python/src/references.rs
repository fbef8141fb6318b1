//! References of a function, as they were when it was pickled.

use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::buffer::View;

/// An object, one of its attributes, and the attribute's value.
type Attribute<'py> = (Bound<'py, PyAny>, Bound<'py, PyString>, Bound<'py, PyAny>);
/// A mapping; whether it must not gain keys; keys with their values; keys that it does not have.
type MappingParts<'py> =
    (Bound<'py, PyAny>, bool, Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>, Vec<Bound<'py, PyAny>>);

/// Detects whether the references of a function have changed, without pickling it.
///
/// Values are compared by identity, the contents of arrays by their hash.
#[pyclass(frozen, module = "gridrpc._native")]
pub struct References {
    /// Attributes of the function itself, which is not held.
    own: Vec<(Py<PyString>, Py<PyAny>)>,
    attributes: Vec<(Py<PyAny>, Py<PyString>, Py<PyAny>)>,
    mappings: Vec<Mapping>,
    lists: Vec<(Py<PyList>, Vec<Py<PyAny>>)>,
    /// Sets of plain values, each with a copy.
    sets: Vec<(Py<PyAny>, Py<PyAny>)>,
    arrays: Vec<Array>,
}

struct Mapping {
    object: Py<PyAny>,
    /// Whether additional keys count as a change.
    whole: bool,
    pairs: Vec<(Py<PyAny>, Py<PyAny>)>,
    absent: Vec<Py<PyAny>>,
}

struct Array {
    object: Py<PyAny>,
    shape: Py<PyAny>,
    hash: blake3::Hash,
}

impl Mapping {
    fn is_current(&self, py: Python<'_>) -> bool {
        let object = self.object.bind(py);
        let Ok(dict) = object.cast::<PyDict>() else {
            // The attributes of a class.
            return object.len().is_ok_and(|len| len == self.pairs.len())
                && self
                    .pairs
                    .iter()
                    .all(|(key, value)| object.get_item(key).is_ok_and(|now| now.is(value)));
        };
        if self.whole {
            let now = dict.iter().zip(&self.pairs);
            let mut now =
                now.map(|((key, value), (known, before))| key.is(known) && value.is(before));
            return dict.len() == self.pairs.len() && now.all(|same| same);
        }
        let has = |key: &Py<PyAny>, value: &Py<PyAny>| {
            dict.get_item(key).is_ok_and(|now| now.is_some_and(|now| now.is(value)))
        };
        self.pairs.iter().all(|(key, value)| has(key, value))
            && self.absent.iter().all(|key| dict.get_item(key).is_ok_and(|now| now.is_none()))
    }
}

impl Array {
    fn new(object: &Bound<'_, PyAny>) -> PyResult<Array> {
        let hash = blake3::hash(View::new(object)?.bytes());
        let shape = object.getattr("shape")?.unbind();
        Ok(Array { object: object.clone().unbind(), shape, hash })
    }

    fn is_current(&self, py: Python<'_>) -> PyResult<bool> {
        let object = self.object.bind(py);
        Ok(object.getattr("shape")?.eq(&self.shape)?
            && blake3::hash(View::new(object)?.bytes()) == self.hash)
    }
}

fn has(object: &Bound<'_, PyAny>, name: &Py<PyString>, value: &Py<PyAny>) -> bool {
    object.getattr(name).is_ok_and(|now| now.is(value))
}

#[pymethods]
impl References {
    #[new]
    fn new(
        own: Vec<(Bound<'_, PyString>, Bound<'_, PyAny>)>,
        attributes: Vec<Attribute<'_>>,
        mappings: Vec<MappingParts<'_>>,
        lists: Vec<Bound<'_, PyList>>,
        sets: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
        arrays: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<References> {
        let mapping = |(object, whole, pairs, absent): MappingParts<'_>| {
            let pairs = pairs.into_iter().map(|(key, value)| (key.unbind(), value.unbind()));
            let absent = absent.into_iter().map(Bound::unbind).collect();
            Mapping { object: object.unbind(), whole, pairs: pairs.collect(), absent }
        };
        let list = |list: Bound<'_, PyList>| {
            let items = list.iter().map(Bound::unbind).collect();
            (list.unbind(), items)
        };
        Ok(References {
            own: own.into_iter().map(|(name, value)| (name.unbind(), value.unbind())).collect(),
            attributes: attributes
                .into_iter()
                .map(|(object, name, value)| (object.unbind(), name.unbind(), value.unbind()))
                .collect(),
            mappings: mappings.into_iter().map(mapping).collect(),
            lists: lists.into_iter().map(list).collect(),
            sets: sets.into_iter().map(|(set, copy)| (set.unbind(), copy.unbind())).collect(),
            arrays: arrays
                .iter()
                .map(Array::new)
                .collect::<PyResult<_>>()
                .map_err(|error| PyValueError::new_err(error.to_string()))?,
        })
    }

    /// Whether nothing has changed, for the function with these references.
    pub fn are_current(&self, function: &Bound<'_, PyAny>) -> bool {
        let py = function.py();
        self.own.iter().all(|(name, value)| has(function, name, value))
            && self.mappings.iter().all(|mapping| mapping.is_current(py))
            && self.attributes.iter().all(|(object, name, value)| has(object.bind(py), name, value))
            && self.lists.iter().all(|(list, items)| {
                let list = list.bind(py);
                list.len() == items.len()
                    && list.iter().zip(items).all(|(now, before)| now.is(before))
            })
            && self.sets.iter().all(|(set, copy)| set.bind(py).eq(copy).unwrap_or(false))
            && self.arrays.iter().all(|array| array.is_current(py).unwrap_or(false))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for (_, value) in &self.own {
            visit.call(value)?;
        }
        for (object, _, value) in &self.attributes {
            visit.call(object)?;
            visit.call(value)?;
        }
        for mapping in &self.mappings {
            visit.call(&mapping.object)?;
            for (key, value) in &mapping.pairs {
                visit.call(key)?;
                visit.call(value)?;
            }
        }
        for (list, items) in &self.lists {
            visit.call(list)?;
            for item in items {
                visit.call(item)?;
            }
        }
        for (set, copy) in &self.sets {
            visit.call(set)?;
            visit.call(copy)?;
        }
        for array in &self.arrays {
            visit.call(&array.object)?;
        }
        Ok(())
    }
}
