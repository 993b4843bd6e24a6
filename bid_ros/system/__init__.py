"""Systems: their folder, their description as nodes, processes, middleware and priorities."""
