"""Who may ask how often: a bucket of queries and one of processor time for every address."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from .settings import Settings


@dataclass
class _Bucket:
    queries: float
    seconds: float
    when: float


class Gate:
    """Token buckets by address; the least recently seen addresses are forgotten.

    Parameters
    ----------
    settings : Settings
    clock : callable
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings, self.clock = settings, clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def wait(self, address: str) -> float:
        """Seconds until this address may ask; 0 where it may now, which is counted."""
        bucket = self._bucket(address)
        s = self.settings
        if bucket.seconds <= 0:
            return -bucket.seconds / (s.seconds_a_minute / 60) + 1
        if bucket.queries < 1:
            return (1 - bucket.queries) / s.rate
        bucket.queries -= 1
        return 0.0

    def took(self, address: str, seconds: float) -> None:
        """A query of this address took so much processor time."""
        self._bucket(address).seconds -= seconds

    def _bucket(self, address: str) -> _Bucket:
        key, now, s = network(address), self.clock(), self.settings
        bucket = self._buckets.pop(key, None) or _Bucket(s.burst, s.seconds_at_once, now)
        passed = now - bucket.when
        bucket.queries = min(s.burst, bucket.queries + s.rate * passed)
        gained = s.seconds_a_minute / 60 * passed
        bucket.seconds = min(s.seconds_at_once, bucket.seconds + gained)
        bucket.when = now
        self._buckets[key] = bucket
        while len(self._buckets) > s.addresses:
            self._buckets.popitem(last=False)
        return bucket


def network(address: str) -> str:
    """What counts as one address: of version 6 the 64 bits that one customer has."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if parsed.version == 6:
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
