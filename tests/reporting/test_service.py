"""The example service, as people run it: workers killed under load, a queue that delivers again, a page in a browser."""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sordino as so

httpx = pytest.importorskip("httpx", reason="pip install -r requirements/service.txt")
FOLDER = Path(__file__).resolve().parents[2] / "examples" / "service"
PAGES = ("home", "search", "article", "cart", "account")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="process groups")]


class Service:
    """The service on a free port of this machine."""

    def __init__(self, folder, where):
        keys = folder / "keys"
        keys.mkdir()
        (keys / "store.key").write_bytes(bytes(range(32)))
        (keys / "store.key").chmod(0o600)
        self.environment = {**os.environ, "SORDINO_STORE": where, "SORDINO_KEY_FILE": str(keys / "store.key")}
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = (folder / "log").open("ab")
        self.process = None

    def start(self, workers=2):
        command = [sys.executable, "-m", "uvicorn", "app:app", "--port", str(self.port), "--workers", str(workers)]
        self.process = subprocess.Popen(
            [*command, "--log-level", "warning"],
            cwd=FOLDER,
            env=self.environment,
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
        )
        for _ in range(200):
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{self.url}/healthz", timeout=5).status_code == 200:
                    return self
            time.sleep(0.1)
        pytest.fail("the service does not start: " + Path(self.log.name).read_text())

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            self.kill()
        self.log.close()


@pytest.fixture
def service(tmp_path, where):
    service = Service(tmp_path, where)
    yield service
    service.close()


def test_killed_and_restarted_under_load(service, where):
    """Every offset has one answer, batches that come again are counted once, tables are released once."""
    chance, answers, tables = random.Random(5), {}, {}
    service.start()
    began, kills, offset = time.monotonic(), 0, 0
    # Longer where a busy machine has not come to a restart, or to enough answers.
    while (elapsed := time.monotonic() - began) < 12 or (
        elapsed < 120 and not (kills >= 1 and len(answers) > 20 and tables)
    ):
        if chance.random() < 0.02:
            service.kill()
            service.start()
            kills += 1
            offset = max(0, offset - 3)  # delivered again
        batch = {"offset": offset, "pages": list(PAGES)}
        try:
            answer = httpx.post(f"{service.url}/events", json=batch, timeout=10)
        except httpx.HTTPError:
            continue
        assert answer.status_code in {200, 429, 503}, answer.text
        if answer.status_code == 200:
            values = answer.json()["values"]
            assert answers.setdefault(offset, values) == values
            offset += 1
        day = f"2026-11-{1 + chance.randrange(3):02d}"
        with contextlib.suppress(httpx.HTTPError):
            table = httpx.post(f"{service.url}/tables/{day}", json={"counts": [5, 4, 3, 2, 1]}, timeout=10)
            if table.status_code == 200:
                assert tables.setdefault(day, table.json()["values"]) == table.json()["values"]
    assert kills >= 1 and len(answers) > 20 and tables
    service.kill()
    store = so.Store(where, key=bytes(range(32)))
    ledger = so.Ledger.open(store, "2026")
    assert ledger.verify() == ledger.head
    assert {entry.request_id for entry in ledger.history} == {"views"} | {f"{day}/pages" for day in tables}
    with so.go_on(store, "views", take_over=True) as stream:
        assert stream.step >= len(answers)
        assert stream.step == max(answers) + 1
        assert max(abs(stream.value - stream.step)) < 6 * stream.stderr


def test_the_page_in_a_browser(service, tmp_path):
    """The page shows counters, intervals and the budget, in Debian's Chromium."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.fail("the page is tested in Chromium: apt-get install chromium")
    service.start(workers=1)
    for offset in range(30):
        pages = [page for place, page in enumerate(PAGES) for _ in range(100 * (place + 1))]
        httpx.post(f"{service.url}/events", json={"offset": offset, "pages": pages}, timeout=10).raise_for_status()
    command = [
        *(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=8000"),
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    page = subprocess.run(
        [*command, "--dump-dom", service.url], capture_output=True, text=True, timeout=120, check=True
    )
    shown = re.findall(r'class="number">([\d-]+) ± (\d+)<', page.stdout)
    assert len(shown) == len(PAGES)
    for place, (value, width) in enumerate(shown):
        assert abs(int(value) - 3000 * (place + 1)) <= 3 * int(width) + 10
    assert '<span id="step">30</span>' in page.stdout
    assert re.search(r"epsilon 1\.0\d* of 8 is spent", page.stdout)
    picture = Path(os.environ.get("SORDINO_PICTURES", tmp_path)) / "service.png"
    subprocess.run(
        [*command, f"--screenshot={picture}", "--window-size=900,700", service.url],
        capture_output=True,
        timeout=120,
        check=True,
    )
    assert picture.stat().st_size > 10_000


def test_refusals_have_a_status(service):
    service.start(workers=1)
    table = {"counts": [1, 2, 3, 4, 5]}
    for number in range(3):
        answer = httpx.post(f"{service.url}/tables/2026-01-0{number + 1}", json=table, timeout=10)
        assert answer.status_code == 200
    # A day's budget is half; its table costs a quarter, and has one answer.
    assert httpx.post(f"{service.url}/tables/2026-01-01", json=table, timeout=10).status_code == 200
    assert httpx.post(f"{service.url}/tables/tomorrow", json=table, timeout=10).status_code == 400
    assert httpx.post(f"{service.url}/events", json={"offset": -1, "pages": []}, timeout=10).status_code == 422
    metrics = httpx.get(f"{service.url}/metrics", timeout=10).text
    assert 'sordino_entries{ledger="2026"} 3' in metrics
    budget = json.loads(httpx.get(f"{service.url}/budget", timeout=10).text)
    assert budget["spent"]["mixed"]["epsilon"] == 0.75 and not budget["unanswered"]
