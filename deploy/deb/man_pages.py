#!/usr/bin/python3
"""Makes manual pages out of the help of kiln: one for it, and one for each of its commands.

usage: man_pages.py KILN VERSION DATE OUT

KILN is the program, DATE the day on the pages. Writes OUT/kiln.1, OUT/kiln-tune.1,
OUT/kiln-records-export.1 and so on. The help is that of base/console/usage.cc: a description, the
usage, and groups of two columns; what follows the last group is notes.
"""
import pathlib
import re
import subprocess
import sys

COLUMN = 28
GROUP = re.compile(r"[A-Z][\w ]*:")
COMMANDS = ("Subcommands", "Daemons")


class Help:
    """The help of a command: description, usage, groups of (left, text), notes."""

    def __init__(self, text):
        self.usage, self.groups, self.notes = "", [], []
        description, rows = [], None
        for line in text.splitlines():
            if line.startswith("Usage: "):
                self.usage = line[len("Usage: "):]
            elif not self.usage:
                description.append(line)
            elif GROUP.fullmatch(line):
                rows = []
                self.groups.append((line[:-1], rows))
            elif rows is not None and line.startswith(" " * COLUMN):
                left, old = rows[-1]
                rows[-1] = (left, f"{old} {line.strip()}".strip())
            elif rows is not None and line.startswith("  "):
                left, _, text = line.strip().partition("  ")
                rows.append((left, text.strip()))
            elif line:
                rows = None
                self.notes.append(line)
        self.description = " ".join(description).strip()

    def commands(self):
        return [left for title, rows in self.groups if title in COMMANDS for left, _ in rows if left != "help"]


def escaped(text):
    """Text that troff prints as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def page(words, shown, version, date):
    """The page of a command, whose words are ["kiln", "records", "export"]."""
    name = "-".join(words)
    summary = shown.description.split(": ")[0].rstrip(".") or "a command of Kiln"
    lines = [
        f'.TH {name.upper()} 1 "{date}" "Kiln {version}" "Kiln"',
        ".SH NAME", f"{escaped(name)} \\- {escaped(summary)}",
        ".SH SYNOPSIS", f".B {escaped(' '.join(words))}",
        escaped(shown.usage.removeprefix(" ".join(words)).strip()),
        ".SH DESCRIPTION", escaped(shown.description),
    ]
    for title, rows in shown.groups:
        lines.append(f".SH {escaped(title.upper())}")
        for left, text in rows:
            lines += [".TP", f".B {escaped(left)}", escaped(text)]
    if shown.notes:
        lines += [".SH NOTES", ".nf", *map(escaped, shown.notes), ".fi"]
    related = [words[:-1]] if len(words) > 1 else []
    related += [[*words, command] for command in shown.commands()]
    if related:
        pages = ",\n.BR ".join(f"{escaped('-'.join(each))} (1)" for each in related)
        lines += [".SH SEE ALSO", ".BR " + pages]
    return "\n".join(line for line in lines if line) + "\n"


def write(kiln, words, version, date, out):
    """Writes the page of a command and those of its commands."""
    said = subprocess.run([kiln, *words[1:], "--help"], check=True, capture_output=True, text=True).stdout
    shown = Help(said)
    if not shown.usage:
        raise SystemExit(f"error: {' '.join(words)} --help prints no usage")
    (out / ("-".join(words) + ".1")).write_text(page(words, shown, version, date))
    for command in shown.commands():
        write(kiln, [*words, command], version, date, out)


def main(kiln, version, date, out):
    folder = pathlib.Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    write(kiln, ["kiln"], version, date, folder)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
