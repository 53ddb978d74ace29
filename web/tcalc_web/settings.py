"""All limits of the web form, in one place."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Settings:
    """Limits; sizes in bytes, times in seconds.

    Attributes
    ----------
    characters, variables, order, body : int
        Of one query: its expression, how many variables, the order of a derivative, its JSON.
    output, reply : int
        The longest single output, and the longest answer.
    request : int
        The longest message to the process that answers: of a body, each byte of which JSON may
        write as three.
    cpu, wall : float
        Time of one query, of the processor and of the clock; then its process group is killed.
    warned : int
        Time of the processor after which a query is refused while it still can be told why.
    memory : int
        Address space of a query beyond what the warm process has mapped.
    running, patience, waiting : int, float, int
        Queries at full speed at once; after so many seconds a query goes on in the background, so
        that it stands in nobody's way; queries that may wait, beyond which the answer is 503.
    background : int
        Queries in the background at once.
    rate, burst : float, int
        Queries a second from one address in the long run, and at once.
    seconds_a_minute, seconds_at_once : float
        Processor time that one address may take.
    addresses : int
        Addresses that are remembered.
    connections : int
        Connections that one address may hold.
    arrival, exchange : float
        Time in which a request must have come, and in which its answer must have been taken.
    """

    characters: int = 4096
    variables: int = 32
    order: int = 4
    body: int = 16 * 1024
    output: int = 256 * 1024
    reply: int = 2 * MIB
    request: int = 64 * 1024
    cpu: int = 2
    warned: int = 1
    wall: float = 3.0
    memory: int = 256 * MIB
    running: int = 2
    patience: float = 0.25
    background: int = 2
    waiting: int = 64
    rate: float = 0.5
    burst: int = 10
    seconds_a_minute: float = 6.0
    seconds_at_once: float = 6.0
    addresses: int = 10_000
    connections: int = 32
    arrival: float = 10.0
    exchange: float = 60.0


SETTINGS = Settings()
