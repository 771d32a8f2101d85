"""The one-file report: what it holds, that nothing in it can run or leave, and how it behaves in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Browser, why_not
from made import made, made_pairs

import gigrad as gig
from gigrad import InputError, OutputError
from gigrad._output.report.write import render

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    '"><img src=x onerror=alert(3)>',
    "{{ 7 * 7 }} ${alert(4)} & ' \u2028 é",
)


class Page(HTMLParser):
    """The texts and tags of a page, its JSON apart."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.json = ""
        self._inside: dict[str, str | None] | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = dict(attrs) if tag in ("script", "style") else None

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside is None:
            self.texts.append(data.strip())
        elif self._inside.get("id") == "data":
            self.json += data


@pytest.fixture(scope="module")
def hostile() -> str:
    return render(made(n=60, p=4, names=HOSTILE, paths=True))


# ---------------------------------------------------------------- the file


def test_the_file_stays_below_two_megabytes_for_1000_rows_of_50_features() -> None:
    e = made(n=1000, p=50, paths=True)
    assert len(render(e).encode()) < 2_000_000


def test_hostile_names_are_text_everywhere(hostile: str) -> None:
    page = Page(hostile)
    for name in HOSTILE:
        assert " ".join(name.split()) in [" ".join(t.split()) for t in page.texts]
    assert json.loads(page.json)["names"] != []
    assert sorted(json.loads(page.json)["names"]) == sorted(HOSTILE)
    assert [a for t, a in page.tags if t == "script"] == [{"type": "application/json", "id": "data"}, {}]
    assert not any(tag == "img" for tag, _ in page.tags)
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)


def test_the_file_names_no_address_outside_of_itself(hostile: str) -> None:
    page = Page(hostile)
    links = [a[k] for _, a in page.tags for k in ("href", "src") if k in a]
    assert links
    assert all(str(link).startswith(("#", "data:")) for link in links)
    allowed = {"http://www.w3.org/2000/svg"}  # the name of SVG, not an address that is asked for
    assert set(re.findall(r"https?://[^\s\"'<>]+", hostile)) <= allowed
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_the_credits_in_the_file_are_those_of_the_explanation() -> None:
    e = made(n=30, p=5, paths=True)
    data = json.loads(Page(render(e)).json)
    order = [e.feature_names.index(name) for name in data["names"]]
    np.testing.assert_allclose(np.array(data["credits"]) * data["unit"], e.values[:, order], atol=0.51 * data["unit"])
    np.testing.assert_allclose(data["prediction"], e.predictions, rtol=1e-6)
    first = data["columns"][data["names"].index("f0")]
    shown = [None if code is None else first["labels"][code] for code in first["values"]]
    assert shown == [None if v != v else v for v in np.asarray(e.raw("f0"))]
    path = data["paths"]["rows"]["2"]
    np.testing.assert_allclose(np.array(path["score"])[-1] * data["unit"], e.values[2].sum(), atol=data["unit"])


def test_a_large_explanation_is_sampled_and_says_so() -> None:
    html = render(made(n=1500, p=3), rows=200)
    assert "200 of 1,500 rows, drawn at random" in html
    assert len(json.loads(Page(html).json)["ids"]) == 200
    assert "<td>1,500</td>" in html


def test_features_beyond_the_first_hundred_are_gathered() -> None:
    e = made(n=20, p=130)
    data = json.loads(Page(render(e)).json)
    assert data["leftName"] == "30 others"
    total = np.array(data["credits"]).sum(axis=1) + np.array(data["left"])
    np.testing.assert_allclose(total * data["unit"], e.values.sum(axis=1), atol=66 * data["unit"])


def test_provenance_and_completeness_are_shown() -> None:
    e = made()
    e.provenance["model"]["fingerprint"] = "abc123"
    texts = Page(render(e, title="Refusals of May")).texts
    assert "Refusals of May" in texts
    assert "abc123" in texts
    assert "model: fingerprint" in texts
    assert f"{np.abs(e.gap).max():.2g}" in texts


