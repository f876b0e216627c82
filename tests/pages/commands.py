"""Takes the commands out of a page: the lines of its blocks of code that begin with a prompt.

A prompt is "$ ", or the name of a machine or person and "$ ", as in "box1$ ". A line that ends with a
backslash goes on in the next one. A comment behind two spaces and "# " is for readers. Other lines of
a block are output. A page, or a section of it, says how many commands it has:

    **17 commands, 4 minutes** (2026-11-29, ...)
"""
import dataclasses
import re

FENCE = re.compile(r"^ *```")
PROMPT = re.compile(r"^ *([A-Za-z][\w-]*)?\$ +(.*)$")
COMMENT = re.compile(r" {2,}# .*$")
COUNT = re.compile(r"\*\*(\d+) commands, [\d.]+ minutes\*\* \(\d{4}-\d\d-\d\d, ")
HEADING = re.compile(r"^(#+) (.*)$")


@dataclasses.dataclass(frozen=True)
class Command:
    host: str  # "" where the prompt names none
    text: str
    line: int  # in the page, from 1


def section(page: str, heading: str) -> str:
    """The page with all lines emptied that are not in the section with this heading; "" is the page."""
    if not heading:
        return page
    lines, depth = [], 0
    for line in page.splitlines():
        match = HEADING.match(line)
        if match and depth and len(match[1]) <= depth:
            depth = 0
        if match and match[2] == heading:
            depth = len(match[1])
        lines.append(line if depth else "")
    if not any(lines):
        raise ValueError(f"the page has no section '{heading}'")
    return "\n".join(lines)


def commands(page: str) -> list[Command]:
    """The commands of a page in their order."""
    found, inside, goes_on = [], False, False
    for number, line in enumerate(page.splitlines(), 1):
        if FENCE.match(line):
            inside, goes_on = not inside, False
            continue
        match = PROMPT.match(line)
        if not inside or not (match or goes_on):
            continue
        text = COMMENT.sub("", line.strip() if goes_on else match[2]).rstrip()
        ends = not text.endswith("\\")
        text = text if ends else text[:-1].rstrip()
        if goes_on:
            found[-1] = dataclasses.replace(found[-1], text=f"{found[-1].text} {text}")
        else:
            found.append(Command(match[1] or "", text, number))
        goes_on = not ends
    return found


def said_count(page: str) -> int | None:
    """The number of commands that the page says that it has."""
    match = COUNT.search(page)
    return int(match[1]) if match else None
