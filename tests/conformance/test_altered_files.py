"""Files from strangers: five hundred ways to alter each kind; what comes back is what was written, or a refusal."""

import json
import random

import cases
import pytest

import sordino as so

WAYS = 500
HOSTILE = [
    None, True, -1, 0, 2**63, 2**70, -(2**70), 10**400, 1e308, 5e-324, 0.5, "", "x", "1", "nan", [], {}, [[]], [None],
    {"kind": "x"}, [1] * 100,
]  # fmt: skip
# Not plans: what is damaged is an argument that is refused.
BYTES = {"sketch", "sums of points"}


def places(node, path=()):
    """Return the paths to everything in a JSON document."""
    yield path
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def altered(content, rng):
    """Return other bytes: of text a value of the document, or some characters; of others some bytes."""
    try:
        document = json.loads(content)
    except ValueError:
        document = None
    if document is not None and rng.random() < 0.7:
        *path, last = rng.choice([path for path in places(document) if path])
        node = document
        for key in path:
            node = node[key]
        match rng.randrange(4):
            case 0:
                del node[last]
            case 1 if isinstance(node, dict):
                node[f"{last}x"] = node.pop(last)
            case 2 if isinstance(node[last], int | float):
                node[last] = node[last] * rng.choice([0.5, 2, -1, 1 + 2**-40])
            case _:
                node[last] = rng.choice(HOSTILE)
        return json.dumps(document).encode()
    at, length = rng.randrange(len(content)), rng.choice([0, 1, 1, 4, 64])
    return content[:at] + rng.randbytes(rng.choice([0, 1, 1, 4])) + content[at + length :]


def said(thing):
    """Return what a file was about."""
    return (
        thing.to_bytes()
        if isinstance(thing, so.sketches.Sketch | so.smooth.PointSums)
        else json.dumps(record_of(thing), default=str)
    )


def record_of(thing):
    if isinstance(thing, so.Release):
        return [thing.fit.record(), thing.values.tolist(), thing.stderr.tolist(), thing.post_processing, thing.private]
    if isinstance(thing, so.adaptive.TreeRelease):
        return [thing.fit.record(), thing.cells.tolist(), thing.private]
    if isinstance(thing, so.adaptive.MarginalsRelease):
        return [thing.fit.record(), thing.measured.units.tolist(), thing.total, thing.shrunk, thing.private]
    if isinstance(thing, so.sketches.KeyRelease):
        return [thing.fit.record(), thing.measured.units.tolist(), thing.private]
    plan = thing.fit if isinstance(thing, so.smooth.SmoothRelease) else thing
    return plan.record() if hasattr(plan, "record") else plan.explain()


@pytest.mark.parametrize("name", cases.FILES)
def test_altered_files_are_refused(name, tmp_path):
    make, load = cases.FILES[name]
    path = cases.file_of(name, tmp_path)
    thing = make()
    thing.save(path)
    written, files = said(thing), {p: p.read_bytes() for p in sorted(tmp_path.iterdir())}
    rng = random.Random(0)
    refused = 0
    for _ in range(WAYS):
        victim = rng.choice(list(files))
        content = altered(files[victim], rng)
        if content == files[victim]:
            continue
        victim.write_bytes(content)
        try:
            found = load(path)
        except (so.errors.PlanFileError, so.errors.InputFileError):
            refused += 1
        except so.errors.InvalidParameterError:
            assert name in BYTES
            refused += 1
        else:
            assert said(found) == written
        victim.write_bytes(files[victim])
    assert refused > WAYS // 2
