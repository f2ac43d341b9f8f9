//! The operator of Cotter: watches, applies, streams snapshots, writes status
