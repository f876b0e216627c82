#!/usr/bin/python3
"""Checks the manifests of this folder: each is YAML, and names only what is there.

usage: check.py FOLDER [--schemas VERSION]

Checks that kustomization.yaml names every manifest and each is there; that labels of pods fit their
selectors; that probes and services name ports of the pods; that secrets are those of secrets.sh and
the configuration is that of kiln.toml. With --schemas each object is checked against the schema of
that version of Kubernetes (the package kubernetes-validate of PyPI).

Prints what is wrong, one a line; exit status 1 then.
"""
import pathlib
import re
import sys
import tomllib

import yaml

# Files of the folder that are no part of the base.
_APART = {"kustomization.yaml", "prometheus_adapter.yaml"}
_KEYS = re.compile(r"kiln-keys-(\w+)")


def objects(folder, base):
    """Pairs of a file's name and an object in it, of all resources of the base."""
    for name in base["resources"]:
        for item in yaml.safe_load_all((folder / name).read_text()):
            yield name, item


def wrong_names(folder, base):
    """Manifests that are missing, or that the base leaves out."""
    there = {path.name for path in folder.glob("*.yaml")} - _APART
    named = set(base["resources"])
    yield from (f"kustomization.yaml names {name}, which is not there" for name in named - there)
    yield from (f"kustomization.yaml does not name {name}" for name in there - named)
    for generator in base["configMapGenerator"]:
        yield from (f"there is no {file}" for file in generator["files"] if not (folder / file).exists())


def wrong_pod(item, base, roles):
    """What is wrong with the template of a workload."""
    template = item["spec"]["template"]
    labels, spec = template["metadata"]["labels"], template["spec"]
    if item["spec"]["selector"]["matchLabels"].items() - labels.items():
        yield "its selector does not fit its pods"
    images = {image["name"] for image in base["images"]}
    volumes = {volume["name"] for volume in spec["volumes"]}
    volumes |= {claim["metadata"]["name"] for claim in item["spec"].get("volumeClaimTemplates", [])}
    for container in spec.get("initContainers", []) + spec["containers"]:
        name = container["name"]
        if container["image"] not in images:
            yield f"the image of {name} is none of kustomization.yaml"
        yield from (f"{name} mounts {mount['name']}, which is no volume"
                    for mount in container.get("volumeMounts", []) if mount["name"] not in volumes)
        ports = {port["name"] for port in container.get("ports", [])}
        yield from (f"the {probe} of {name} is of a port that it does not have"
                    for probe in ("startupProbe", "readinessProbe", "livenessProbe")
                    if probe in container and container[probe]["httpGet"]["port"] not in ports)
    configs = {generator["name"] for generator in base["configMapGenerator"]}
    for volume in spec["volumes"]:
        if "configMap" in volume and volume["configMap"]["name"] not in configs:
            yield f"there is no {volume['configMap']['name']}"
        match = _KEYS.fullmatch(volume.get("secret", {}).get("secretName", "kiln-keys-" + roles[0]))
        if not match or match[1] not in roles:
            yield f"secrets.sh does not make {volume['secret']['secretName']}"


def wrong_ports(items, config):
    """Ports of services and of containers that no daemon has by the configuration."""
    for _, item in items:
        role = item["metadata"].get("labels", {}).get("app.kubernetes.io/component")
        if role not in config:
            continue
        table = config[role]
        have = {int(table["listen"].rpartition(":")[2]), int(table["http-port"])}
        ports = item["spec"].get("ports", []) if item["kind"] == "Service" else []
        if "template" in item["spec"]:
            ports = item["spec"]["template"]["spec"]["containers"][0]["ports"]
        for port in ports:
            number = port.get("containerPort", port.get("port"))
            if number not in have:
                yield f"{item['kind']} {item['metadata']['name']}: kiln.toml gives the {role} no port {number}"


def wrong_schemas(items, version):
    """What the schemas of Kubernetes refuse."""
    import kubernetes_validate

    for name, item in items:
        try:
            kubernetes_validate.validate(item, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            yield f"{name}: {item['kind']} {item['metadata']['name']}: {error.message}"


def wrong(folder, version=None):
    """All that is wrong, as sentences."""
    base = yaml.safe_load((folder / "kustomization.yaml").read_text())
    yaml.safe_load((folder / "prometheus_adapter.yaml").read_text())
    names = list(wrong_names(folder, base))
    if names:
        return names
    config = tomllib.loads((folder / "kiln.toml").read_text())
    roles = re.search(r"for role in (.*); do", (folder / "secrets.sh").read_text())[1].split()
    items = list(objects(folder, base))
    found = [
        f"{name}: {item['kind']} {item['metadata']['name']}: {what}"
        for name, item in items if "template" in item.get("spec", {})
        for what in wrong_pod(item, base, roles)
    ]
    found += wrong_ports(items, config)
    return found + (list(wrong_schemas(items, version)) if version else [])


def main(arguments):
    if len(arguments) not in (1, 3) or arguments[1:2] not in ([], ["--schemas"]):
        sys.exit(__doc__)
    folder = pathlib.Path(arguments[0])
    found = wrong(folder, *arguments[2:])
    for sentence in found:
        print(sentence)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
