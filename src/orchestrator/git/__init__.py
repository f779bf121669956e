"""The only place that says pygit2 or runs git.

`reader` reads, `writer` writes objects and refs, `wire` talks to a remote: an import tells a
reviewer whether code can change the repository or touch the network.
"""
