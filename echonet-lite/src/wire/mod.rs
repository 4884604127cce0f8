//! Frames as checked views of bytes, and a writer into a buffer.
