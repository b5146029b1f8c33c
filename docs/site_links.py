"""Lets the documentation site use pages as they are on GitHub: a hook of MkDocs.

Some pages are outside `docs/`, and pages link to sources. On GitHub all of it works. Here such
pages become pages of the site, and links to other files of the repository lead to the repository.
A link to a file that does not exist stays as it is, and MkDocs fails the build. The wide tables of
`tables/` get the room of the page's contents.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = "docs"
#: Pages from outside `docs/`, and what they are called on the site.
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "experiments/README.md": "experiments.md",
}
#: A fenced block or code between backticks, which is left alone, or the target of a link.
_LINK = re.compile(r"^```.*?^```$|`[^`\n]+`|(?<=\]\()(?P<target>[^)\s]+)(?=\))", re.M | re.S)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside."""
    for path, name in OUTSIDE.items():
        content = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make the links of a page fit for the site."""
    assert config.repo_url is not None
    if page.file.src_uri.startswith("tables/"):
        page.meta["hide"] = ["toc"]
    return rewrite_links(markdown, page.file.src_uri, config.repo_url)


def rewrite_links(markdown: str, name: str, repository: str) -> str:
    """The Markdown of the page `name` of the site with links that work there."""
    inverse = {on_site: path for path, on_site in OUTSIDE.items()}
    origin = posixpath.dirname(inverse.get(name, f"{DOCS}/{name}"))

    def rewrite(match: re.Match[str]) -> str:
        target = match["target"]
        if target is None:
            return _code(match)
        if "://" in target or target.startswith(("#", "mailto:")):
            return match[0]
        path, hash_sign, fragment = target.partition("#")
        path = posixpath.normpath(posixpath.join(origin, path))
        if not (ROOT / path).exists():
            return target
        return _address(path, posixpath.dirname(name), repository) + hash_sign + fragment

    return _LINK.sub(rewrite, markdown)


def _code(match: re.Match[str]) -> str:
    """Code as it is, but without the backslash before a bar in tables, which only GitHub needs."""
    line = match.string[match.string.rfind("\n", 0, match.start()) + 1 :]
    return match[0].replace("\\|", "|") if line.startswith("|") else match[0]


def _address(path: str, folder: str, repository: str) -> str:
    """How a page in `folder` of the site links to a file or directory of the repository."""
    if (ROOT / path).is_dir() and (ROOT / path / "README.md").exists():
        path = posixpath.join(path, "README.md")
    if path in OUTSIDE:
        return posixpath.relpath(OUTSIDE[path], folder or ".")
    if path.startswith(f"{DOCS}/") and (ROOT / path).is_file() and not path.endswith(".py"):
        return posixpath.relpath(path.removeprefix(f"{DOCS}/"), folder or ".")
    kind = "tree" if (ROOT / path).is_dir() else "blob"
    return f"{repository}/{kind}/main/{path}"
