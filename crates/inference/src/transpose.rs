//! Transposition of arrays between row-major and column-major order.

/// Elements per side of a block of a matrix, so that its rows and columns stay in the cache.
const BLOCK: usize = 32;

/// Reverses the dimensions of an array in row-major order: the result is the same array in column-major order.
/// `data` has as many elements of `element` bytes as `shape` says.
pub(crate) fn transposed(data: &[u8], shape: &[u64], element: usize) -> Vec<u8> {
    let mut result = vec![0; data.len()];
    let dimensions: Vec<usize> = shape.iter().map(|dimension| *dimension as usize).collect();
    match dimensions[..] {
        [rows, columns] => matrix(data, (rows, columns), element, &mut result),
        _ => general(data, &dimensions, element, &mut result),
    }
    result
}

fn matrix(data: &[u8], (rows, columns): (usize, usize), element: usize, result: &mut [u8]) {
    for top in (0..rows).step_by(BLOCK) {
        for left in (0..columns).step_by(BLOCK) {
            for row in top..rows.min(top + BLOCK) {
                for column in left..columns.min(left + BLOCK) {
                    let from = (row * columns + column) * element;
                    let to = (column * rows + row) * element;
                    result[to..to + element].copy_from_slice(&data[from..from + element]);
                }
            }
        }
    }
}

fn general(data: &[u8], dimensions: &[usize], element: usize, result: &mut [u8]) {
    let mut strides = Vec::with_capacity(dimensions.len());
    let mut stride = element;
    for dimension in dimensions {
        strides.push(stride);
        stride *= dimension;
    }
    let mut at = vec![0; dimensions.len()];
    let mut to = 0;
    for from in data.chunks_exact(element) {
        result[to..to + element].copy_from_slice(from);
        // Advance the last index first: the data are in row-major order.
        for axis in (0..dimensions.len()).rev() {
            at[axis] += 1;
            to += strides[axis];
            if at[axis] < dimensions[axis] {
                break;
            }
            to -= strides[axis] * dimensions[axis];
            at[axis] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: u16) -> Vec<u8> {
        (0..count).flat_map(u16::to_ne_bytes).collect()
    }

    #[test]
    fn a_matrix_is_turned_around() {
        let turned = transposed(&numbers(6), &[2, 3], 2);
        let wanted: Vec<u8> =
            [0_u16, 3, 1, 4, 2, 5].into_iter().flat_map(u16::to_ne_bytes).collect();
        assert_eq!(turned, wanted);
    }

    #[test]
    fn transposing_twice_changes_nothing() {
        for shape in
            [&[70, 33][..], &[1, 9], &[2, 3, 4], &[5, 1, 2, 3], &[7], &[], &[0, 4], &[2, 0, 3]]
        {
            let data = numbers(shape.iter().product::<u64>() as u16);
            let reversed: Vec<u64> = shape.iter().rev().copied().collect();
            let back = transposed(&transposed(&data, shape, 2), &reversed, 2);
            assert_eq!(back, data, "{shape:?}");
        }
    }

    #[test]
    fn three_dimensions_follow_their_indices() {
        let shape = [2, 3, 4];
        let turned = transposed(&numbers(24), &shape, 2);
        for (i, j, k) in [(0, 0, 1), (1, 0, 0), (1, 2, 3), (0, 1, 2)] {
            let from = (i * 3 + j) * 4 + k;
            let to = i + 2 * (j + 3 * k);
            assert_eq!(turned[2 * to..2 * to + 2], (from as u16).to_ne_bytes());
        }
    }
}
