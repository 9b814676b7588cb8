"""The HTML report in a browser: opened from disk with no network, by keyboard, on a phone, in the dark, on paper.

Needs Chromium with its driver (Debian: `apt-get install chromium chromium-driver`); skipped where they are not.
"""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawlr import report
from tests import leaks
from tests.report_crawl import ERROR, HOSTILE_URL, SITE, TEXT, TITLE, MadeCrawl, everything, head, stats

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.chrome.service import Service  # noqa: E402  # after importorskip
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="chromium or chromedriver is missing: apt-get install chromium-driver"
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
TABS = (
    "overview",
    "broken",
    "external",
    "redirects",
    "weight",
    "unasked",
    "duplicates",
    "listed",
    "structure",
    "hosts",
    "performance",
)
LIMIT = 20.0


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> None:
    """A browser starts and ends processes of its own as it likes: what it leaves is looked at when it has ended."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One browser for the module; nothing of it is left when it has ended."""
    before = leaks.take()
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_page_load_timeout(LIMIT)
    driver.set_script_timeout(LIMIT)
    yield driver
    driver.quit()
    assert not leaks.since(before)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the crawl with one of everything."""
    return made(everything(), tmp_path_factory.mktemp("report") / "report.html")


def made(crawl: MadeCrawl, path: Path, **changes: Any) -> Path:
    options: dict[str, Any] = {
        "head": head(),
        "stats_document": stats(parse_sample=[[1000, 500], [2000, 900]]),
    } | changes
    with crawl.view() as view, path.open("w", encoding="utf-8") as out:
        report.write(out, view, **options)
    return path


class Opened:
    """The report in the browser, from its first tab on."""

    def __init__(self, driver: Any, path: Path, *, width: int = 1280, dark: bool = False, scripts: bool = True) -> None:
        self.driver = driver
        driver.get("about:blank")
        driver.get_log("browser")
        driver.get_log("performance")
        self.command("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 700
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", media="", features=[scheme])
        driver.get(path.as_uri())

    def command(self, name: str, **values: Any) -> Any:
        return self.driver.execute_cdp_cmd(name, values)

    def run(self, script: str, *values: Any) -> Any:
        return self.driver.execute_script(script, *values)

    def all(self, selector: str) -> list[Any]:
        found: list[Any] = self.driver.find_elements(By.CSS_SELECTOR, selector)
        return found

    def one(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def tab(self, key: str) -> None:
        """Choose a tab as a person does, and wait until it is shown."""
        self.one(f"#tab-{key}").click()
        WebDriverWait(self.driver, LIMIT).until(lambda driver: driver.find_element(By.ID, key).is_displayed())

    def rows(self, table: str) -> list[list[str]]:
        """The texts of the cells of a long table, as they stand."""
        found: list[list[str]] = self.run(
            "return [...document.querySelectorAll(`[data-table=${arguments[0]}] > table > tbody > tr:not(.inner)`)]"
            ".map(row => [...row.cells].map(cell => cell.textContent))",
            table,
        )
        return found

    def column(self, table: str, number: int) -> list[str]:
        return [row[number] for row in self.rows(table)]

    def complaints(self) -> list[str]:
        """What the browser wrote to its console."""
        return [entry["message"] for entry in self.driver.get_log("browser")]


@pytest.fixture
def page(browser: Any, file: Path) -> Opened:
    """The report on a wide screen."""
    return Opened(browser, file)


# ---------------------------------------------------------------- opening


def test_every_tab_opens_without_a_complaint(page: Opened) -> None:
    """No error, no warning, no violation of the policy, and one tab at a time."""
    for key in TABS:
        page.tab(key)

        assert [each.get_attribute("id") for each in page.all(".panel") if each.is_displayed()] == [key]
        assert page.one("#tabs [aria-current]").get_attribute("id") == f"tab-{key}"
    assert page.complaints() == []


def test_nothing_is_asked_of_a_network(page: Opened) -> None:
    """The one thing that is loaded is the file."""
    for key in TABS:
        page.tab(key)
    loaded = page.run("return performance.getEntriesByType('resource').map(entry => entry.name)")
    sent = [
        entry["message"]
        for entry in page.driver.get_log("performance")
        if "Network.requestWillBeSent" in entry["message"]
    ]

    assert loaded == []
    assert [message for message in sent if '"url":"file://' not in message and '"url":"about:' not in message] == []


def test_every_tab_shows_its_data(page: Opened) -> None:
    """A row of each table, a line of each plot, a node of the picture."""
    shown = {
        "broken": ("broken", "/gone"),
        "external": ("external", "https://elsewhere.test/2"),
        "redirects": ("redirects", "/older"),
        "weight": ("slow", "/about"),
        "unasked": ("unasked", "/private"),
        "duplicates": ("bodies", "/about"),
        "listed": ("orphans", "/orphan"),
        "structure": ("top", "/about"),
        "hosts": ("hosts", "site.test"),
        "performance": ("timeline", "host"),
    }
    page.tab("overview")

    assert "8 broken URLs" in page.one(".findings").text
    for key, (table, text) in shown.items():
        page.tab(key)

        assert any(text in row for row in page.rows(table)), key
    plots = {
        plot.get_attribute("data-plot") for plot in page.all("[data-plot]") if plot.find_elements(By.TAG_NAME, "canvas")
    }
    page.tab("structure")

    assert plots == {"rates", "busy", "parse", "weight"}
    assert len(page.all("#graph [data-node]")) > 5


def test_plots_have_ink(page: Opened) -> None:
    """A canvas that stays empty is no plot."""
    page.tab("performance")
    inked = page.run(
        "return [...document.querySelectorAll('#performance canvas')].map(canvas => {"
        " const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;"
        " const seen = new Set();"
        " for (let i = 0; i < data.length; i += 4) if (data[i + 3]) seen.add(data.slice(i, i + 3).join());"
        " return seen.size })"
    )

    assert len(inked) == 4
    assert all(colours > 3 for colours in inked)


@pytest.mark.parametrize(
    "sample",
    [[[0, 67], [29, 121], [5_000_000, 1_000_000]], [[0, 5]], [[100, 5]], [[100, 5], [100, 900]], [[1, 1]], [[50, 0]]],
    ids=["empty and others", "one empty page", "one page", "one size", "least", "no time"],
)
def test_plots_of_few_or_empty_pages_are_drawn_without_a_complaint(
    browser: Any, tmp_path: Path, sample: list[list[int]]
) -> None:
    """A page without a byte, and sizes or times that are all the same, are nothing a plot trips over."""
    page = Opened(browser, made(everything(), tmp_path / "few.html", stats_document=stats(parse_sample=sample)))
    page.tab("performance")

    assert page.complaints() == []


def test_few_large_pages_leave_the_others_apart(browser: Any, tmp_path: Path) -> None:
    """Times to parse stand by powers of ten: ten pages of a millisecond are not one line below one of a second."""
    sample = [[1000 * number, 100 * number] for number in range(1, 11)] + [[5_000_000, 1_000_000]]
    page = Opened(browser, made(everything(), tmp_path / "spread.html", stats_document=stats(parse_sample=sample)))
    page.tab("performance")
    rows = page.run(
        "const canvas = document.querySelector('[data-plot=parse] canvas');"
        "const probe = document.createElement('span'); probe.style.color = 'var(--first)'; document.body.append(probe);"
        "const dot = getComputedStyle(probe).color.match(/[0-9]+/g).map(Number);"
        "const { data, width, height } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);"
        "const rows = [];"
        "for (let y = 0; y < height; y += 1) for (let x = 0; x < width; x += 1) {"
        " const at = 4 * (y * width + x);"
        " if (dot.every((part, index) => data[at + index] === part)) { rows.push(y / height); break; } }"
        "return rows"
    )

    assert max(rows) - min(rows) > 0.3
    assert len([row for row in rows if row > min(rows) + 0.1]) > 20


def test_a_tab_has_an_address(browser: Any, file: Path) -> None:
    """A link to the report may name the tab, and going back leads to the tab before."""
    page = Opened(browser, file)
    browser.get(f"{file.as_uri()}#hosts")
    assert page.one("#hosts").is_displayed()
    page.tab("broken")
    browser.back()

    WebDriverWait(browser, LIMIT).until(lambda driver: driver.find_element(By.ID, "hosts").is_displayed())
    assert not page.one("#broken").is_displayed()


# ---------------------------------------------------------------- hostile text


def test_hostile_text_stays_text(page: Opened) -> None:
    """Nothing of it runs, and all of it can be read."""
    for key in TABS:
        page.tab(key)
    page.tab("broken")
    page.one("[data-table=broken] .open").click()

    assert page.run("return window.hacked") is None
    assert TEXT in page.one(".inner").text
    assert ERROR in page.column("broken", 3)
    assert HOSTILE_URL.removeprefix(SITE) in page.column("broken", 0)
    page.tab("weight")

    assert TITLE in page.column("slow", 5)
    assert page.all("img, iframe, [onload], [onerror]") == []
    assert page.all("main script") == []


def test_no_link_runs_a_script(page: Opened) -> None:
    """An address of another scheme is shown and can't be followed."""
    page.tab("redirects")
    schemes = page.run("return [...document.links].map(link => link.protocol)")

    assert any("javascript:window.hacked" in row[3] for row in page.rows("redirects"))
    assert set(schemes) == {"https:", "file:"}


