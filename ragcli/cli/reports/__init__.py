"""The reports of `ragcli inspect` as lines of text, a module for each; JSON needs none of it."""
