"""Makes the tests' harness importable: benches speak HTTP with the same bare sockets as the tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
