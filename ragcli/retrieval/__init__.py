"""The read path: questions to hits. Entry: `retriever.Retriever`."""
