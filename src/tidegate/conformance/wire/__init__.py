"""One exchange over HTTP: sent, kept byte by byte, read strictly."""