def test_one_call_goes_from_a_model_to_its_report(tmp_path: Path) -> None:
    from sklearn.ensemble import GradientBoostingClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model = GradientBoostingClassifier(n_estimators=10, max_depth=2, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    e = gig.report(model, X[:20], X[100:], tmp_path / "r.html", title="Twenty", paths=4, output="margin")
    page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "Twenty" in page.texts
    assert e.provenance["model"]["fingerprint"] in page.texts
    assert e.provenance["reference"]["fingerprint"] in page.texts
    data = json.loads(page.json)
    assert sorted(map(int, data["paths"]["rows"])) == [0, 1, 2, 3]
    ends = {data["names"][j]: credit[-1] * data["unit"] for j, credit in data["paths"]["rows"]["2"]["bands"]}
    assert ends == pytest.approx(dict(zip(e.feature_names, e.values[2], strict=True)), abs=data["unit"])


def drifted(names: Any = None) -> Any:
    """Two explanations of the same rows, of which the second was made by another model."""
    from dataclasses import replace

    before, now = made(n=60, p=4, names=names), made(n=60, p=4, names=names, paths=True)
    ids = np.arange(60)
    before = replace(before, ids=ids)
    now = replace(
        now, ids=ids, data=before.data, values=now.values + [[0.4, 0, 0, 0]] * 60, predictions=now.predictions + 0.4
    )
    return now, gig.monitor(now, before, higher_is_better=False)


def test_drift_is_a_section_of_the_report(tmp_path: Path) -> None:
    now, found = drifted()
    plain = Page(render(now))
    assert "Drift" not in plain.texts
    page = Page(render(now, drift=found))
    assert "Drift" in page.texts
    assert ("section", {"id": "drift"}) in page.tags
    for r in found.reasons:
        assert f"{100 * r.low:+.1f} to {100 * r.high:+.1f}" in page.texts
    for c in found.credits:
        assert f"{c.psi:.4f}" in page.texts
    drawn = [attributes for tag, attributes in page.tags if tag == "svg" and attributes.get("class") == "interval"]
    assert len(drawn) == len(found.reasons) + len(found.credits)
    assert found.changed.changed > 0
    said = f"Of 60 rows in both, 60 have the same data; the reasons of {found.changed.changed} of these changed."
    assert said in page.texts
    now.report(tmp_path / "r.html", drift=found)
    assert said in (tmp_path / "r.html").read_text(encoding="utf-8")
    with pytest.raises(InputError, match=r"drift must be a result of gigrad\.monitor; got"):
        render(now, drift="may.parquet")


def test_names_in_the_section_on_drift_are_text() -> None:
    now, found = drifted(HOSTILE)
    page = Page(render(now, drift=found))
    assert not [tag for tag, attributes in page.tags if tag == "img" or attributes.get("onerror")]
    assert sum(tag == "script" for tag, _ in page.tags) == 2


def test_reports_are_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    made().report(tmp_path / "r.html", title="first")
    before = (tmp_path / "r.html").read_text()
    assert "first" in before

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OutputError, match="the disk is full"):
        made().report(tmp_path / "r.html", title="second")
    assert (tmp_path / "r.html").read_text() == before
    assert list(tmp_path.iterdir()) == [tmp_path / "r.html"]


def test_what_cannot_be_reported_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="report draws one output; pick one of 'class 0'"):
        made(k=2).report(tmp_path / "r.html")
    with pytest.raises(InputError, match="at least one row"):
        made()[:0].report(tmp_path / "r.html")
    with pytest.raises(OutputError, match="the folder does not exist"):
        made().report(tmp_path / "nowhere" / "r.html")


# ---------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def chromium() -> None:
    """A browser is no Python package: where the system has none, what only a browser can tell is skipped."""
    if why_not():
        pytest.skip(why_not())


