"""What the watches over engines of every kind have in common: one life after another, the wait between, who is told."""
