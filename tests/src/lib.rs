//! Tests of the whole
