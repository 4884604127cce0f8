//! Device classes as constant tables, and the typed values of their properties.
