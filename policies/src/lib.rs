//! The Rego library of Cotter, its cases and the engine that decides