def test_policy_stops_what_gets_in_all_the_same(page: Opened) -> None:
    """Were there a hole, an inline script, a handler or a picture from elsewhere would still be refused."""
    page.run(
        "const script = document.createElement('script'); script.textContent = 'window.hacked = 9';"
        "document.body.append(script);"
        "const button = document.createElement('button'); button.setAttribute('onclick', 'window.hacked = 10');"
        "document.body.append(button); button.click();"
        "const picture = document.createElement('img'); picture.src = 'http://127.0.0.1:9/x.png';"
        "document.body.append(picture);"
    )

    refused: list[str] = []

    def is_refused(_: Any) -> bool:
        refused.extend(text for text in page.complaints() if "Content Security Policy" in text)
        return len(refused) >= 3

    WebDriverWait(page.driver, LIMIT).until(is_refused)

    assert page.run("return window.hacked") is None


# ---------------------------------------------------------------- tables


def test_a_table_sorts_by_each_column(page: Opened) -> None:
    """Numbers the largest first, texts from A, what is not known last; a second click turns it round."""
    page.tab("broken")
    status, url = page.all("[data-table=broken] .sort")[2], page.all("[data-table=broken] .sort")[0]
    status.click()
    falling = page.column("broken", 2)
    status.click()
    rising = page.column("broken", 2)
    order = page.all("[data-table=broken] th")[2].get_attribute("aria-sort")
    url.click()
    urls = page.column("broken", 0)

    assert falling == ["503", "404", "404", "302", "301", "301", "200", ""]
    assert rising == ["200", "301", "301", "302", "404", "404", "503", ""]
    assert order == "ascending"
    assert urls == sorted(urls)


