"""The documentation site: it builds without a broken link, and links lead where GitHub's do."""

from __future__ import annotations

import logging
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from mkdocs.commands.build import build as build_site
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://example.org/project"
sys.path.insert(0, str(ROOT / "docs"))

from site_links import OUTSIDE, rewrite_links  # noqa: E402


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        # on pages of docs/
        ("orders.md", "search.md#ties", "search.md#ties"),
        ("orders.md", "images/2x1.svg", "images/2x1.svg"),
        ("orders.md", "../src/bothends/order.py", f"{REPOSITORY}/blob/main/src/bothends/order.py"),
        ("orders.md", "../src/bothends/text", f"{REPOSITORY}/tree/main/src/bothends/text"),
        ("orders.md", "../experiments/README.md#text", "experiments.md#text"),
        ("orders.md", "../experiments", "experiments.md"),
        ("tables/1-main.md", "../images/idea.svg", "../images/idea.svg"),
        ("tables/1-main.md", "../../README.md", "../index.md"),
        # on pages from outside
        ("index.md", "docs/orders.md", "orders.md"),
        ("index.md", "docs/tables", "tables/README.md"),
        ("index.md", "LICENSE", f"{REPOSITORY}/blob/main/LICENSE"),
        ("experiments.md", "columns.py", f"{REPOSITORY}/blob/main/experiments/columns.py"),
        ("experiments.md", "../docs/bench.md#how", "bench.md#how"),
        # left alone: other sites, this page, and files that do not exist
        ("orders.md", "https://example.org/a.md", "https://example.org/a.md"),
        ("orders.md", "#variants", "#variants"),
        ("orders.md", "../src/bothends/gone.py", "../src/bothends/gone.py"),
    ],
)
def test_links_lead_to_pages_or_to_the_repository(page: str, link: str, expected: str) -> None:
    assert rewrite_links(f"a [`b`]({link}), c", page, REPOSITORY) == f"a [`b`]({expected}), c"


def test_code_is_no_link() -> None:
    text = "`[a](LICENSE)`\n\n```\n[a](LICENSE)\n```\n"
    assert rewrite_links(text, "index.md", REPOSITORY) == text


def test_a_bar_in_the_code_of_a_table_is_shown_as_one() -> None:
    text = "`a\\|b`\n\n| option |\n|---|\n| [x](LICENSE), `a\\|b` |\n"
    bar = rewrite_links(text, "index.md", REPOSITORY)
    assert bar.startswith("`a\\|b`\n")
    assert bar.endswith("LICENSE), `a|b` |\n")


def pages() -> list[Path]:
    return [*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in OUTSIDE)]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_lists_are_read_alike_here_and_on_github(page: Path) -> None:
    """MkDocs wants four spaces before a block of a list item, and takes `32.` for an item."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert not re.findall(r"\n\n {1,3}\S.*", text)
    last = 0
    for number in map(int, re.findall(r"^ *(\d+)\. ", text, re.M)):
        assert number in (1, last + 1), f"a line begins with {number}."
        last = number


def build(site: Path, docs: Path = ROOT / "docs") -> None:
    """Build the site; MkDocs raises an error if a link is broken."""
    config: dict[str, Any] = {"site_dir": str(site), "docs_dir": str(docs)}
    build_site(load_config(str(ROOT / "mkdocs.yml"), **config))


def test_every_page_is_in_the_site_and_asks_for_nothing_from_elsewhere(tmp_path: Path) -> None:
    site = tmp_path / "site"
    build(site)
    names = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    names |= set(map(Path, OUTSIDE.values()))
    start = (site / "index.html").read_text(encoding="utf-8")
    for page in names:
        name = page.with_name("index.html") if page.name == "README.md" else page
        address = name.with_suffix(".html")
        assert (site / address).exists(), page
        assert f'href="{address.as_posix()}"' in start, f"{page} is not in the navigation"
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|link|iframe)[^>]*?(?:src|href)="(https?:[^"]*)"', text)
        assert not loaded, path
    api = (site / "api.html").read_text(encoding="utf-8")
    for member in (
        "Translator.translate",
        "Translator.score",
        "GenerationOrder.parse",
        "Translation.text",
    ):
        assert re.search(rf'id="[\w.]*{re.escape(member)}"', api), member
    # Attributes are described where they are shown, and not in a second list.
    assert "Attributes:" not in api
    assert "The translation, one line." in api


def test_a_broken_link_fails_the_build(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", docs)
    with open(docs / "search.md", "a", encoding="utf-8") as page:
        page.write("[a](gone.md), [b](../src/gone.py), [c](orders.md#gone)\n")
    with caplog.at_level(logging.WARNING), pytest.raises(Abort, match="3 warnings"):
        build(tmp_path / "site", docs)
    for link in ("gone.md", "../src/gone.py", "orders.md#gone"):
        assert f"link '{link}'" in caplog.text
