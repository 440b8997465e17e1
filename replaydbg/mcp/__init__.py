"""The server for agents: the Model Context Protocol at the standard streams, and questions about recordings."""
