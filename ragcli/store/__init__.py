"""Everything that lies in `.rag`, and nothing else knows. Entry: `index.Index`, `writer.Writer`."""
