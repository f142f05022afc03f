"""What breaks a server, area by area: for each case of the suite the mutants that it must catch."""
