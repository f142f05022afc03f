"""Joins recordings of one peer, made in slices, to one that can be judged again: where a case is in several, the last
recording has it.

python bench/peers/join_recordings.py OUT RECORDING ...
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"


def main() -> int:
    if len(sys.argv) < 3:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    out, *parts = map(Path, sys.argv[1:])
    (out / "cases").mkdir(parents=True)
    joined: dict[str, Any] = {}
    for part in parts:
        manifest = json.loads((part / MANIFEST).read_text())
        for case_id in manifest["cases"]:
            shutil.copyfile(part / "cases" / f"{case_id}.json", out / "cases" / f"{case_id}.json")
        joined = join(joined, manifest) if joined else manifest
    (out / MANIFEST).write_text(json.dumps(joined, indent=1) + "\n")
    return 0


def join(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Returns one manifest: what either found is there, as a slice may have had a key and another not."""
    capabilities = list(dict.fromkeys([*first["capabilities"], *second["capabilities"]]))
    absent = {name: why for name, why in (first["absent"] | second["absent"]).items() if name not in capabilities}
    return {
        **first,
        "cases": list(dict.fromkeys([*first["cases"], *second["cases"]])),
        "duration_s": first["duration_s"] + second["duration_s"],
        "stopped": first["stopped"] or second["stopped"],
        "capabilities": capabilities,
        "absent": absent,
        "found_by": first["found_by"] | second["found_by"],
    }


if __name__ == "__main__":
    sys.exit(main())
