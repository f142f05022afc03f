"""What changed between two servers, or two builds of one, as a caller sees it."""
