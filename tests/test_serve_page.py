"""The page in a browser: what a user does with it, and whether everybody can.

Needs Chromium and the extra `browser`; `make test-browser` installs both and runs these tests.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bothends.serve.keys import ApiKeys, add_key
from bothends.serve.service import ServeOptions
from serve_fixtures import Running, running

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("no Chromium: make test-browser installs it", allow_module_level=True)
sync_api = pytest.importorskip(
    "playwright.sync_api", reason="no Playwright: pip install 'bothends[browser]'"
)

pytestmark = pytest.mark.slow

#: No sandbox: tests may run as root. The rest keeps Chromium from calling home.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SECONDS = 1000.0
HUNGRY, HUNGER = "I am hungry.", "Estou com fome."
#: The page shows the steps of the first one.
MODELS = ("en-pt-2x1", "en-pt-1x1")


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running(ServeOptions(models=MODELS)) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any, server: Running) -> Iterator[Any]:
    yield from opened(browser, server)


def opened(browser: Any, server: Running, **context: Any) -> Iterator[Any]:
    """The page with its first translation. Errors of its scripts, and requests elsewhere, fail."""
    page = browser.new_page(**context)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: _check_request(request.url, server.url, problems))
    page.set_default_timeout(20 * SECONDS)
    page.goto(server.url)
    yield page
    page.close()
    assert problems == []


def _check_request(asked: str, ours: str, problems: list[str]) -> None:
    if not asked.startswith((ours, "blob:", "data:")):
        problems.append(f"a request to {asked}")


def output(page: Any, text: str) -> None:
    sync_api.expect(page.locator("#output")).to_have_text(text, timeout=20 * SECONDS)


def write(page: Any, text: str, expected: str) -> None:
    page.fill("#source", text)
    output(page, expected)


def test_it_translates_as_one_types(page: Any) -> None:
    asked: list[str] = []
    page.on(
        "request",
        lambda each: asked.append(each.post_data) if each.url.endswith("v1/translate") else None,
    )
    page.wait_for_selector(".word")
    asked.clear()
    page.fill("#source", "")
    output(page, "")
    page.locator("#source").press_sequentially(HUNGRY, delay=20)
    output(page, HUNGER)
    assert 1 <= len(asked) < len(HUNGRY) / 2  # not for every key
    page.fill("#source", f"{HUNGRY}\n\nGood night.")
    output(page, f"{HUNGER}\n\nBoa noite.")
    assert "steps of 2x1" in page.inner_text("#status")


def test_an_outdated_answer_is_not_shown(page: Any, server: Running) -> None:
    page.wait_for_selector(".word")

    def late(route: Any) -> None:
        if "hungry" in (route.request.post_data or ""):
            page.wait_for_timeout(400)
        route.continue_()

    page.route("**/v1/translate", late)
    page.fill("#source", HUNGRY)
    page.wait_for_timeout(300)
    page.fill("#source", "Good night.")
    output(page, "Boa noite.")
    page.wait_for_timeout(600)
    output(page, "Boa noite.")


def test_both_ends_close_step_by_step(page: Any) -> None:
    write(page, HUNGRY, HUNGER)
    page.locator("#step-number", has_text="3 / 3").wait_for()
    written = page.locator("#stage .written b")
    assert written.all_inner_texts() == ["Estou", "com", "fome", "."]
    page.locator("#step").focus()
    page.keyboard.press("Home")
    assert written.count() == 0
    page.click("#forward")
    assert written.all_inner_texts() == ["Estou", "."]
    assert page.locator("#stage .new.right b").inner_text() == "Estou"
    assert page.locator("#stage .new.left b").inner_text() == "."
    assert page.inner_text("#stage-text") == "Step 1 of 3: Estou and ."
    page.click("#forward")
    assert written.all_inner_texts() == ["Estou", "com", "fome", "."]
    page.click("#forward")
    assert page.inner_text("#stage-text") == "Step 3 of 3: the end symbol"
    page.click("#back")
    page.click("#back")
    assert written.count() == 2


def test_a_model_that_writes_left_to_right_points_to_one_that_does_not(page: Any) -> None:
    write(page, HUNGRY, HUNGER)
    assert page.inner_text("#stage-title") == "Both ends closing"
    assert page.locator("#both-ends").is_hidden()
    page.select_option("#model", "en-pt-1x1")
    page.locator("#status", has_text="steps of 1x1").wait_for()
    assert page.inner_text("#stage-title") == "Written left to right"
    page.click("#both-ends")
    page.locator("#status", has_text="steps of 2x1").wait_for()
    assert page.input_value("#model") == "en-pt-2x1"
    assert page.locator("#both-ends").is_hidden()


def test_the_animation_plays_pauses_and_has_a_speed(page: Any) -> None:
    write(page, HUNGRY, HUNGER)
    page.locator("#speed").fill("1")
    assert page.inner_text("#speed-number") == "1 a second"
    page.locator("#step-number", has_text="3 / 3").wait_for()
    page.click("#play")
    assert page.get_attribute("#play", "aria-label") == "Pause"
    page.locator("#step-number", has_text="1 / 3").wait_for()
    page.click("#play")
    page.wait_for_timeout(1.3 * SECONDS)
    assert page.inner_text("#step-number") == "1 / 3"
    page.locator("#speed").fill("12")
    page.click("#play")
    page.locator("#step-number", has_text="3 / 3").wait_for()


def test_several_sentences_are_shown_one_by_one(page: Any) -> None:
    write(page, f"{HUNGRY} Good night.", f"{HUNGER} Boa noite.")
    page.click("#next-sentence")
    assert page.inner_text("#sentence-number") == "Sentence 2 of 2"
    assert page.locator("#stage .token b").all_inner_texts()[:2] == ["Boa", "noite"]
    assert page.locator("#hypotheses .t").first.inner_text() == "Boa noite."


def test_alternatives_on_a_click_and_with_keys(page: Any) -> None:
    write(page, "Where is the station?", "Onde está a estação?")
    page.click(".word:has-text('estação')")
    page.locator("#menu button").first.wait_for()
    page.keyboard.press("Escape")
    assert page.locator("#menu").is_hidden()
    assert page.evaluate("() => document.activeElement.textContent") == "estação"
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("() => document.activeElement.textContent") == "a"
    page.keyboard.press("Enter")
    page.locator("#menu button").first.wait_for()
    page.keyboard.press("ArrowDown")
    chosen = page.evaluate("() => document.activeElement.textContent")
    page.keyboard.press("Enter")
    output(page, f"Onde está {chosen} estação?")
    assert page.locator(".word.changed").all_inner_texts() == chosen.split()


def test_several_words_are_chosen_by_dragging_and_with_shift(page: Any) -> None:
    asked: list[Any] = []
    page.on(
        "request",
        lambda each: asked.append(each.post_data_json) if "alternatives" in each.url else None,
    )
    page.fill("#source", "Where is the station?")
    page.wait_for_selector("#output:not(.outdated) .word")
    words = page.locator(".word")
    text, last = page.inner_text("#output"), words.count() - 1
    first, second = words.nth(last - 1).bounding_box(), words.nth(last).bounding_box()
    page.mouse.move(first["x"] + 3, first["y"] + first["height"] / 2)
    page.mouse.down()
    page.mouse.move(second["x"] + 3, second["y"] + second["height"] / 2, steps=4)
    page.mouse.up()
    page.locator("#menu button").first.wait_for()
    assert page.locator(".word.chosen").count() == 2
    chosen = " ".join(words.nth(number).inner_text() for number in (last - 1, last))
    assert text[asked[0]["start"] : asked[0]["end"]] == chosen
    page.keyboard.press("Escape")
    assert page.locator(".word.chosen").count() == 0
    words.nth(0).focus()
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Enter")
    page.locator("#menu button").first.wait_for()
    assert text[asked[1]["start"] : asked[1]["end"]] == " ".join(
        words.nth(number).inner_text() for number in (0, 1)
    )


def test_greedily_what_was_there_is_a_draft(page: Any) -> None:
    page.wait_for_selector(".word")
    page.select_option("#beam", "1")
    page.fill("#source", HUNGRY)
    output(page, HUNGER)
    asked: list[Any] = []
    page.on("request", lambda each: asked.append(each.post_data_json) if each.post_data else None)
    page.fill("#source", f"{HUNGRY} Good night.")
    page.locator("#status", has_text="saved by what was there").wait_for()
    assert asked[0]["draft"] == [HUNGER]
    assert page.locator("#stage .token").count() > 0  # and how it was written is still known


def test_other_hypotheses_can_be_chosen(page: Any) -> None:
    write(page, HUNGRY, HUNGER)
    items = page.locator("#hypotheses button")
    # Of a beam of four, what differs: a word said twice where the ends meet is said once.
    items.nth(1).wait_for()
    assert items.count() <= 4
    second = items.nth(1).locator(".t").inner_text()
    items.nth(1).click()
    output(page, second)
    assert page.locator("#hypotheses [aria-pressed=true] .t").inner_text() == second
    page.select_option("#beam", "1")
    sync_api.expect(items).to_have_count(1)
    assert "beam of 1" in page.inner_text("#best-note")


def test_the_race_tells_measured_times(page: Any) -> None:
    write(page, HUNGRY, HUNGER)
    page.click("#race")
    page.locator("#race-result", has_text="on this machine").wait_for()
    clocks = [float(text.split()[0]) for text in page.locator(".lane .clock").all_inner_texts()]
    assert min(clocks) > 0
    steps = page.locator(".lane .steps").all_inner_texts()
    assert [text.split()[-2] for text in steps] == ["5", "3"]
    names = page.locator(".lane .name").all_inner_texts()
    # Clocks are rounded, so that two may show the same.
    winners = [name for name, clock in zip(names, clocks, strict=True) if clock == min(clocks)]
    verdict = page.inner_text("#race-result")
    assert verdict.startswith((*winners, "A tie"))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.md", f"# {HUNGRY}\n\n`code` [x](y)\n", f"# {HUNGER}\n"),
        ("a.html", f"<p class='x'>{HUNGRY}</p>", f"<p class='x'>{HUNGER}</p>"),
        ("a.srt", f"1\n00:00:01,000 --> 00:00:02,000\n{HUNGRY}\n", f"00:00:02,000\n{HUNGER}"),
    ],
)
def test_a_chosen_file_is_offered_for_download(
    page: Any, tmp_path: Path, name: str, content: str, expected: str
) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    page.wait_for_selector(".word")
    page.set_input_files("#file", str(path))
    with page.expect_download() as download:
        page.click("#download")
    assert download.value.suggested_filename == name.replace(".", ".pt.")
    assert expected in Path(download.value.path()).read_text(encoding="utf-8")


def test_a_dropped_file(page: Any) -> None:
    page.wait_for_selector(".word")
    page.evaluate(
        """text => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([text], "note.txt"));
            const fire = name => document.body.dispatchEvent(
                new DragEvent(name, { dataTransfer: transfer, bubbles: true, cancelable: true }));
            fire("dragenter"); fire("dragover"); fire("drop");
        }""",
        HUNGRY,
    )
    page.locator("#file-status", has_text="note.txt: 1 sentence").wait_for()
    assert page.get_attribute("#download", "download") == "note.pt.txt"


def test_files_that_cannot_be_translated(page: Any, tmp_path: Path) -> None:
    page.wait_for_selector(".word")
    for name, content, told in (
        ("a.pdf", b"%PDF", "not a Markdown"),
        ("a.txt", b"\xff\xfe", "not in UTF-8"),
        ("b.txt", b"x" * 30_000, "takes 20000"),
    ):
        (tmp_path / name).write_bytes(content)
        page.set_input_files("#file", str(tmp_path / name))
        page.locator("#file-status", has_text=told).wait_for()
        assert page.locator("#download").is_hidden()


def test_what_goes_wrong_is_said(page: Any) -> None:
    page.wait_for_selector(".word")
    page.fill("#source", "x" * 20_001)
    page.locator("#alert", has_text="a request may have 20,000").wait_for()
    write(page, HUNGRY, HUNGER)
    assert page.locator("#alert").is_hidden()
    answers = iter(
        [
            {"status": 503, "headers": {"retry-after": "1"}, "body": '{"error": "busy"}'},
            None,  # the next goes through
        ]
    )

    def busy_once(route: Any) -> None:
        answer = next(answers, None)
        route.fulfill(**answer) if answer else route.continue_()

    page.route("**/v1/translate", busy_once)
    page.fill("#source", "Good night.")
    page.locator("#alert", has_text="Trying again in 1 s").wait_for()
    output(page, "Boa noite.")
    page.unroute("**/v1/translate")
    page.route("**/v1/translate", lambda route: route.abort())
    page.fill("#source", HUNGRY)
    page.locator("#alert", has_text="does not answer").wait_for()


def test_a_key_can_be_given(browser: Any, tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys", "ann")
    with running(ServeOptions(models=MODELS, keys=ApiKeys.load(tmp_path / "keys"))) as server:
        for page in opened(browser, server):
            page.fill("#source", HUNGRY)
            page.locator("#alert", has_text="wants an API key").wait_for()
            page.fill("#key", key)
            page.press("#key", "Enter")
            output(page, HUNGER)
            assert page.locator("#key-form").is_hidden()


def test_the_theme_is_the_systems_until_it_is_chosen(browser: Any, server: Running) -> None:
    for page in opened(browser, server, color_scheme="dark"):
        dark = page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")
        page.click("#theme")
        light = page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")
        assert dark != light
        page.reload()
        kept = page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")
        assert kept == light


@pytest.mark.parametrize("width", [320, 820])
def test_nothing_is_wider_than_the_screen(browser: Any, server: Running, width: int) -> None:
    for page in opened(browser, server, viewport={"width": width, "height": 800}):
        page.wait_for_selector(".word")
        page.fill("#source", f"I am {'very' * 40} hungry. Good night. Where is the station?")
        page.locator("#sentence-number", has_text="of 3").wait_for(state="attached")
        overflow = page.evaluate(
            "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert overflow <= 0


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_axe_finds_nothing_serious(browser: Any, server: Running, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    context = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    # The policy of the page would keep axe out, too.
    for page in opened(browser, server, bypass_csp=True, reduced_motion="reduce", **context):
        write(page, f"{HUNGRY} Good night.", f"{HUNGER} Boa noite.")
        page.click(".word >> nth=0")
        page.locator("#menu button").first.wait_for()
        _check_axe(axe, page)
        page.goto(f"{server.url}/docs")
        page.locator("h2", has_text="/v1/translate").wait_for()
        _check_axe(axe, page)


def _check_axe(axe: Any, page: Any) -> None:
    found = axe.Axe().run(page).response["violations"]
    serious = [
        (each["id"], [node["html"] for node in each["nodes"]])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
    assert serious == []
