"""From hits to what a generator is given."""