@pytest.fixture(scope="module")
def opened(hostile: str, chromium: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("report")
    file = folder / "report.html"
    file.write_text(hostile, encoding="utf-8")
    with Browser(folder / "profile") as browser:
        browser.open(file.as_uri())
        yield browser


def shown(browser: Browser, selector: str) -> str:
    return str(browser.run("return document.querySelector(arguments[0]).textContent", selector))


def test_the_page_runs_without_errors_and_asks_for_nothing(opened: Browser) -> None:
    requests = [url for url in opened.requests() if not url.startswith("data:")]
    assert len(requests) == 1  # the file itself
    assert requests[0].startswith("file://")
    assert opened.log("browser") == []
    assert opened.run("return document.querySelectorAll('#rows tbody tr').length") == 25


def test_the_browser_would_notice_an_error_and_a_request(chromium: None, tmp_path: Path) -> None:
    file = tmp_path / "bad.html"
    file.write_text("<img src='http://127.0.0.1:9/beacon.png'><script>undefinedFunction()</script>")
    with Browser(tmp_path / "profile") as browser:
        browser.open(file.as_uri())
        assert any("undefinedFunction" in entry["message"] for entry in browser.log("browser"))
        assert "http://127.0.0.1:9/beacon.png" in browser.requests()


def test_a_column_called_script_is_shown_not_run(opened: Browser) -> None:
    assert opened.run("return document.scripts.length") == 2
    assert opened.run("return document.images.length") == 0
    body = str(opened.run("return document.body.innerText"))
    for name in HOSTILE[:3]:
        assert name in body
    assert "<script>alert(1)</script>" in shown(opened, "#waterfall")


def test_clicking_a_row_changes_the_pictures(opened: Browser) -> None:
    opened.click("#rows tbody tr[data-row='0']")
    before = [shown(opened, s) for s in ("#chosen", "#waterfall", "#path", "#values", "#sentence")]
    ring = opened.run("return document.querySelector('#plots .ring').getAttribute('cy')")
    opened.click("#rows tbody tr[data-row='2']")
    after = [shown(opened, s) for s in ("#chosen", "#waterfall", "#path", "#values", "#sentence")]
    assert after[0] == "loan 2"
    assert all(a != b for a, b in zip(after, before, strict=True))
    assert opened.run("return document.querySelector('#plots .ring').getAttribute('cy')") != ring
    assert opened.run("return document.querySelector('tr[aria-selected=true]').dataset.row") == "2"
    opened.click("#rows tbody tr[data-row='5']")
    assert "was not kept" in shown(opened, "#path-said")


def test_the_waterfall_of_the_page_has_the_credits_of_the_row(opened: Browser) -> None:
    opened.click("#rows tbody tr[data-row='3']")
    e = made(n=60, p=4, names=HOSTILE, paths=True)
    for credit in e.values[3]:
        assert f"{abs(credit):.2f}" in shown(opened, "#waterfall")
    assert f"{abs(e.predictions[3]):.2f}" in shown(opened, "#waterfall")


def test_rows_can_be_sorted_searched_and_paged(opened: Browser) -> None:
    scores = "return [...document.querySelectorAll('#rows tbody tr td:nth-child(2)')].map(c => c.textContent)"
    opened.click("th[data-sort=prediction] button")
    up = [float(str(s).replace("\N{MINUS SIGN}", "-")) for s in opened.run(scores)]
    assert up == sorted(up)
    opened.click("th[data-sort=prediction] button")
    down = [float(str(s).replace("\N{MINUS SIGN}", "-")) for s in opened.run(scores)]
    assert down == sorted(down, reverse=True)
    opened.click("#next")
    assert "page 2 of 3" in shown(opened, "#page")
    opened.type("#search", "loan 59")
    assert shown(opened, "#found") == "1 found"
    assert opened.run("return document.querySelectorAll('#rows tbody tr').length") == 1
    assert opened.log("browser") == []


MISPLACED = """
const bad = [];
for (const svg of document.querySelectorAll("svg")) {
  const box = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")].filter((t) => t.textContent.trim() && !t.getAttribute("transform"));
  const rects = texts.map((t) => t.getBoundingClientRect());
  rects.forEach((r, i) => {
    if (r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1)
      bad.push("outside: " + texts[i].textContent);
    rects.slice(0, i).forEach((o, k) => {
      if (r.left < o.right - 1 && o.left < r.right - 1 && r.top < o.bottom - 2 && o.top < r.bottom - 2)
        bad.push(texts[i].textContent + " over " + texts[k].textContent);
    });
  });
}
if (document.documentElement.scrollWidth > window.innerWidth) bad.push("the page is wider than the window");
return bad;
"""
LONG = tuple(f"bureau_number_of_trades_opened_in_the_last_{i}_months_without_collections" for i in range(1, 61))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
def test_labels_stay_inside_and_apart_on_telephones_and_desktops(
    width: int, dark: bool, chromium: None, tmp_path: Path
) -> None:
    pages = {"long": made(n=30, p=60, names=LONG, paths=True), "few": made(n=30, paths=True), "pairs": made_pairs()}
    with Browser(tmp_path / "profile") as browser:
        browser.show(width, dark=dark)
        for name, e in pages.items():
            (tmp_path / f"{name}.html").write_text(render(e), encoding="utf-8")
            browser.open((tmp_path / f"{name}.html").as_uri())
            assert browser.run(MISPLACED) == [], name
            paper = str(browser.run("return getComputedStyle(document.body).backgroundColor"))
            assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 200) == dark
            assert browser.log("browser") == []


def test_pairs_show_both_values_and_only_what_changed(chromium: None, tmp_path: Path) -> None:
    (tmp_path / "pairs.html").write_text(render(made_pairs()), encoding="utf-8")
    with Browser(tmp_path / "profile") as browser:
        browser.open((tmp_path / "pairs.html").as_uri())
        for part in ("#waterfall", "#path"):
            assert "f1 42 -> 50" in shown(browser, part)
            assert "rent -> own" in shown(browser, part)
            assert "f2" not in shown(browser, part)
        assert "start" in shown(browser, "#waterfall")
        assert "The start scores 0.400" in shown(browser, "#sentence")
        values = shown(browser, "#values")
        assert "42 -> 50" in values
        assert "f2" not in values
