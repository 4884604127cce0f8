//! Route-B smart meters behind a serial Wi-SUN module that speaks SKSTACK.
