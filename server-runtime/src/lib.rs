//! What the three TCP servers share.
