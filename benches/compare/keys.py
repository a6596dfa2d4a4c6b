"""Counts of keys that nobody knows beforehand."""

import random
from typing import Any

import numpy as np
from harness import quick
from numpy.typing import NDArray

TITLE = "Unknown keys"
QUESTION = "Which words do 100,000 people use, one each, and how many use each of them?"
ERROR = "rmse over all words that are used, 0 for those not published"
PEOPLE = 5_000 if quick() else 100_000


def data() -> NDArray[np.str_]:
    return np.char.add("word ", (np.random.default_rng(10).zipf(1.3, PEOPLE) % 10**6).astype(str))


def truth(words: NDArray[np.str_]) -> Any:
    return dict(zip(*(part.tolist() for part in np.unique(words, return_counts=True)), strict=True))


def mean_squared_error(answer: dict[str, float], truth: dict[str, int]) -> float:
    return float(np.mean([(answer.get(word, 0.0) - count) ** 2 for word, count in truth.items()]))


def sordino(words: NDArray[np.str_]) -> Any:
    import sordino as so

    records, bounds = {"word": words, "person": np.arange(len(words))}, so.Bounds(max_cells=1)
    unknown = so.Schema({"word": so.tables.Keys()}, user="person", bounds=bounds)
    levels = so.tables.select_keys(records, unknown, so.ApproxDP(epsilon=0.5, delta=1e-6), request_id="words")
    schema = so.Schema({"word": levels}, user="person", bounds=bounds)
    table = so.tabulate(records, schema, request_id="counts")
    release = so.plan(schema.counts(), so.PureDP(epsilon=0.5)).release(table)
    return dict(zip(levels.values, release.values.tolist(), strict=True))


def opendp(words: NDArray[np.str_]) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    count = dp.t.make_count_by(dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance(), TV=int)
    release = dp.binary_search_chain(
        lambda threshold: count >> dp.m.then_laplace_threshold(1.0, threshold), 1, (1.0, 1e-6), bounds=(1, 1000)
    )
    return release(words.tolist())


def plain_python(words: list[str]) -> Any:
    from collections import Counter
    from math import log

    noisy = {word: count + random.expovariate(1.0) - random.expovariate(1.0) for word, count in Counter(words).items()}
    return {word: count for word, count in noisy.items() if count > 1.0 + log(0.5 / 1e-6)}


def numpy(words: NDArray[np.str_]) -> Any:
    used, counts = np.unique(words, return_counts=True)
    noisy = counts + np.random.default_rng().laplace(scale=1.0, size=len(counts))
    kept = noisy > 1.0 + np.log(0.5 / 1e-6)
    return dict(zip(used[kept].tolist(), noisy[kept].tolist(), strict=True))
