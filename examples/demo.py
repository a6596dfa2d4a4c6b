"""Public data sets as if they were private: departures, visits to the doctor, a survey, flights of aircraft.

    python examples/demo.py --out out/

Plans, certificates, comparisons, a live counter, a ledger for each data set, pictures and tables. The pictures show
the truth too; that is allowed here only because the data is public (see `examples/data/README.md`).
"""

import argparse
import csv
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from demo_pictures import draw_distribution, draw_series, draw_two_ways, draw_unbounded, draw_votes
from demo_tables import release_aircraft

import sordino as so

DATA = Path(__file__).parent / "data"
TOTAL = so.ApproxDP(epsilon=3.0, delta=1e-6)
FLIGHTS = so.ApproxDP(epsilon=1.0, delta=1e-6)  # for each of two releases and a stream
VISITS = so.GaussianDP(mu=0.15)  # for each of four releases
VOTERS = so.GaussianDP(mu=0.25)
WEEK = 7 * 24
USUAL = (
    "identity",
    "output",
    "tree",
    "binary-tree",
    "smooth-tree",
)  # noise on the counts, on the answers, on a tree of sums


def read_departures() -> tuple[np.ndarray, np.ndarray]:
    """Return the hours of the year, and the departures in each."""
    with (DATA / "nyc_departures_2013_hourly.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    hours = np.array([row["hour"] for row in rows], dtype="datetime64[m]")
    return hours, np.array([int(row["departures"]) for row in rows])


def as_table(lines: list[list[str]]) -> str:
    """Return a Markdown table, its header first."""
    return "\n".join(f"| {' | '.join(line)} |" for line in [lines[0], ["---"] * len(lines[0]), *lines[1:]])


@dataclass
class Demo:
    """A ledger for each data set, one folder, one table.

    Attributes:
        out: Where pictures and tables go.
        ledgers: Count what everything about one data set costs together, by what is protected there.
        rows: Lines of the table.
        files: What was written.
    """

    out: Path
    ledgers: dict[str, so.Ledger] = field(default_factory=dict)
    rows: list[dict[str, str]] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)

    def picture(self, name: str) -> Path:
        """Return the path of a picture and remember it."""
        self.files.append(self.out / name)
        return self.files[-1]

    def ledger(self, plan: so.Plan) -> so.Ledger:
        """Return the ledger of what the plan protects."""
        return self.ledgers.setdefault(plan.unit.label, so.Ledger(TOTAL))

    def measure(self, name: str, plan: so.Plan, data: np.ndarray, truth: np.ndarray) -> so.Release:
        """Explain the plan, compare it with every other mechanism, release, and note the errors."""
        print(f"\n== {name} ==\n{plan.explain()}\n\n{plan.compare()}")
        release = plan.release(data, ledger=self.ledger(plan), request_id=name)
        self.note(name, release, truth)
        return release

    def note(
        self, name: str, release: so.Release | so.streams.StreamRelease, truth: np.ndarray, *, free: str = ""
    ) -> None:
        """Add a line to the table: what was promised, and what this run's error is."""
        plan = so.Plan(release.fit)
        peers = {str(row["mechanism"]): float(row["rmse"]) for row in plan.compare().rows}
        best_peer = min((error, peer) for peer, error in peers.items() if peer.startswith(USUAL))
        bound = plan.fit.bound
        promised = float(np.sqrt(np.mean(release.stderr**2)))
        self.rows.append(
            {
                "queries": name,
                "answers": str(release.values.size),
                "mechanism": f"free, {free}" if free else plan.mechanism,
                "promised rmse": f"{promised:.4g}",
                "this run's rmse": f"{np.sqrt(np.mean((release.values - truth) ** 2)):.4g}",
                "bound (Gaussian)": "-" if free or bound is None else f"{bound.value:.4g}",
                "over the bound": "-" if free or plan.optimality is None else f"{plan.optimality:.3f}",
                "best usual mechanism": "-" if free else f"{best_peer[0]:.4g} ({best_peer[1]})",
            }
        )

    def departures(self) -> None:
        """Hourly departures: the average of seven days and the running total."""
        hours, counts = read_departures()
        unit = so.AddRemove(1, label="one flight")

        plan = so.plan(so.MovingAverage(WEEK, len(counts)), FLIGHTS, unit=unit)
        plan.plot(self.picture("departures_week_plan.png"))
        plan.compare().plot(self.picture("departures_week_mechanisms.png"))
        truth = np.convolve(counts, np.ones(WEEK) / WEEK)[: len(counts)]
        week = self.measure("departures: 7-day average, every hour", plan, counts, truth)
        path = self.picture("departures_week.png")
        title = "Departures from New York's airports in 2013: average of the last seven days"
        draw_series(path, week, truth, hours, title=title, y_label="departures per hour", skip=WEEK - 1)

        # The average of a whole day's end, times 24, is the daily average: arithmetic on what is published.
        print(f"\nfree: daily departures over the last week of the year {24 * week.values[-1]:.1f}", end=" ")
        print(f"(truth {24 * truth[-1]:.1f}, standard error {24 * week.stderr[-1]:.2f})")

        plan = so.plan(so.RunningSum(len(counts)), FLIGHTS, unit=unit)
        plan.plot(self.picture("departures_total_plan.png"))
        plan.compare().plot(self.picture("departures_total_mechanisms.png"))
        truth = np.cumsum(counts).astype(float)
        total = self.measure("departures: running total, every hour", plan, counts, truth)
        path = self.picture("departures_total.png")
        title = "Departures since New Year 2013, ahead of an even 900 a day"
        pace = 900 / 24 * np.arange(1, len(counts) + 1)
        draw_series(path, total, truth, hours, title=title, y_label="departures ahead", pace=pace)

    def live(self) -> None:
        """Hourly departures as a live counter: each hour goes in alone, its answer is out before the next one."""
        hours, counts = read_departures()
        unit = so.AddRemove(1, label="one flight")
        name = "departures: live counter, every hour"
        plan = so.plan(so.Continual(so.RunningSum(len(counts))), FLIGHTS, unit=unit)  # hard horizon: the year
        comparison = plan.compare()
        print(f"\n== {name} ==\n{plan.explain()}\n\n{comparison}")
        with plan.open(self.ledger(plan), request_id=name) as stream:
            values = np.array([stream.update(int(count)) for count in counts])
            release = so.streams.StreamRelease(plan.fit, values, private=stream.private, accounted=stream.accounted)
        truth = np.cumsum(counts).astype(float)
        self.note(name, release, truth)

        moments = [0, 23, WEEK - 1, 31 * 24 - 1, len(counts) // 2 - 1, len(counts) - 1]
        rows = [
            [str(hours[t]).replace("T", " "), f"{truth[t]:,.0f}", f"{values[t]:,.1f}", f"{release.stderr[t]:.2f}"]
            for t in moments
        ]
        text = as_table([["hour", "truth", "published", "standard error"], *rows])
        self.picture("departures_live.md").write_text(text + "\n")
        print(f"\n{text}")

        path = self.picture("departures_live.png")
        title = "Departures since New Year 2013, a live counter, ahead of an even 900 a day"
        pace = 900 / 24 * np.arange(1, len(counts) + 1)
        draw_series(path, release, truth, hours, title=title, y_label="departures ahead", pace=pace)
        comparison.plot(self.picture("departures_live_mechanisms.png"))
        # The same counter for a service that does not know when it will end.
        endless = so.compare(so.Continual(so.RunningSum()), FLIGHTS, unit=unit)
        draw_unbounded(self.picture("departures_live_unbounded.png"), endless, 2**20, plan.fit.promise)

    def visits(self) -> None:
        """Visits to the doctor: histogram, distribution function, smoothed density."""
        visits = np.loadtxt(DATA / "randhie_visits.csv", skiprows=1)
        edges = [*range(51), 10**6]  # public: 0, 1, ..., 49, and "50 and more"
        schema = so.Schema({"visits": so.tables.Edges(edges)}, user=None, label="one person-year")
        table = so.tabulate({"visits": visits}, schema, request_id="visits")
        counts, cells = table.counts, len(table.counts)
        kernel = np.exp(-0.5 * (np.arange(-6, 7) / 2.0) ** 2)
        smooth = so.Convolution(kernel / kernel.sum(), length=cells, boundary="same")
        cumulative = so.RunningSum(cells)

        plan = so.plan(so.Histogram(cells), VISITS, unit=table.unit)
        histogram = self.measure("visits: histogram", plan, counts, counts)
        draw_distribution(self.picture("visits_histogram.png"), histogram, counts, "Visits to the doctor in a year")

        plan = so.plan(cumulative, VISITS, unit=table.unit)
        plan.compare().plot(self.picture("visits_cdf_mechanisms.png"))
        truth = np.cumsum(counts).astype(float)
        own = self.measure("visits: distribution function", plan, counts, truth)
        free = histogram.answer(cumulative)
        self.note("visits: distribution function", free, truth, free="from the histogram")
        path = self.picture("visits_cdf.png")
        draw_two_ways(path, own, free, truth, "Person-years with at most so many visits")

        plan = so.plan(smooth, VISITS, unit=table.unit)
        truth = np.convolve(counts, smooth.kernel)[smooth.center :][:cells]
        own = self.measure("visits: smoothed histogram", plan, counts, truth)
        free = histogram.answer(smooth)
        self.note("visits: smoothed histogram", free, truth, free="from the histogram")
        path = self.picture("visits_smooth.png")
        draw_two_ways(path, own, free, truth, "Visits to the doctor, smoothed")

        # How many person-years had i to j visits, for all i and j.
        ranges = so.AllRanges(cells)
        plan = so.plan(ranges, VISITS, unit=table.unit)
        plan.plot(self.picture("visits_ranges_plan.png"))
        plan.compare().plot(self.picture("visits_ranges_mechanisms.png"))
        totals = np.concatenate([[0], np.cumsum(counts)])
        first, last = ranges.ranges.T
        self.measure("visits: all ranges", plan, counts, totals[last + 1] - totals[first])

    def survey(self) -> None:
        """A survey: all tables of two of four questions, projected onto what is possible."""
        with (DATA / "anes96_survey.csv").open(newline="") as file:
            people = list(csv.DictReader(file))
        # Public: which codes there are. Not taken from the data.
        questions = {"party": range(7), "left_right": range(1, 8), "education": range(1, 8), "vote": range(2)}
        codes = np.array([[int(person[name]) - levels[0] for name, levels in questions.items()] for person in people])
        workload = so.Marginals([len(levels) for levels in questions.values()], k=2)
        unit, bound = (
            so.AddRemove(1, label="one voter"),
            so.optimal.PublicBound(1000),
        )  # fewer than a thousand were asked
        plan = so.plan(workload, VOTERS, unit=unit, constraint=bound)

        tables = [np.zeros(shape) for shape in workload.table_shapes]
        for chosen, table in zip(workload.sets, tables, strict=True):
            np.add.at(table, tuple(codes[:, list(chosen)].T), 1)
        truth = np.concatenate([table.reshape(-1) for table in tables])
        projected = self.measure("survey: tables of two questions, projected", plan, codes, truth)
        before = projected.answer(workload)
        self.note("survey: the same, not projected", before, truth, free="from the same release")
        path = self.picture("survey_votes.png")
        draw_votes(path, projected, workload.sets.index((0, 3)), tables[workload.sets.index((0, 3))])

    def aircraft(self) -> None:
        """Flights of aircraft, from a Parquet file: bounded by a schema, labelled, with intervals."""
        ledger = self.ledgers.setdefault("one aircraft, all its flights", so.Ledger(TOTAL))
        release_aircraft(self.picture("aircraft_months.png"), ledger)

    def finish(self) -> None:
        """Print the ledgers, and write and print the table."""
        for protected, ledger in self.ledgers.items():
            print(f"\n== ledger: {ledger.total} for everything about {protected} ==")
            for entry in ledger.history:
                print(f"{entry.request_id:<42} {entry.cost}")
            for rule, amounts in ledger.spent.items():
                spent = ", ".join(f"{name} {value:.4g}" for name, value in amounts.items())
                print(f"spent by the rule '{rule}': {spent}")
            print("left:", ", ".join(f"{name} {value:.4g}" for name, value in ledger.remaining().items()))

        names = list(self.rows[0])
        path = self.picture("table.csv")
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(self.rows)
        text = as_table([names, *(list(row.values()) for row in self.rows)])
        self.picture("table.md").write_text(text + "\n")
        print(f"\n{text}\n\nwritten to {self.out}: " + ", ".join(path.name for path in self.files))


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description="Differentially private answers about public data sets.")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for pictures and tables")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    demo = Demo(out)
    demo.departures()
    demo.live()
    demo.visits()
    demo.survey()
    demo.aircraft()
    demo.finish()
    print(f"{time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
