"""
Our load for the plain `locust` command, its web UI, master and workers.

    locust -f "$(streamgauge load --locustfile)" --host http://127.0.0.1:8000 --sg-model MODEL

The key comes from STREAMGAUGE_API_KEY.
"""

from streamgauge.load.user import StreamUser

__all__ = ["PlannedUser"]


class PlannedUser(StreamUser):
    """Does what the plan says: asks, reads, thinks and asks again, or leaves that to the schedule of an open loop."""
