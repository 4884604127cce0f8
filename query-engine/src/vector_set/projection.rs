//! Linear maps to other dimensions (REDUCE).

use super::{MAX_DIMENSIONS, VectorSetError};

/// The most factors of a map: some 70 ms of work for each vector.
const MAX_FACTORS: usize = 1 << 26;

/// A linear map to fewer dimensions, or more.
#[derive(Clone, Debug, PartialEq)]
pub struct Projection {
    input: usize,
    output: usize,
    factors: Factors,
}

#[derive(Clone, Debug, PartialEq)]
enum Factors {
    /// Rows of a Hadamard matrix, over the root of the number of dimensions that are given.
    Hadamard,
    /// One row of `input` factors per dimension that is kept.
    Matrix(Vec<f32>),
}

/// Checks the shape of a map.
fn check(input: usize, output: usize) -> Result<(), VectorSetError> {
    let is_shape = |size: usize| (1..=MAX_DIMENSIONS).contains(&size);
    if is_shape(input) && is_shape(output) && input * output <= MAX_FACTORS {
        Ok(())
    } else {
        Err(VectorSetError::Reduction { input, output })
    }
}

impl Projection {
    /// The map of Redis' vector sets. It nearly keeps angles.
    ///
    /// # Errors
    /// When a number is 0 or too great.
    pub fn hadamard(input: usize, output: usize) -> Result<Self, VectorSetError> {
        check(input, output)?;
        Ok(Self { input, output, factors: Factors::Hadamard })
    }

    /// A map by its factors, row by row, of a saved set for example.
    ///
    /// # Errors
    /// When the factors are no whole rows, or too many.
    pub fn from_matrix(input: usize, matrix: Vec<f32>) -> Result<Self, VectorSetError> {
        let output = matrix.len().checked_div(input).unwrap_or(0);
        check(input, output)?;
        if matrix.len() != input * output {
            return Err(VectorSetError::Reduction { input, output });
        }
        let usual = Self::hadamard(input, output)?;
        let is_usual = usual.matrix().zip(&matrix).all(|(one, other)| one.to_bits() == other.to_bits());
        Ok(if is_usual { usual } else { Self { factors: Factors::Matrix(matrix), ..usual } })
    }

    /// Dimensions of vectors that are given.
    #[must_use]
    pub fn input(&self) -> usize {
        self.input
    }

    /// Dimensions of vectors that are kept.
    #[must_use]
    pub fn output(&self) -> usize {
        self.output
    }

    /// The factors, row by row.
    pub fn matrix(&self) -> impl Iterator<Item = f32> {
        let scale = self.scale();
        let factor = move |at: usize| match &self.factors {
            Factors::Hadamard if is_minus(at / self.input, at % self.input) => -scale,
            Factors::Hadamard => scale,
            Factors::Matrix(matrix) => matrix[at],
        };
        (0..self.input * self.output).map(factor)
    }

    fn scale(&self) -> f32 {
        (1.0 / (self.input as f64).sqrt()) as f32
    }

    /// Sums in the order of the elements, as Redis' vector sets round them.
    pub(super) fn apply(&self, vector: &[f32]) -> Vec<f32> {
        match &self.factors {
            Factors::Hadamard => {
                let scale = self.scale();
                let scaled: Vec<f32> = vector.iter().map(|element| scale * element).collect();
                let term =
                    |row: usize, (at, element): (usize, &f32)| if is_minus(row, at) { -element } else { *element };
                let row = |row: usize| scaled.iter().enumerate().fold(0.0, |sum, pair| sum + term(row, pair));
                (0..self.output).map(row).collect()
            }
            Factors::Matrix(matrix) => {
                let row =
                    |row: &[f32]| row.iter().zip(vector).fold(0.0, |sum, (factor, element)| sum + factor * element);
                matrix.chunks_exact(self.input).map(row).collect()
            }
        }
    }

    /// Bytes in memory, without `self`.
    pub(super) fn memory(&self) -> usize {
        match &self.factors {
            Factors::Hadamard => 0,
            Factors::Matrix(matrix) => matrix.capacity() * size_of::<f32>(),
        }
    }
}

/// The sign of an element of a Hadamard matrix.
fn is_minus(row: usize, column: usize) -> bool {
    (row & column).count_ones() % 2 == 1
}
