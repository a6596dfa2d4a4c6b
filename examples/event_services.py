"""Three counts of events, published while they come: flights as a graph of airports, the letters of a book, a survey.

Routes: who flies where is a graph in which one flight is protected, and a day is a step. Letters: frequent words are
found by noisy counts alone. Survey: every passenger adds noise to its own waiting time, and nobody is trusted.
"""

import csv
from itertools import groupby
from pathlib import Path

import numpy as np

import sordino as so

DATA = Path(__file__).parent / "data"
HERE = ["EWR", "JFK", "LGA"]
FLORIDA = ["FLL", "JAX", "MCO", "MIA", "PBI", "RSW", "SRQ", "TPA"]  # all of these are public
OTHERS = ["ATL", "BOS", "CLT", "DCA", "DEN", "LAX", "ORD", "SFO"]
DAYS = 365
PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)


def routes() -> None:
    """Publish a private graph every day: a cut through the year, and what is read from the last graph."""
    workload = so.events.WeightedGraph([*HERE, *FLORIDA, *OTHERS], DAYS, weight_bits=0)
    plan = so.plan(so.Continual(workload), PRIVACY, unit=so.AddRemove(1, label="one flight"))
    print(plan.explain())
    with (DATA / "nyc_routes_2013_daily.csv").open(newline="") as file:
        rows = [(int(r["day"]), r["origin"], r["dest"], int(r["flights"])) for r in csv.DictReader(file)]
    days = {day: list(found) for day, found in groupby(rows, key=lambda row: row[0])}

    ledger, truth = so.Ledger(PRIVACY), 0
    with plan.open(ledger, request_id="routes/2013") as stream:
        for day in range(1, DAYS + 1):  # every day is a step, also one without flights
            flown = days.get(day, [])
            counts = [row[3] for row in flown]
            # Airports that are not in the graph are null items: that takes no look at the data.
            origins, targets = (np.repeat([row[i] for row in flown], counts) for i in (1, 2))
            stream.update(origins, targets, together=True)
            truth += sum(row[3] for row in flown if row[2] in FLORIDA)
            if day in {90, 180, 270, DAYS}:
                cut = stream.cut(HERE, FLORIDA)
                print(f"to Florida by day {day}: {cut.value:.0f} ± {cut.stderr:.0f}, true {truth}")
        graph = stream.graph()
    least, around = graph.minimum_degree()
    lightest = graph.minimum_cut()
    print(f"least busy airport: {least:.0f} flights, 95 %: {around.lower:.0f} to {around.upper:.0f}")
    print(f"lightest cut: {'+'.join(lightest.side)}, {lightest.cut.value:.0f} flights, exact: {lightest.exact}")
    print(ledger)


def words() -> None:
    """Find the frequent words of a book without a list of the words in it."""
    text = (DATA / "alice.txt").read_text(encoding="ascii")
    alphabet = "abcdefghijklmnopqrstuvwxyz "
    workload = so.events.SubstringCounts(alphabet, 3, length=2**18)  # a public bound on the letters
    # Reads of a tree are cheap, and there are many.
    plan = so.plan(so.Continual(workload, reads="lazy"), PRIVACY, unit=so.ReplaceOne(1), mechanism="binary-tree")
    with plan.open() as stream:
        for first in range(0, len(text), 10_000):  # as it is typed
            stream.update(text[first : first + 10_000])
        width = stream.half_width(0.95)
        found = stream.heavy_hitters(width)  # so all of them do occur, with probability 0.95
    print(f"\n{plan.fit.coordinates} words of up to 3 letters, ± {width:.0f} for all of them together")
    longest = [heavy for heavy in found if len(heavy.word) >= 2][:8]
    print("frequent:", ", ".join(f"{heavy.word!r} {heavy.count:.0f}" for heavy in longest))
    print(f"'the': published {next((h.count for h in found if h.word == 'the'), 0):.0f}, true {text.count('the')}")


def survey() -> None:
    """Ask for waiting times in the local model: each client encodes, the server only adds."""
    waited = np.random.default_rng(3).gamma(4.0, 6.0, 50_000)  # minutes; each on a phone of its own
    plan = so.plan(so.local.LocalSurvey(len(waited), (0.0, 90.0), intervals=90), PRIVACY)
    server = plan.server()
    server.add_many(plan.encode_clients(waited))
    estimate = server.estimate()
    print(f"\n{estimate.clients} reports of {plan.fit.message_bytes} bytes")
    print(f"median wait: {estimate.median:.1f} minutes, true {np.median(waited):.1f}")


def main() -> None:
    """Run all three."""
    routes()
    words()
    survey()


if __name__ == "__main__":
    main()
