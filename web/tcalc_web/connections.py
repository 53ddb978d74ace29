"""Connections that cannot be held for ever, and of which one address has not all."""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .gate import network
from .settings import Settings

Networks = tuple[IPv4Network | IPv6Network, ...]


def networks(text: str) -> Networks:
    """Addresses and networks that are separated by commas.

    Raises
    ------
    ValueError
        Where a part is neither; a star is not, for whoever trusts everybody's word on who asks
        lets everybody choose an address.
    """
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


def connection_class(proxies: Networks, settings: Settings) -> type[H11Protocol]:
    """The protocol of connections, of which proxies may have any number.

    Parameters
    ----------
    proxies : tuple of network
    settings : Settings
    """

    class Connection(H11Protocol):
        """HTTP in which there always is a time when the connection ends."""

        _end: asyncio.TimerHandle | None = None
        _arriving = True

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._set_end(settings.arrival)
            held = sum(getattr(one, "host", None) == self.host for one in self.connections)
            if held > settings.connections and not self._is_proxy():
                transport.abort()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            arrives = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
            if not (arrives and self._arriving):  # what trickles in wins no time
                self._set_end(settings.arrival if arrives else settings.exchange)
            self._arriving = arrives

        def connection_lost(self, exc: Exception | None) -> None:
            if self._end is not None:
                self._end.cancel()
            super().connection_lost(exc)

        def _set_end(self, seconds: float) -> None:
            if self._end is not None:
                self._end.cancel()
            self._end = self.loop.call_later(seconds, self.transport.abort)

        @property
        def host(self) -> str:
            return network(self.client[0]) if self.client else ""

        def _is_proxy(self) -> bool:
            return any(self.client and ip_address(self.client[0]) in known for known in proxies)

    return Connection
