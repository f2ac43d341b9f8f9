//! compile(World) -> Plan: from resources to snapshots, child objects and verdicts
