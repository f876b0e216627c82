"""Checks that each page of a set-up says how many commands it has.

usage: check_counts.py TREE
"""
import pathlib
import sys

from commands import commands, said_count, section
from setups import SETUPS


def main() -> int:
    wrong = []
    for setup in SETUPS:
        page = section((pathlib.Path(sys.argv[1]) / setup.page).read_text(), setup.section)
        there, said = len(commands(page)), said_count(page)
        if there != said:
            wrong.append(f"{setup.page}: it has {there} commands, and says {'no number' if said is None else said}: "
                         f"expected '**{there} commands, N minutes** (DATE, ...'")
    print("\n".join(wrong) or f"{len(SETUPS)} pages say how many commands they have")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
