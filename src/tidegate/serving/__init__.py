"""One request, end to end, on the server side: prepare, drive, write."""
