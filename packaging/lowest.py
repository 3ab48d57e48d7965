"""Print the lowest versions that pyproject.toml promises as constraints for pip; torch at its pin.

python packaging/lowest.py > lowest.txt
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Tested at its pin: an older torch may be another build.
PINNED = "torch"
EXTRAS = ("train", "files", "index")


def lowest_versions(root: Path = ROOT) -> dict[str, str]:
    """The lowest version of each package of the base install, of training, files and the index."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"]]
    for extra in EXTRAS:
        wanted += project["optional-dependencies"][extra]
    found = {}
    for requirement in wanted:
        name, bound = re.fullmatch(r"([\w.-]+)(?:\[.*\])?>=([\d.]+).*", requirement).groups()
        found[name] = bound
    pins = dict(
        line.split("==")
        for line in (root / "constraints.txt").read_text("utf-8").splitlines()
        if "==" in line
    )
    return found | {PINNED: pins[PINNED]}


if __name__ == "__main__":
    for name, version in lowest_versions().items():
        # As pip counts, 1.26 is 1.26.0; a later 1.26.1 is not what is promised.
        print(f"{name}=={version}")
