"""Reports as lines of text for people, a module for each; JSON needs none of it."""
