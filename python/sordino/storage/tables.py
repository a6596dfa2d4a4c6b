"""The tables of a store; those of PostgreSQL are the same in its words."""

__all__ = ["SCHEMA_VERSION", "STATEMENTS"]

SCHEMA_VERSION = "1"

_TABLES = (
    """meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)""",
    # sums: what is spent, exact, by the rule of the terms; so a charge reads one row.
    """ledger (id TEXT PRIMARY KEY, parent TEXT REFERENCES ledger, terms TEXT NOT NULL, head INTEGER NOT NULL,
    head_hash BLOB NOT NULL, sums TEXT NOT NULL)""",
    # kind: charge, raise, share, lost.
    """entry (ledger TEXT NOT NULL REFERENCES ledger, seq INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
    hash BLOB NOT NULL, PRIMARY KEY (ledger, seq))""",
    """request (ledger TEXT NOT NULL, request TEXT NOT NULL, seq INTEGER NOT NULL, asked BLOB NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('charged', 'answered', 'expired', 'abandoned', 'stream')),
    attempt INTEGER NOT NULL, token BLOB NOT NULL, owner TEXT NOT NULL, lease_until INTEGER NOT NULL,
    key_id TEXT, seed BLOB, input_tag BLOB, answer_hash BLOB, answered INTEGER, expires INTEGER,
    PRIMARY KEY (ledger, request), FOREIGN KEY (ledger, seq) REFERENCES entry)""",
    """answer (ledger TEXT NOT NULL, request TEXT NOT NULL, part INTEGER NOT NULL, bytes BLOB NOT NULL,
    PRIMARY KEY (ledger, request, part))""",
    # plan: a record with its arrays, deflated. keep: milliseconds for which answers are kept.
    """stream (id TEXT PRIMARY KEY, ledger TEXT, request TEXT, asked BLOB NOT NULL, plan BLOB NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'finished', 'lost')), generation INTEGER NOT NULL,
    token BLOB NOT NULL, owner TEXT NOT NULL, lease_until INTEGER NOT NULL, step INTEGER NOT NULL,
    head_hash BLOB NOT NULL, last_id INTEGER, tail INTEGER NOT NULL, tail_hash BLOB NOT NULL,
    key_id TEXT NOT NULL, checkpoint_step INTEGER NOT NULL, keep INTEGER)""",
    # kind: 'state' of noise and filters after a step, 'key' of the noise from a step on, 'events' up to a step.
    """sealed (stream TEXT NOT NULL REFERENCES stream, kind TEXT NOT NULL, step INTEGER NOT NULL,
    part INTEGER NOT NULL, generation INTEGER NOT NULL, key_id TEXT NOT NULL, bytes BLOB NOT NULL,
    PRIMARY KEY (stream, kind, step, part))""",
    """step (stream TEXT NOT NULL REFERENCES stream, first INTEGER NOT NULL, steps INTEGER NOT NULL, step_id TEXT,
    units BLOB, answers BLOB, changes BLOB, generation INTEGER NOT NULL, key_id TEXT NOT NULL,
    at INTEGER NOT NULL, hash BLOB NOT NULL,
    PRIMARY KEY (stream, first), UNIQUE (stream, step_id))""",
)
_INDEXES = (
    "request_open ON request (ledger, lease_until) WHERE state = 'charged'",
    "request_old ON request (ledger, expires) WHERE state = 'answered'",
)
_KEPT = " BEGIN SELECT RAISE(ABORT, 'entries are only added'); END"

STATEMENTS = (
    *(f"CREATE TABLE IF NOT EXISTS {table} STRICT" for table in _TABLES),
    *(f"CREATE INDEX IF NOT EXISTS {index}" for index in _INDEXES),
    f"CREATE TRIGGER IF NOT EXISTS entry_updated BEFORE UPDATE ON entry{_KEPT}",
    f"CREATE TRIGGER IF NOT EXISTS entry_deleted BEFORE DELETE ON entry{_KEPT}",
)
