"""A service with live counters and daily tables, several workers over one store: `uvicorn app:app --workers 4`.

Page views come from a queue that delivers at least once: the offset of a batch is the name of its step, so a batch that
comes again is counted once. A table of a day is a request of the day's budget and the year's. Everything that is
published is committed before it is returned; kill any worker at any time.
"""

import os
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, HTTPException
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse
from pydantic import BaseModel, Field

import sordino as so

PAGES = ("home", "search", "article", "cart", "account")  # public
VIEWER = so.AddRemove(1, label="one page view")
YEAR, DAY = so.ApproxDP(epsilon=8.0, delta=1e-6), so.PureDP(epsilon=0.5)
LIVE = so.plan(so.Continual(so.RunningSum(2**17), dim=len(PAGES)), so.PureDP(epsilon=1.0), unit=VIEWER)
TABLE = so.plan(so.Histogram(len(PAGES)), so.PureDP(epsilon=0.25), unit=VIEWER)


class Batch(BaseModel):
    """Page views, with their place in the queue."""

    offset: int = Field(ge=0)
    pages: list[str]


class Table(BaseModel):
    """Counts of a day, for each page, from wherever the raw data are."""

    counts: list[int]


class Service:
    """What a worker has open: the store, the account, and the live counters while it holds them."""

    def __init__(self) -> None:
        key = os.environ.get("SORDINO_KEY_FILE")
        self.store = so.Store(os.environ["SORDINO_STORE"], key=None if key is None else so.KeyFile(key))
        self.year = so.Ledger(YEAR, store=self.store, id="2026", unit=VIEWER, reserve_epsilon=4.0)
        self.days = self.year.every("1 day", DAY)
        self.live: so.Stream | None = None

    def counters(self) -> so.Stream:
        """Hold the counters; another worker that held them finds out at its next step, and publishes nothing."""
        if self.live is None or self.live.closed:
            self.live = LIVE.open(self.year, store=self.store, stream_id="views", take_over=True, request_id="views")
        return self.live

    def count(self, batch: Batch) -> list[float]:
        """Publish a batch under its offset."""
        step = [0] * len(PAGES)
        for page in batch.pages:
            if page in PAGES:
                step[PAGES.index(page)] += 1
        try:
            return self.counters().update(step, step_id=batch.offset).tolist()
        except so.errors.StreamTakenError:  # by another worker, since the last batch
            return self.counters().update(step, step_id=batch.offset).tolist()

    def shown(self) -> dict:
        """Return the last published step, with intervals: all of it public."""
        stream = self.counters()
        interval = stream.interval(0.95)
        none = [0.0] * len(PAGES)
        return {
            "step": stream.step,
            "pages": PAGES,
            "values": none if stream.value is None else stream.value.tolist(),
            "lower": none if interval is None else interval.lower.tolist(),
            "upper": none if interval is None else interval.upper.tolist(),
        }

    def table(self, day: str, counts: list[int]) -> dict:
        """Release a day's table: once, whoever asks how often."""
        release = TABLE.release(counts, ledger=self.days.on(day), request_id=f"{day}/pages")
        interval = release.interval(0.95)
        return {
            "pages": PAGES,
            "values": release.values.tolist(),
            "lower": interval.lower.tolist(),
            "upper": interval.upper.tolist(),
            "guarantee": TABLE.guarantee(),
        }

    def budget(self) -> dict:
        """Return what is spent and left."""
        return {
            "total": str(self.year.total),
            "spent": self.year.spent,
            "left": self.year.remaining(),
            "unanswered": [found.request_id for found in self.year.unanswered()],
            "head": self.year.head,
        }


@asynccontextmanager
async def lifespan(app: FastAPI):
    """Open the store in each worker, after the fork; leave the counters to others at the end."""
    app.state.service = await run_in_threadpool(Service)
    yield
    if app.state.service.live is not None:
        app.state.service.live.close()


app = FastAPI(title="sordino", lifespan=lifespan)


@app.exception_handler(so.SordinoError)
async def refused(_request, error: so.SordinoError) -> JSONResponse:
    """Say what the error says: its status, and when to come again. Messages hold nothing private."""
    status, retry = getattr(error, "status", 400), getattr(error, "retry", False)
    if isinstance(error, so.errors.BudgetExceededError):
        status = 403
    headers = {"Retry-After": str(max(1, round(float(retry))))} if retry else {}
    return JSONResponse({"error": type(error).__name__, "detail": str(error)}, status, headers)


@app.post("/events")
async def events(batch: Batch) -> dict:
    """Count a batch of page views."""
    values = await run_in_threadpool(app.state.service.count, batch)
    return {"offset": batch.offset, "values": values}


@app.post("/tables/{day}")
async def tables(day: str, table: Table) -> dict:
    """Release the table of a day."""
    if len(table.counts) != len(PAGES):
        raise HTTPException(422, "one count for each page")
    return await run_in_threadpool(app.state.service.table, day, table.counts)


@app.get("/counters")
async def counters() -> dict:
    """Return the live counters."""
    return await run_in_threadpool(app.state.service.shown)


@app.get("/budget")
async def budget() -> dict:
    """Return the account."""
    return await run_in_threadpool(app.state.service.budget)


@app.get("/healthz")
async def healthz() -> dict:
    """Say whether the account can be read."""
    return {"head": (await run_in_threadpool(app.state.service.budget))["head"]}


@app.get("/metrics")
async def metrics() -> PlainTextResponse:
    """Return metrics for Prometheus."""
    return PlainTextResponse(await run_in_threadpool(so.metrics, app.state.service.store))


@app.get("/")
async def page() -> FileResponse:
    """Return the page."""
    return FileResponse(Path(__file__).with_name("page.html"))
