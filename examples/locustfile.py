"""Two kinds of users on one endpoint: locust -f locustfile.py --host http://127.0.0.1:8000 --sg-model MODEL."""

from locust import between, tag, task

from streamgauge.load.user import StreamUser


@tag("reader")
class Reader(StreamUser):
    """Reads each answer for a while before asking again."""

    weight = 3
    wait_time = between(1, 3)


class Batch(StreamUser):
    """Asks five times in a row, then rests."""

    weight = 1
    wait_time = between(5, 10)

    @tag("batch")
    @task(2)
    def burst(self) -> None:
        """Send five requests."""
        for _ in range(5):
            self.ask()
