"""Several engines behind one `Engine` port."""
