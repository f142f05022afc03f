"""The engine's shell: a program with one thread, one loop and one socket. Started as a program, imported by tests."""
