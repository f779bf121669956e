"""Values into what people and programs read. No git, no clock, no click."""
