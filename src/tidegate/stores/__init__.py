"""State that outlives a process: keys and recorded answers, in SQLite or Redis."""
