"""What a model takes of the machine's memory, by what its file says and the settings ask: the one owner of the sums.

Pure but for reading a file's head. Both halves use it: the engine before it takes memory, `tidegate doctor` without a
library or an engine.
"""
