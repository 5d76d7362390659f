"""What an index holds and why a question found what it did: values for people who look inside.

Owns the reports of `ragcli inspect`; each module has its own. Reads an open index and changes
nothing. What reports look like is `cli.reports`' business.
"""
