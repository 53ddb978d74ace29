"""What is published: wheel and sdist in an environment of their own, and the files beside them."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints; its error output where it fails."""
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cwd), "TCALC_CACHE": str(cwd / "cache")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def offline(folder: Path) -> str:
    """Why packages cannot be had; empty where they can."""
    probe = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", str(folder)]
    done = subprocess.run([*probe, "hatchling"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that is built from it."""
    if reason := offline(tmp_path_factory.mktemp("probe")):
        pytest.skip(f"no package index: {reason}")
    folder = tmp_path_factory.mktemp("dist")
    pytest.importorskip("build", reason="needs build, of the test extra")
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    return folder


@pytest.fixture(scope="module")
def installed(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel, and what it depends on, and nothing else."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=True)
    wheel = next(published.glob("*.whl"))
    subprocess.run([folder / "bin" / "pip", "install", "-q", wheel], check=True)
    return folder / "bin"


def tracked(*folders: str) -> set[str]:
    """Files of folders that are no leftovers of running things."""
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    return {name for name in found if not name.endswith((".pyc", ".so"))}


def names_of(archive: Path) -> Iterator[str]:
    if archive.suffix == ".whl":
        yield from zipfile.ZipFile(archive).namelist()
    else:
        with tarfile.open(archive) as held:
            yield from (name.partition("/")[2] for name in held.getnames())


def test_wheel_and_sdist_are_complete(published: Path) -> None:
    wheel = set(names_of(next(published.glob("*.whl"))))
    package = tracked("tcalc") | {n.removeprefix("web/") for n in tracked("web/tcalc_web")}
    assert {n for n in wheel if ".dist-info" not in n} == package
    sdist = set(names_of(next(published.glob("*.tar.gz"))))
    beside = {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md"}
    assert tracked("tcalc", "tests", "web") | beside <= sdist


def test_a_clean_environment_runs_the_wheel(installed: Path, tmp_path: Path) -> None:
    tcalc = installed / "tcalc"
    assert run(tcalc, "--version", cwd=tmp_path) == f"tcalc {PROJECT['version']}\n"
    formula = run(tcalc, "derive", "x'*A*x", "--wrt", "x", cwd=tmp_path)
    assert formula == "(A + A')*x\n"
    run(tcalc, "gallery", tmp_path / "formulas", cwd=tmp_path)
    assert "<math" in (tmp_path / "formulas" / "index.html").read_text()


# Data files that the package reads: C routines of both kinds, which a compiler takes.
PROGRAM = """
import shutil, numpy as np, tcalc as tc
from pathlib import Path
assert Path(tc.__file__).is_relative_to(Path({prefix!r})), tc.__file__
A, x = tc.var("A", ("n", "n")), tc.var("x", "n")
f = tc.linalg.logdet(A) + x @ tc.linalg.inv(A) @ x + tc.sum(tc.linalg.eigh(A)[0] ** 3)
assert "cholesky" in tc.to_code(tc.grad(f + tc.sum(tc.linalg.cholesky(A)), A), "c")
backend = "c" if shutil.which("cc") or shutil.which("gcc") else "numpy"
given = dict(A=2 * np.eye(3), x=np.ones(3))
value = tc.compile(f, backend=backend)(**given)
assert abs(value - (np.log(8) + 1.5 + 24)) < 1e-12, value
print(tc.__version__)
"""


def test_the_package_finds_its_data(installed: Path, tmp_path: Path) -> None:
    program = PROGRAM.format(prefix=str(installed.parent))
    told = run(installed / "python", "-c", program, cwd=tmp_path)
    assert told.strip() == PROJECT["version"]


def test_the_citation_names_the_version_and_the_papers() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {PROJECT['version']}\n" in text
    assert f"\nlicense: {PROJECT['license']}\n" in text
    references = text.partition("references:\n")[2]
    assert len(re.findall(r"^  - type: ", references, re.MULTILINE)) == 4
    for name, year in (("Laue", 2020), ("Seeger", 2018), ("Shaikhha", 2022), ("Urban", 2017)):
        entry = rf"family-names: {name}\b(?:(?!\n  - type).)*year: {year}"
        assert re.search(entry, references, re.DOTALL)


def test_the_citation_is_of_its_schema() -> None:
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    told = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= told.keys()
    for reference in told["references"]:
        assert {"type", "title", "authors"} <= reference.keys()
        people = reference["authors"]
        assert all({"family-names", "given-names"} == person.keys() for person in people)


def test_the_changelog_has_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    kinds = set(re.findall(r"^### (\w+)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    versions = re.findall(r"^## \[([^]]+)\]", text, re.MULTILINE)
    assert versions[0] == "Unreleased"
    assert all(f"\n[{version}]: " in text for version in versions)
