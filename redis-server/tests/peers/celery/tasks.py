"""The tasks that the worker runs: python -m celery -A tasks worker, with the server's port in the environment."""

import os

from celery import Celery

port = os.environ["REDIS_PORT"]
app = Celery("tasks", broker=f"redis://127.0.0.1:{port}/0", backend=f"redis://127.0.0.1:{port}/1")
app.conf.update(
    task_track_started=True,
    task_acks_late=True,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"priority_steps": [0, 5, 9]},
    result_expires=3600,
)


@app.task
def add(x, y):
    return x + y


@app.task
def total(numbers):
    return sum(numbers)


@app.task
def fail(text):
    raise ValueError(text)


@app.task(bind=True, max_retries=3)
def succeeds_third(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0.05)
    return self.request.retries


@app.task(bind=True)
def reports(self):
    self.update_state(state="HALFWAY", meta={"done": 1})
    return "done"
