"""How well an index answers a file of questions: gold, runs, metrics, comparisons.

Owns what counts as found and every figure of `ragcli eval`. Asks through `retrieval`, as `query`
does; how reports look is `cli`'s business.
"""
