"""What the package promises to install: every extra that a message or a page names exists."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import gigrad

ROOT = Path(__file__).resolve().parents[2]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
DISTRIBUTIONS = {"sklearn": "scikit-learn"}  # where a package is installed under another name


def asked_for() -> dict[str, set[str]]:
    """Every extra that the source asks for, and the files that do: `require(module, extra)` and texts."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text()
        names = {n for group in re.findall(r"gigrad\[([a-z0-9,_-]+)\]", text) for n in group.split(",")}
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "require":
                given = [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "extra")]
                names |= {str(a.value) for a in given if isinstance(a, ast.Constant)}
        for name in names:
            found.setdefault(name, set()).add(path.name)
    return found


def test_every_extra_that_the_source_names_exists() -> None:
    asked = asked_for()
    assert {"plot", "frames", "cli"} <= set(asked)  # the search finds what is known to be there
    assert {name: files for name, files in asked.items() if name not in EXTRAS} == {}


def installed_by(extra: str) -> set[str]:
    """The distributions that an extra installs, those of the extras it is made of included."""
    out: set[str] = set()
    for line in EXTRAS[extra]:
        if (made_of := re.match(r"gigrad\[([\w,]+)\]", line)) is not None:
            out |= {name for part in made_of[1].split(",") for name in installed_by(part)}
        else:
            out.add(re.split(r"[<>=\[]", line)[0])
    return out


def test_an_extra_installs_what_is_required_of_it() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        for module, extra in re.findall(r'require\("([\w.]+)", "(\w+)"\)', path.read_text()):
            package = module.split(".")[0]
            assert DISTRIBUTIONS.get(package, package) in installed_by(extra), (path.name, module, extra)


def test_every_extra_that_a_page_names_exists() -> None:
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for group in re.findall(r'(?:gigrad|"\.|\.)\[([a-z0-9,_-]+)\]"?', path.read_text()):
            assert set(group.split(",")) <= set(EXTRAS), (path.name, group)


def test_the_version_stands_in_one_place() -> None:
    """The package takes it from `__init__`; what cannot (a citation) must say the same."""
    assert "version" in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"]
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert cited[1] == re.sub(r"\.dev\d+$", "", gigrad.__version__)


def test_the_changelog_begins_with_this_version() -> None:
    """And says that it is not yet released, or when it was."""
    found = re.search(r"^## \[([\d.]+)\](?:, not yet released| - \d{4}-\d\d-\d\d)$", CHANGELOG, re.MULTILINE)
    assert found is not None
    assert found[0] == re.findall(r"^## .+$", CHANGELOG, re.MULTILINE)[0]
    assert found[1] == re.sub(r"\.dev\d+$", "", gigrad.__version__)


def test_no_extra_pins_a_version_for_users() -> None:
    """`test` and `docs` set up the development of gigrad itself."""
    pinned = {name: line for name, lines in EXTRAS.items() for line in lines if "==" in line}
    assert set(pinned) <= {"test", "docs"}


def test_addresses_are_whole() -> None:
    """A registry refuses a release whose project URLs are paths; while there is no home page, there are none."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"].get("urls", {})
    assert [url for url in urls.values() if not url.startswith("https://")] == []


def test_authors_of_the_citation_are_told_apart() -> None:
    """The schema of citation files refuses two equal authors, and the paper has two of one family name."""
    text = (ROOT / "CITATION.cff").read_text().split("references:")[1]
    authors = re.findall(r"- family-names: (\w+)\n +given-names: (\w+)\n", text)
    assert len(authors) == len(set(authors)) == text.count("family-names") == 5


def _floor(line: str) -> tuple[str, str]:
    """The name and the oldest version of a requirement "name>=version"."""
    found = re.fullmatch(r"([\w-]+)>=([\d.]+)", line)
    assert found is not None, line
    return found[1], found[2]


def test_the_oldest_versions_are_the_floors() -> None:
    """`make test-oldest` installs tests/wheel/oldest.txt: exactly what pyproject.toml says is enough."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    floors = dict(_floor(line) for line in project["dependencies"])
    extras = re.search(r"^extras=([\w,]+)", (ROOT / "tests" / "wheel" / "versions.sh").read_text(), re.MULTILINE)
    assert extras is not None
    for extra in [*extras[1].split(","), "torch"]:
        for line in EXTRAS[extra]:
            name, floor = _floor(line)
            assert floors.setdefault(name, floor) == floor, name
    lines = (ROOT / "tests" / "wheel" / "oldest.txt").read_text().splitlines()
    oldest = dict(line.split("==") for line in lines if "==" in line)

    def number(version: str) -> tuple[int, ...]:
        return tuple(int(part) for part in version.split("."))

    for name, floor in floors.items():
        assert number(oldest[name])[: len(number(floor))] == number(floor), name


def test_every_step_of_the_release_exists() -> None:
    made = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    pages = ["RELEASING.md", "SECURITY.md", "docs/promises.md", "docs/security.md"]
    for path in [*(ROOT / name for name in pages), *(ROOT / ".github" / "workflows").glob("*.yml")]:
        text = path.read_text()
        assert set(re.findall(r"make ([a-z][a-z-]*[a-z])(?=[`\s,;])", text)) <= made | {"test-"}, path.name
        for named in re.findall(r"`((?:tests|tools|benchmarks|docs|\.github)/[\w./-]+)`", text):
            assert (ROOT / named).exists() or named.endswith("corpus"), (path.name, named)


def test_the_note_on_patents_is_the_same_in_both_places() -> None:
    """Numbers, dates and titles; that only US patents were looked at; that it is no advice."""
    told = {"11,816,541": "2023-11-14", "12,131,241": "2024-10-29", "11,960,981": "2024-04-16"}
    titles = [
        "decomposition of differentiable and non-differentiable models",
        "model evaluation by using decomposition",
    ]
    for path in (ROOT / "NOTICE", ROOT / "docs" / "reasons.md"):
        text = " ".join(path.read_text().split())
        assert [word for pair in told.items() for word in pair if word not in text] == [], path.name
        assert [title for title in titles if title not in text] == [], path.name
        assert all(word in text.lower() for word in ("only us patents", "information, not", "rank space", "protected"))


def test_the_targets_of_make_fuzz_are_those_that_exist() -> None:
    """Also the number that the pages say, from which an hour is reckoned: the native core is one more."""
    said = re.search(r"^FUZZED +:= (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    targets = re.search(r"^TARGETS = .* in \((.+)\)\}$", (ROOT / "tests/fuzz/targets.py").read_text(), re.MULTILINE)
    assert said is not None
    assert targets is not None
    assert said[1].split() == targets[1].split(", ")
    assert len(said[1].split()) + 1 == 11
    assert "eleven targets" in (ROOT / "docs" / "security.md").read_text()


def test_lists_of_tests_for_wheels_name_files_that_exist() -> None:
    for path in (ROOT / "tests" / "wheel").glob("tests-*.txt"):
        named = [line.partition("#")[0].strip() for line in path.read_text().splitlines()]
        assert [name for name in named if name and not (ROOT / name.partition("::")[0]).exists()] == [], path.name


def test_actions_are_pinned_by_hash_with_their_version_beside() -> None:
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        used = re.findall(r"uses: (?!\./)(.+)", path.read_text())
        assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", one)] == [], path.name
