"""The workflows name what exists, are pinned, and publish nothing that was not built, tried and looked into."""

import re

import pytest
import yaml
from shipped import ROOT, WORKFLOWS, jobs, locked, script, text, toml

PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_they_call_is_there(path):
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
    workflow = path.read_text(encoding="utf-8")
    called = " ".join(re.findall(r"\bmake ((?:[a-z-]+ ?)+)$", workflow, re.MULTILINE)).split()
    assert called
    assert set(called) <= targets
    for name in re.findall(r"\b(?:scripts|requirements)/[\w./]+\.(?:sh|py|txt)\b", workflow):
        assert (ROOT / name).is_file(), name


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path):
    used = re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))
    assert [one for one in used if not one.startswith("./") and not PINNED.fullmatch(one)] == []


def test_tests_are_the_two_commands_of_ci():
    ours = re.findall(r"^make .*$", text(".ci/run"), re.MULTILINE)
    assert ours == ["make test", "make test-slow"]
    assert [step["run"] for step in jobs("tests")["all"]["steps"] if step.get("run") in ours] == ours


def test_only_publishing_may_speak_for_us_and_it_waits_for_all():
    found = jobs("wheels")
    publish = found.pop("publish")
    assert sorted(publish["needs"]) == sorted(found)
    assert publish["environment"] == "pypi"
    assert publish["permissions"]["id-token"] == "write"
    assert not any("permissions" in job for job in (found | jobs("tests")).values())
    for path in WORKFLOWS:
        assert yaml.safe_load(path.read_text(encoding="utf-8"))["permissions"] == {"contents": "read"}


def test_every_target_is_built_tried_licensed_and_looked_into():
    matrices = {name: job["strategy"]["matrix"] for name, job in jobs("wheels").items() if "strategy" in job}
    built = matrices["linux"]["target"] + [one["target"] for one in matrices["desktop"]["include"]]
    tried = [one["target"] for name in ("installed", "installed-musl") for one in matrices[name]["system"]]
    denied = toml("deny.toml")["graph"]["targets"]
    assert sorted(built) == sorted(tried) == sorted(script("third_party").TARGETS) == sorted(denied)


def test_versions_of_tools_are_the_locked_ones_and_the_promised_ones():
    steps = jobs("wheels")["linux"]["steps"]
    (maturin,) = (step for step in steps if step.get("uses", "").startswith("PyO3/maturin-action@"))
    assert maturin["with"]["maturin-version"] == f"v{locked('dev')['maturin']}"
    oldest = jobs("tests")["ends"]["strategy"]["matrix"]["include"][0]
    assert oldest["rust"] == toml("Cargo.toml")["workspace"]["package"]["rust-version"] + ".0"
    assert f">={oldest['python']}" == toml("pyproject.toml")["project"]["requires-python"]


def test_issue_forms_ask_for_something():
    forms = [p for p in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if p.name != "config.yml"]
    assert forms
    for path in forms:
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert {"name", "description", "body"} <= form.keys(), path.name
        fields = [part for part in form["body"] if part["type"] != "markdown"]
        assert any(part.get("validations", {}).get("required") for part in fields), path.name
        assert len({part["id"] for part in fields}) == len(fields), path.name
