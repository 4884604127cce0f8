//! Integration tests.

mod chinese;
mod details;
mod explain;
mod hostile;
mod knn;
mod model;
mod oracle;
mod random;
mod resp;
mod search;
mod synonyms;
mod vector_sets;
mod vectors;
mod windows;