def test_a_table_filters_by_text_and_by_kind(page: Opened) -> None:
    """The text may be in what a row opens, too."""
    page.tab("broken")
    box = page.one("[data-table=broken] input")
    box.send_keys("GONE, TOO")
    by_text = page.column("broken", 0)
    status = page.one("[data-table=broken] [role=status]").text
    box.clear()
    page.one("[data-table=broken] select option[value='redirect loop']").click()
    by_kind = page.column("broken", 0)

    assert by_text == ["/gone"]
    assert status == "1 row, filtered from 8"
    assert by_kind == ["/round", "/round2"]


def test_a_row_opens_the_pages_that_link_there(page: Opened) -> None:
    """With the text of each link, and closes again."""
    page.tab("broken")
    button = page.one("[data-table=broken] .open")
    button.click()
    opened = [[cell.text for cell in row.find_elements(By.TAG_NAME, "td")] for row in page.all(".inner tbody tr")]
    expanded = button.get_attribute("aria-expanded")
    button.click()

    assert opened == [["/", TEXT, "a"], ["/about", "Gone, too", "area"], ["/to-gone", "", "redirect"]]
    assert expanded == "true"
    assert page.all(".inner") == []


def test_a_long_table_is_shown_page_by_page(browser: Any, tmp_path: Path) -> None:
    """And what a row opens a hundred at a time."""
    crawl = MadeCrawl()
    crawl.page("/", depth=0, parent=None)
    for number in range(120):
        crawl.page(f"/{number:03}", status=404, outcome="http_error")
        crawl.page(f"/page-{number:03}")
        crawl.link(f"/page-{number:03}", "/000", "zero")
    page = Opened(browser, made(crawl, tmp_path / "long.html"))
    page.tab("broken")
    first = page.column("broken", 0)
    page.one("[data-table=broken] .pager button:last-child").click()
    second = page.column("broken", 0)
    status = page.one("[data-table=broken] [role=status]").text
    page.one("[data-table=broken] .pager button").click()
    page.one("[data-table=broken] .open").click()
    before = len(page.all(".inner tbody tr"))
    page.one(".inner td > button").click()

    assert (len(first), len(second), set(first) & set(second)) == (50, 50, set())
    assert status == "51 to 100 of 120 rows"
    assert (before, len(page.all(".inner tbody tr"))) == (100, 120)


