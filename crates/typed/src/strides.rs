//! Selected elements of an array: ranges and strides, packed for transfer.

use gridrpc_idl::Extent;

/// An array's dimensions, the slowest one first, and the size of its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    extents: Vec<Extent>,
    element: usize,
}

impl Shape {
    /// Creates a shape from dimensions in the order of the interface. `fortran`: the first one varies fastest.
    #[must_use]
    pub fn new(mut extents: Vec<Extent>, fortran: bool, element: usize) -> Shape {
        if fortran {
            extents.reverse();
        }
        Shape { extents, element }
    }

    /// Size of the whole array, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.extents.iter().map(|extent| extent.size as usize).product::<usize>() * self.element
    }

    /// Number of elements of the whole array.
    #[must_use]
    pub fn count(&self) -> usize {
        self.bytes() / self.element
    }

    /// Number of transferred elements.
    #[must_use]
    pub fn selected(&self) -> usize {
        self.extents.iter().map(|extent| extent.selected() as usize).product()
    }

    /// Number of transferred bytes.
    #[must_use]
    pub fn selected_bytes(&self) -> usize {
        self.selected() * self.element
    }

    /// Whether all elements are transferred.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.extents.iter().all(Extent::is_whole)
    }

    /// Calls `each` with the offset in the array, and the length, of each transferred run of bytes, in order.
    fn runs(&self, mut each: impl FnMut(usize, usize)) {
        if self.selected() == 0 {
            return;
        }
        // Trailing complete dimensions belong to the run.
        let whole = self.extents.iter().rev().take_while(|extent| extent.is_whole()).count();
        let (outer, inner) = self.extents.split_at(self.extents.len() - whole);
        let mut run: usize =
            inner.iter().map(|extent| extent.size as usize).product::<usize>() * self.element;
        let Some((last, outer)) = outer.split_last() else { return each(0, run) };
        let stride = run;
        let (mut step, mut count) = (last.step as usize, last.selected() as usize);
        if step == 1 {
            run *= count;
            (step, count) = (0, 1);
        }
        let mut strides = vec![0; outer.len()];
        let mut size = stride * last.size as usize;
        for (index, extent) in outer.iter().enumerate().rev() {
            strides[index] = size;
            size *= extent.size as usize;
        }
        let mut at: Vec<u64> = outer.iter().map(|extent| extent.start).collect();
        loop {
            let row: usize =
                at.iter().zip(&strides).map(|(at, stride)| *at as usize * stride).sum();
            let start = row + last.start as usize * stride;
            (0..count).for_each(|index| each(start + index * step * stride, run));
            let Some(dimension) = (0..outer.len())
                .rev()
                .find(|dimension| at[*dimension] + outer[*dimension].step < outer[*dimension].end)
            else {
                return;
            };
            at[dimension] += outer[dimension].step;
            for later in dimension + 1..outer.len() {
                at[later] = outer[later].start;
            }
        }
    }
}

/// Packs the transferred elements. `array` has [`Shape::bytes`] bytes, `packed` has [`Shape::selected_bytes`].
pub fn gather(shape: &Shape, array: &[u8], packed: &mut [u8]) {
    let mut at = 0;
    shape.runs(|start, len| {
        packed[at..at + len].copy_from_slice(&array[start..start + len]);
        at += len;
    });
}

/// Unpacks transferred elements into their places.
pub fn scatter(shape: &Shape, packed: &[u8], array: &mut [u8]) {
    let mut at = 0;
    shape.runs(|start, len| {
        array[start..start + len].copy_from_slice(&packed[at..at + len]);
        at += len;
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(size: u64, start: u64, end: u64, step: u64) -> Extent {
        Extent { size, start, end, step }
    }

    /// The same by a loop over all elements.
    fn expected(shape: &Shape) -> Vec<usize> {
        let mut indexes = vec![0];
        for extent in &shape.extents {
            let chosen: Vec<usize> = (extent.start..extent.end)
                .step_by(extent.step as usize)
                .map(|i| i as usize)
                .collect();
            let size = extent.size as usize;
            indexes = indexes
                .iter()
                .flat_map(|outer| chosen.iter().map(move |inner| outer * size + inner))
                .collect();
        }
        indexes
    }

    #[test]
    fn the_elements_that_travel_are_those_of_plain_loops() {
        let cases = [
            vec![extent(5, 0, 5, 1)],
            vec![extent(5, 1, 4, 2)],
            vec![extent(4, 1, 3, 1), extent(6, 0, 6, 1)],
            vec![extent(4, 0, 4, 3), extent(6, 2, 5, 1)],
            vec![extent(3, 0, 3, 2), extent(4, 1, 4, 2), extent(5, 0, 5, 3)],
            vec![extent(3, 1, 2, 1), extent(4, 0, 4, 1), extent(5, 0, 5, 1)],
            vec![extent(3, 0, 3, 1), extent(0, 0, 0, 1)],
            vec![],
        ];
        for extents in cases {
            let shape = Shape { extents, element: 2 };
            let array: Vec<u8> = (0..shape.bytes()).map(|byte| byte as u8).collect();
            let mut packed = vec![0; shape.selected_bytes()];
            gather(&shape, &array, &mut packed);
            let wanted: Vec<u8> =
                expected(&shape).iter().flat_map(|at| [array[2 * at], array[2 * at + 1]]).collect();
            assert_eq!(packed, wanted, "{shape:?}");
            let mut back = vec![255; shape.bytes()];
            scatter(&shape, &packed, &mut back);
            for (at, pair) in back.chunks(2).enumerate() {
                let moved = expected(&shape).contains(&at);
                let wanted = if moved { &array[2 * at..2 * at + 2] } else { &[255, 255] };
                assert_eq!(pair, wanted, "{shape:?} at {at}");
            }
        }
    }

    #[test]
    fn fortran_lists_the_fastest_dimension_first() {
        let c = Shape::new(vec![extent(2, 0, 2, 1), extent(3, 1, 2, 1)], false, 1);
        let fortran = Shape::new(vec![extent(3, 1, 2, 1), extent(2, 0, 2, 1)], true, 1);
        assert_eq!(c, fortran);
    }
}
