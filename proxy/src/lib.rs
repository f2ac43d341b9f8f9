//! The sidecar of Cotter: verifies, decides, forwards, proves
