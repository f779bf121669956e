"""Agents and how they are run: an adapter plans and parses, one runner starts and ends."""
