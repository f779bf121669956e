"""A git-native sweep orchestrator: due sweeps become branches that people review and merge."""

__version__ = "0.1.0"
