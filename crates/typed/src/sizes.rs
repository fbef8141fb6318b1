//! Sizes of the arrays of many items, item by item.

use gridrpc_idl::{ExtentError, Function, Kind, Values, extents};

use crate::Shape;
use crate::scalars::gives_sizes;

/// Computes the sizes of an item's arrays, unless they equal those of the previous item.
#[derive(Debug)]
pub struct Sizes<'f> {
    function: &'f Function,
    /// The scalars that sizes depend on, and their last values.
    named: Vec<(usize, Option<i64>)>,
    /// Whether sizes depend on elements of arrays, which are not compared.
    by_elements: bool,
    /// By parameter: dimensions in the order of the interface, and the shape, for arrays.
    last: Vec<Option<(Vec<u64>, Shape)>>,
}

impl<'f> Sizes<'f> {
    /// For the items of a function.
    #[must_use]
    pub fn new(function: &'f Function) -> Sizes<'f> {
        let parameters = || function.parameters.iter().enumerate();
        let is = |index: usize, array: bool| {
            matches!(function.parameters[index].kind, Kind::Array { .. }) == array
                && gives_sizes(function, index)
        };
        let named = parameters().filter(|(index, _)| is(*index, false));
        let named = named.map(|(index, _)| (index, None)).collect();
        let by_elements = parameters().any(|(index, _)| is(index, true));
        Sizes { function, named, by_elements, last: Vec::new() }
    }

    /// Forgets the previous item, so that the next one is not compared with it.
    pub fn forget(&mut self) {
        self.last.clear();
    }

    /// The dimensions and shapes, by parameter, of the item with these values, and whether they are new.
    ///
    /// # Errors
    /// When a size cannot be computed: the parameter and the reason.
    #[allow(clippy::type_complexity)] // a list, and whether it is new
    pub fn of(
        &mut self,
        values: &dyn Values,
    ) -> Result<(&[Option<(Vec<u64>, Shape)>], bool), (usize, ExtentError)> {
        let mut changed = self.by_elements || self.last.is_empty();
        for (index, before) in &mut self.named {
            let now = values.scalar(*index);
            changed |= now != *before;
            *before = now;
        }
        if changed {
            // Nothing is known if one of them fails.
            self.last.clear();
            let all = self.function.parameters.iter().enumerate();
            let fortran = self.function.fortran();
            let of = all.map(|(index, parameter)| {
                let Kind::Array { element, .. } = &parameter.kind else { return Ok(None) };
                let extents =
                    extents(self.function, index, values).map_err(|error| (index, error))?;
                let dimensions = extents.iter().map(|extent| extent.size).collect();
                let size = element.size().unwrap_or(1);
                Ok(Some((dimensions, Shape::new(extents, fortran, size))))
            });
            self.last = of.collect::<Result<_, _>>()?;
        }
        Ok((&self.last, changed))
    }
}
