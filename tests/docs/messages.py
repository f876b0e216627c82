#!/usr/bin/python3
"""Keeps docs/messages.md: the refusals of Kiln that say what to do, in their exact words.

usage: messages.py TREE [--write]

It takes them out of the sources of TOPICS: texts of at least six words that say what is expected or
what to do; of commands only texts of a Status, of scripts those of `stop`. Values are shown as "...".
Without --write it says which messages the page lacks, and which ones no source has; exit status 1 then.
A reviewer sees each changed message in the page.
"""
import pathlib
import re
import sys

PAGE = "docs/messages.md"
# Heading, the page that says more, sources.
TOPICS = [
    ("Keys and certificates", "[keys](keys.md)", ["base/keys/*.cc"]),
    ("Who gets in", "[who gets in](operations.md#who-gets-in)",
     ["rpc/admission_control.cc", "rpc/daemon_access.cc", "rpc/farm_access.cc", "rpc/member_check.cc",
      "rpc/http/http_guard.cc", "base/server/secret.cc", "base/file/private_file.cc"]),
    ("The sandbox", "[the sandbox](operations.md#the-sandbox)",
     ["base/process/sandbox.cc", "base/process/namespaces.cc", "base/process/cgroup.cc", "base/process/file_access.cc",
      "base/process/system_call_filter.cc"]),
    ("Roles and versions", "[roles](keys.md#roles), [upgrade](operations.md#upgrade)",
     ["rpc/roles.cc", "rpc/device_message.cc"]),
    ("Limits of a request", "[limits](operations.md#limits)", ["rpc/field_limits.cc"]),
    ("Databases", "[backups](operations.md#backups)", ["scheduler/database_lock.cc", "store/sqlite.cc", "store/backup.cc"]),
    ("Records that ship", "[records that ship](records.md#records-that-ship-with-kiln)",
     ["client/shipped/*.cc", "store/shipped_file.cc"]),
    ("Slurm", "[Slurm](slurm.md)", ["client/fleet/*.cc", "client/cli/fleet/*.cc"]),
    ("Packages, images and the build", "[install](install.md), [build](build.md)",
     ["deploy/setup.sh", "deploy/deb.sh", "deploy/bundle.sh", "deploy/image.sh", "deploy/wheel.sh"]),
]
HEAD = """# Messages

These are refusals that say what to do, in their exact words, by what they are about. Values are shown as `...`.
Pages about other messages are listed in [when something fails](operations.md#when-something-fails).
`tests/docs/messages.py . --write` writes this page from the sources.
"""
COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
PART = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# Commands have texts of help besides.
STATUS = re.compile(r"\b[A-Z]\w+\(\s*(?:StatusCode::\w+,\s*)?" + TEXT.pattern)
STOP = re.compile(r'\bstop "((?:[^"\\\n]|\\.)*)"')
SAYS_WHAT_TO_DO = re.compile(r"; |expected|: `|: [a-z]+ |asks for the role|at most [^ ]+ are accepted|\. Get ")
SQL = re.compile(r"^ ?(SELECT|INSERT|UPDATE|DELETE|ALTER|WHERE|WITH)\b")
VARIABLE = re.compile(r"\$\{[^}]*\}|\$\w+|\$\*")
FEWEST_WORDS = 6


def shown(text: str) -> str:
    """A text of a source as its reader sees it."""
    text = re.sub(r"(?<!\{)\{[^{}]*\}(?!\})", "...", text)
    text = re.sub(r"\{\{|\}\}", lambda match: match[0][0], text)
    text = re.sub(r"^(?=[;,] )", "...", text)
    return re.sub(r"\s+", " ", text.replace(r"\n", " ").replace('\\"', '"').replace("\\`", "`")).strip()


def messages(name: str, source: str) -> list[str]:
    """The messages of a source that say what to do, in their order."""
    if name.endswith(".sh"):
        found = [shown(VARIABLE.sub("{}", match[1])) for match in STOP.finditer(source)]
        return [text for text in dict.fromkeys(found) if len(text.split()) >= FEWEST_WORDS]
    texts = (STATUS if "client/cli/" in name else TEXT).finditer(COMMENT.sub("", source))
    found = [shown("".join(PART.findall(match[0]))) for match in texts]
    return [text for text in dict.fromkeys(found)
            if len(text.split()) >= FEWEST_WORDS and SAYS_WHAT_TO_DO.search(text) and not SQL.match(text)]


def line(message: str) -> str:
    # A code span of two backticks may have single ones.
    return f"* `` {message} ``" if "`" in message else f"* `{message}`"


def page(tree: pathlib.Path) -> str:
    parts = [HEAD]
    for heading, more, patterns in TOPICS:
        files = sorted({file for pattern in patterns for file in tree.glob(pattern)})
        files = [file for file in files if not file.stem.endswith(("_test", "_testing"))]
        if not files:
            raise SystemExit(f"messages.py: no source is named {patterns}")
        found = [message for file in files for message in messages(str(file), file.read_text())]
        parts.append(f"## {heading}\n\nMore: {more}.\n\n" + "\n".join(map(line, dict.fromkeys(found))) + "\n")
    return "\n".join(parts)


def main() -> int:
    tree = pathlib.Path(sys.argv[1])
    there = tree / PAGE
    wanted = page(tree)
    if sys.argv[2:] == ["--write"]:
        there.write_text(wanted)
        return 0
    said = there.read_text() if there.exists() else ""
    lacks = [text for text in wanted.splitlines() if text not in said.splitlines()]
    extra = [text for text in said.splitlines() if text not in wanted.splitlines()]
    for title, lines in (("it lacks", lacks), ("no source has", extra)):
        for text in lines:
            print(f"{PAGE}: {title}: {text}")
    if lacks or extra or said != wanted:
        print(f"{PAGE} differs from the sources: tests/docs/messages.py . --write writes it")
        return 1
    print(f"{PAGE} has the words of the sources")
    return 0


if __name__ == "__main__":
    sys.exit(main())
