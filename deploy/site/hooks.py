"""What the site has besides the documents: pages of the API, a first page, lists of folders."""

import ast
import os
import re

from mkdocs.structure.files import File

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PACKAGE = os.path.join(ROOT, "python", "kiln")
# Folders of documents that the navigation names as wholes.
FOLDERS = ("howto", "experiments")
LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#\s]*)(?:#[^)\s]*)?\)")
FROM_README = re.compile(r"\[([^\]]+)\]\(((?:examples|findings)/[^)]*)\)")


def modules():
    """Names of the modules that have something to call, in the order of the alphabet."""
    found = []
    for at, _, names in os.walk(PACKAGE):
        for name in names:
            if not name.endswith(".py") or name.startswith("_") and name != "__init__.py":
                continue
            path = os.path.relpath(os.path.join(at, name), os.path.dirname(PACKAGE))
            with open(os.path.join(at, name), encoding="utf-8") as file:
                tree = ast.parse(file.read())
            if any(is_public(node) for node in tree.body):
                found.append(path[: -len(".py")].replace(os.sep, ".").removesuffix(".__init__"))
    return sorted(found)


def is_public(node):
    """True for a function or class that users call, and for names that a module hands on."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return not node.name.startswith("_")
    return isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"


def slug(text, separator):
    """The anchor of a heading, as GitHub makes it."""
    del separator
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def on_config(config):
    """Writes out the folders in the navigation, and adds the API to it."""
    config.mdx_configs["toc"]["slugify"] = slug
    for entry in config.nav:
        for title, pages in entry.items():
            if isinstance(pages, str) and pages.rstrip("/") in FOLDERS:
                folder = pages.rstrip("/")
                names = sorted(os.listdir(os.path.join(config.docs_dir, folder)))
                entry[title] = [f"{folder}/{name}" for name in names if name.endswith(".md")]
    config.nav.insert(0, {"Kiln": "index.md"})
    config.nav.insert(2, {"API of Python": [f"api/{name}.md" for name in modules()]})
    return config


def on_files(files, config):
    """Adds the pages that are no documents."""
    for name in modules():
        files.append(File.generated(config, f"api/{name}.md", content=f"# {name}\n\n::: {name}\n"))
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        text = re.sub(r"(\]\(|<img src=\")docs/", r"\1", file.read())
    files.append(File.generated(config, "index.md", content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    """Files of the repository outside of docs/ are no pages: their names stand without a link."""
    folder = os.path.dirname(page.file.src_uri)

    def unlinked(match):
        target = os.path.normpath(os.path.join("docs", folder, match[2]))
        return match[0] if target.startswith("docs/") else f"{match[1]} (`{target}`)"

    if page.file.src_uri == "index.md":
        return FROM_README.sub(r"\1 (`\2`)", markdown)
    return LINK.sub(unlinked, markdown)