# ---------------------------------------------------------------- everybody


def test_everything_works_by_keyboard(page: Opened) -> None:
    """Tabs, sorting, opening and the filter are reached by Tab and worked by Enter and Space."""
    page.tab("overview")
    page.run("document.activeElement.blur(); window.getSelection().removeAllRanges(); document.body.focus()")
    body = page.one("body")
    body.send_keys(Keys.TAB)
    order = []
    for _ in range(60):
        active = page.driver.switch_to.active_element
        order.append(active.get_attribute("id") or active.get_attribute("class"))
        if order[-1] == "tab-broken":
            active.send_keys(Keys.ENTER)
            break
        active.send_keys(Keys.TAB)
    WebDriverWait(page.driver, LIMIT).until(lambda driver: driver.find_element(By.ID, "broken").is_displayed())
    reached = set()
    for _ in range(60):
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        active = page.driver.switch_to.active_element
        reached.add(active.get_attribute("class") or active.tag_name)
        if active.get_attribute("class") == "open":
            active.send_keys(Keys.SPACE)
            break

    assert {"input", "select", "sort", "open"} <= reached
    assert len(page.all(".inner")) == 1
    assert page.run("return getComputedStyle(document.activeElement).outlineStyle") != "none"


_CONTRASTS = """
const luminance = ([r, g, b]) => [r, g, b].map(v => v / 255)
  .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const parse = text => text.match(/[0-9.]+/g).map(Number);
const behind = element => {
  for (let at = element; at; at = at.parentElement) {
    const colour = parse(getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
};
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || !element.checkVisibility()) continue;
  if (element.closest('svg, .unseen, :disabled')) continue;
  const [a, b] = [luminance(parse(getComputedStyle(element).color)), luminance(behind(element))].sort((x, y) => y - x);
  found.push([(a + 0.05) / (b + 0.05), element.tagName + '.' + element.className]);
}
return found;
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_can_be_read(browser: Any, file: Path, dark: bool) -> None:
    """WCAG 2.2 §1.4.3: 4.5 to 1 or more, on every tab, in both schemes."""
    page = Opened(browser, file, dark=dark)
    for key in TABS:
        page.tab(key)
        for button in page.all(f"#{key} .open")[:1]:
            button.click()
        found = page.run(_CONTRASTS)

        assert len(found) > 10
        assert [each for each in found if each[0] < 4.5] == [], key
    background = page.run("return getComputedStyle(document.body).backgroundColor")

    assert (background == "rgb(255, 255, 255)") is not dark


def test_theme_can_be_chosen(page: Opened) -> None:
    """Against what the system says, and back."""
    seen = []
    for _ in range(4):
        seen.append((page.one("#theme").text, page.run("return getComputedStyle(document.body).colorScheme")))
        page.one("#theme").click()

    assert [text for text, _ in seen] == ["Theme: auto", "Theme: dark", "Theme: light", "Theme: auto"]
    assert [scheme for _, scheme in seen] == ["light dark", "dark", "light", "light dark"]


@pytest.mark.parametrize("width", [390, 320])
def test_a_phone_needs_no_scrolling_to_the_side(browser: Any, file: Path, width: int) -> None:
    """WCAG 2.2 §1.4.10: every tab fits 320 pixels, and a row of a table is a card with the names of its cells."""
    page = Opened(browser, file, width=width)
    for key in TABS:
        page.tab(key)
        for button in page.all(f"#{key} .open")[:1]:
            button.click()

        assert page.run("return document.documentElement.scrollWidth") <= width, key
    page.tab("broken")

    cell = "document.querySelector('[data-table=broken] tbody td')"

    assert page.run(f"return getComputedStyle({cell}, '::before').content") == '"URL: "'


@pytest.mark.parametrize("width", [1280, 390])
def test_no_table_is_cut_at_its_side(browser: Any, file: Path, width: int) -> None:
    """A bar or a column behind the edge would be missed, though its box can be scrolled."""
    page = Opened(browser, file, width=width)
    cut = (
        "return [...document.querySelectorAll('.panel:not([hidden]) :is(.data, .scroll)')]"
        ".filter(box => box.scrollWidth > box.clientWidth).map(box => box.textContent.slice(0, 40))"
    )
    for key in TABS:
        page.tab(key)

        assert page.run(cut) == [], key


@pytest.mark.parametrize("width", [1280, 390])
def test_tables_are_tables_to_a_screen_reader(browser: Any, file: Path, width: int) -> None:
    """Cards on a phone are still rows and cells with their headers, and each table has a name."""
    page = Opened(browser, file, width=width)
    page.tab("broken")
    nodes = page.command("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in nodes if not node["ignored"]]
    tables = [node for node in nodes if node["role"]["value"] == "table" and not node["ignored"]]

    assert [node["name"]["value"] for node in tables] == ["Broken URLs"]
    assert roles.count("row") == 9
    assert roles.count("columnheader") == 5
    assert roles.count("cell") == (40 if width > 1000 else 39)  # a card has no line for what is not known
    assert page.run("return document.documentElement.lang") == "en"
    assert page.run("return [...document.querySelectorAll('h1')].length") == 1


def test_without_scripts_the_findings_can_be_read(browser: Any, file: Path) -> None:
    """All sections stand below each other, and a note says what is missing."""
    page = Opened(browser, file, scripts=False)
    try:
        text = page.one("main").text
    finally:
        page.command("Emulation.setScriptExecutionDisabled", value=False)

    assert "8 broken URLs, linked from 2 pages" in text
    assert "need JavaScript" in text
    assert "Where the time went" in text


def test_paper_gets_every_section(page: Opened) -> None:
    """In light colours, with the first rows of each table and what they open; the screen is as before afterwards."""
    page.tab("hosts")
    page.command("Emulation.setEmulatedMedia", media="print")
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    printed = page.one("main").text
    controls = [each for each in page.all(".controls, .pager, nav") if each.is_displayed()]
    page.run("window.dispatchEvent(new Event('afterprint'))")
    page.command("Emulation.setEmulatedMedia", media="")
    pdf = base64.b64decode(page.command("Page.printToPDF")["data"])

    assert all(text in printed for text in ("Gone, too", "/orphan", "site.test", "Second by second", "What was found"))
    assert controls == []
    assert pdf.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type /Page\b", pdf)) >= len(TABS)
    assert [each.get_attribute("id") for each in page.all(".panel") if each.is_displayed()] == ["hosts"]


def test_a_page_of_the_picture_shows_its_links(page: Opened) -> None:
    """Choosing a node names it and marks the links that touch it."""
    page.tab("structure")
    node = page.one("#graph [data-node='1']")
    page.run("arguments[0].dispatchEvent(new PointerEvent('pointerover', {bubbles: true}))", node)
    named = page.one("#graph-named").text
    marked = page.all("#graph line.chosen")

    assert named.startswith("1: https://site.test/")
    assert marked
    assert all("1" in (line.get_attribute("data-a"), line.get_attribute("data-b")) for line in marked)


@pytest.mark.alone
def test_full_tables_open_fast(browser: Any, tmp_path: Path) -> None:
    """A report whose tables are full is shown within a few seconds (0.2 s measured), and sorts and filters likewise."""
    crawl = MadeCrawl()
    crawl.page("/", depth=0, parent=None)
    for number in range(11_000):
        crawl.page(
            f"/department-{number % 97}/product-{number}",
            status=404,
            outcome="http_error",
            title=f"Product {number // 3}",
        )
        crawl.page(f"/shop/page-{number}", millis=number, size=number, title=f"Title {number // 2}", body=number // 2)
        for other in range(4):
            crawl.link(
                f"/shop/page-{number}",
                f"/department-{(number + other) % 97}/product-{number + other}" if number + other < 11_000 else "/",
                f"text {other}",
            )
    page = Opened(browser, made(crawl, tmp_path / "large.html"))
    opened = page.run("return performance.getEntriesByType('navigation')[0].domComplete")
    page.tab("broken")
    spent = page.run(
        "const begin = performance.now();"
        "document.querySelector('[data-table=broken] .sort').click();"
        "const box = document.querySelector('[data-table=broken] input');"
        "box.value = 'product-10'; box.dispatchEvent(new Event('input'));"
        "return performance.now() - begin"
    )

    assert "10,000 of 11,000 rows" in page.one("#broken .cut").text
    assert opened < 2000
    assert spent < 2000


def test_its_template_engine_is_loaded_for_it_alone() -> None:
    """A crawl that wants no report does not wait for Jinja2."""
    code = "import sys, crawlr.report; print('jinja2' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert ended.stdout.strip() == "False"
