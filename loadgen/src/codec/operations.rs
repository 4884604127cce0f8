//! Which requests are one operation of a result.

/// Operations by name, and which one each request is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Operations {
    names: Vec<String>,
    of: Vec<u32>,
}

impl Operations {
    /// Each request is an operation.
    pub(super) fn each<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let names: Vec<String> = names.map(str::to_owned).collect();
        Self { of: (0..names.len() as u32).collect(), names }
    }

    /// Requests of one name are an operation: a recording has thousands of them.
    pub(super) fn by_name<'a>(requests: impl Iterator<Item = &'a str>) -> Self {
        let mut operations = Self { names: Vec::new(), of: Vec::new() };
        for name in requests {
            let known = operations.names.iter().position(|known| known == name).unwrap_or(operations.names.len());
            if known == operations.names.len() {
                operations.names.push(name.to_owned());
            }
            operations.of.push(known as u32);
        }
        operations
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The operation of a request.
    #[inline]
    pub(super) fn of(&self, request: usize) -> usize {
        self.of[request] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_grouped() {
        let names = ["GET", "SET", "GET"];
        let (each, grouped) = (Operations::each(names.into_iter()), Operations::by_name(names.into_iter()));
        assert_eq!(
            (each.names(), [0, 1, 2].map(|request| each.of(request))),
            (&names.map(str::to_owned)[..], [0, 1, 2])
        );
        assert_eq!(grouped.names(), ["GET", "SET"]);
        assert_eq!([0, 1, 2].map(|request| grouped.of(request)), [0, 1, 0]);
    }
}
