"""When a sweep is due: one pure function of facts. No git, no clock, no I/O."""
