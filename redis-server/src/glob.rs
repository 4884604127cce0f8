//! Glob patterns as `KEYS`, `SCAN MATCH`, `PSUBSCRIBE` and `CONFIG GET` understand them.
