"""An engine process of our own on this machine: one that is supervised here, or one that is only connected to."""
