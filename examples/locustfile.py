"""Two kinds of users on one endpoint: locust -f locustfile.py --host http://127.0.0.1:8000 --sg-model MODEL."""

from locust import between, tag, task

from streamgauge.load import user


class Reader(user.StreamUser):
    """Reads each answer for a while before asking again."""

    weight = 3
    wait_time = between(1, 3)


class Batch(user.StreamUser):
    """Asks without a pause, and two times out of three five questions in a row."""

    @tag("batch")
    @task(2)
    def burst(self) -> None:
        """Send five requests."""
        for _ in range(5):
            self.ask()
