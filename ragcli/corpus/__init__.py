"""Files to Documents to Chunks. Knows no index."""
