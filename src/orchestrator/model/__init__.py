"""The words of the domain, as frozen values. No git, no clock, no I/O."""
