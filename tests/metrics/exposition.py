"""Reads what daemons show at /metrics, and finds the names of figures in pages, dashboards and alerts."""
import json
import re

NAME = re.compile(r"\b(?:kiln|process)_[a-z0-9_]+")
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')
ROW = re.compile(r"^\| `((?:kiln|process)_[a-z0-9_]+)` \| (\w+) \|([^|]*)\|([^|]*)\|", re.MULTILINE)
PARTS = ("_bucket", "_sum", "_count")


def parse(text):
    """The types of the figures by name, and the samples: name, labels, value. ValueError for a text of another form."""
    types, helps, samples = {}, {}, []
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, helps[name] = line.split(" ", 3)[2], line.split(" ", 3)[3] if line.count(" ") > 2 else ""
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            if name in types:
                raise ValueError(f"{name} has two types")
            types[name] = kind
        else:
            samples.append(sample(line))
    for name, _, _ in samples:
        if family(name, types) is None:
            raise ValueError(f"{name} has no type")
    for name in types:
        if not helps.get(name):
            raise ValueError(f"{name} has no help")
    return types, samples


def sample(line):
    match = SAMPLE.fullmatch(line)
    if match is None:
        raise ValueError(f"not a sample: {line}")
    labels = dict(LABEL.findall(match[2] or ""))
    if match[2] and len(",".join(f'{name}="{value}"' for name, value in labels.items())) != len(match[2].rstrip(",")):
        raise ValueError(f"not a list of labels: {line}")
    return match[1], labels, float(match[3])


def family(name, types):
    """The figure that a sample belongs to; None if there is none."""
    if name in types:
        return name
    for part in PARTS:
        base = name.removesuffix(part)
        if base != name and types.get(base) == "histogram":
            return base
    return None


def conventions(types):
    """What is wrong with the names by Prometheus' conventions, as sentences."""
    for name, kind in types.items():
        if not NAME.fullmatch(name):
            yield f"{name} does not begin with kiln_ or process_"
        if (kind == "counter") != name.endswith("_total"):
            yield f"{name} is a {kind}: counters, and they alone, end with _total"
        if re.search(r"_(ms|us|ns|minutes|hours|mib|mb|kb|percent|mhz)(_|$)", name):
            yield f"{name} has a unit that is no base unit"


def documented(page):
    """The figures of docs/metrics.md: name to kind, labels and when it is shown."""
    return {name: (kind, set(re.findall(r"`(\w+)`", labels)), when.strip())
            for name, kind, labels, when in ROW.findall(page)}


def expressions(dashboard, alerts):
    """Pairs of a place and an expression, of a dashboard of Grafana and a file of alerts, both as texts."""
    found = []
    for panel in json.loads(dashboard)["panels"]:
        found += [(f"panel '{panel['title']}'", target["expr"]) for target in panel.get("targets", [])]
    name, lines = "", alerts.splitlines()
    for i, line in enumerate(lines):
        if match := re.match(r"\s*- alert: (\w+)", line):
            name = match[1]
        elif match := re.match(r"\s*expr: (.*)", line):
            expression = match[1] if match[1] != ">-" else lines[i + 1].strip()
            found.append((f"alert {name}", expression))
    return found


def unknown_names(places, names):
    """Places whose expressions have a name that is none of `names`."""
    for place, expression in places:
        for word in NAME.findall(re.sub(r'"[^"]*"', '""', expression)):
            base = next((word.removesuffix(part) for part in PARTS if word.endswith(part)), word)
            if word not in names and base not in names:
                yield f"{place}: {word}"
