"""Every default in one place, with its reason where a number has one.

Knows neither the environment nor the store; settings read these when nothing else is said.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

# Where.
URL: Final = "sqlite:///duly.db"
SCHEMA: Final = "duly"
QUEUE: Final = "default"

# One attempt. Finite, because a hung handler must end some day, and long, because a short one
# kills honest work; recovery does not wait for it, since the lease does that.
TIMEOUT: Final = timedelta(minutes=15)

# A dead worker's jobs return in about half a minute; five beats in a row may be missed.
LEASE: Final = timedelta(seconds=30)
HEARTBEAT: Final = timedelta(seconds=5)
# A lease that two late beats could end would be lost to one slow commit.
HEARTBEATS_PER_LEASE: Final = 3

# Below the 30 s that Kubernetes gives between SIGTERM and SIGKILL.
GRACE: Final = timedelta(seconds=25)

# Ten attempts with this backoff ride out an outage of 29 min on average, 57 min at most.
ATTEMPTS: Final = 10
BACKOFF_BASE: Final = timedelta(seconds=2)
BACKOFF_FACTOR: Final = 3
BACKOFF_CAP: Final = timedelta(minutes=15)
# The longest that a server's Retry-After is obeyed: a wrong header must not bury a job for a year.
MAX_RETRY_AFTER: Final = timedelta(hours=24)

# Lost attempts before a job counts as the killer of its workers.
POISON: Final = 3
# In a row: more deploys than this within one job's run are a crash loop of the deploys.
MAX_INTERRUPTS: Final = 10
# Snoozes of one job before a warning says so: someone waits for what never comes.
MANY_SNOOZES: Final = 10_000
# How long a job waits for a worker that knows its task: a rolling deploy is shorter.
UNKNOWN_AFTER: Final = timedelta(hours=1)

# Lower is more urgent; 32 bits leave room on both sides for every other tool's scale.
PRIORITY: Final = 100
IMPORTANCE: Final = 100
MIN_PRIORITY: Final = -(2**31)
MAX_PRIORITY: Final = 2**31 - 1
# One claim in so many goes to the oldest head, so that low priorities age but never starve.
OLDEST_EVERY: Final = 8

# The upper bound of waking where a notification normally comes first, and where none does.
POLL: Final = timedelta(seconds=1)
POLL_SQLITE: Final = timedelta(milliseconds=200)

MAX_PAYLOAD: Final = 256 * 1024
MAX_RESULT: Final = 256 * 1024
MAX_NESTING: Final = 64
# Larger payloads are read when their slot starts: 500 claimed at once would else be 128 MB.
INLINE_PAYLOAD: Final = 8 * 1024
PAYLOADS_IN_FLIGHT: Final = 16 * 1024 * 1024
# An error's text and traceback together, so that a dead letter stays readable and small.
MAX_ERROR: Final = 16 * 1024
MAX_REASON: Final = 2 * 1024

KEEP: Final = timedelta(hours=24)
KEEP_DEAD: Final = timedelta(days=30)
# How long before its purge a dead letter is announced, with count and owner.
PURGE_NOTICE: Final = timedelta(days=7)

CONCURRENCY: Final = 50
THREADS: Final = 10
PROCESSES: Final = 1
# `--processes 1..8`: what a queue without a wait_target is scaled for; how long the rates, which cover minutes, are
# given to show a change; how long nothing may have waited long before a process is stopped.
SCALE_WAIT: Final = timedelta(seconds=30)
SCALE_SETTLE: Final = timedelta(minutes=1)
SCALE_CALM: Final = timedelta(minutes=2)
SCALE_EVERY: Final = timedelta(seconds=5)
# Closed by default: nobody but this machine.
HOST: Final = "127.0.0.1"
PORT: Final = 8899
# Connections of one process, its threads and loops together.
POOL: Final = 4

# Drafts per round trip of enqueue_many: beyond this the round trip no longer dominates.
ENQUEUE_BATCH: Final = 1_000
# Bulk acts on more jobs than this need a rate: they would else stand in front of today's work.
BULK_ACT: Final = 100

# How long an idempotency key answers a repeated request, whatever becomes of its job.
KEEP_KEYS: Final = timedelta(days=30)
# A larger result is not kept in an idempotency record.
KEPT_RESULT: Final = 8 * 1024
# How long the newest completed version of a key is remembered.
KEEP_VERSIONS: Final = timedelta(days=30)
# A tick noticed later than this was missed; one noticed sooner is merely late.
MISSED_AFTER: Final = timedelta(seconds=60)

# Of moments that people write: beyond these a due time is a slip, and no store has to hold it.
EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)

# Alerts. The rules are looked at so often, and a rule that is over stays silent for so long before it says so.
ALERT_EVERY: Final = timedelta(seconds=15)
ALERT_CLEAR_AFTER: Final = timedelta(minutes=2)
# Dead letters that came within this time are one alert; it is over when none has come for as long.
ALERT_DEAD_WITHIN: Final = timedelta(minutes=10)
# A deploy makes jobs wait, and queues be without a worker, for less than that.
ALERT_LATE_FOR: Final = timedelta(minutes=1)
ALERT_NO_WORKER_FOR: Final = timedelta(minutes=1)
# A trend and no peak: it has to last, and to bring so many jobs within ten minutes.
ALERT_RISING_FOR: Final = timedelta(minutes=5)
ALERT_RISING_JOBS: Final = 100
# Of max_depth or max_age; or full within this time at the present slope.
ALERT_BOUND_SHARE: Final = 0.8
ALERT_FULL_WITHIN: Final = timedelta(hours=1)
# Time enough to find the disk's owner.
ALERT_DISK_WITHIN: Final = timedelta(hours=24)
# Above the default time to run: no attempt may take longer, so a worker that ended none for so long hangs.
ALERT_STALLED_AFTER: Final = timedelta(minutes=20)
# One ordering key's part of what waits in its queue, where it is at least so many jobs.
ALERT_HOT_SHARE: Final = 0.2
ALERT_HOT_JOBS: Final = 100
# Attempts whose worker vanished, within ten minutes; one is a deploy that went wrong, three are a pattern.
ALERT_LOST: Final = 3
ALERT_LOST_WITHIN: Final = timedelta(minutes=10)
