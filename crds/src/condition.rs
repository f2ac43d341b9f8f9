//! Conditions.
