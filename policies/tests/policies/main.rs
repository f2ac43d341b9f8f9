//! The rule set as its callers see it: cases that an auditor reads, the same decision for list and call, and what each guard refuses.

mod decisions;
mod world;
