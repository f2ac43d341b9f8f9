//! Attenuation.
