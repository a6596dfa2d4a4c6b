"""The files that ship sordino, read for the tests beside this file."""

import importlib.util
import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def toml(name):
    return tomllib.loads(text(name))


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def jobs(workflow):
    return yaml.safe_load(text(f".github/workflows/{workflow}.yml"))["jobs"]


def locked(name):
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text(f"requirements/{name}.txt"), re.MULTILINE))
