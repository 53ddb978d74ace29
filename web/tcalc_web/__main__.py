"""``python -m tcalc_web``: the web form on this machine."""

from __future__ import annotations

import argparse
import logging
import os
import sys

import uvicorn
from fastapi import FastAPI

from .application import application
from .connections import connection_class, networks
from .settings import SETTINGS, Settings


def serve(host: str = "127.0.0.1", port: int = 8000, proxies: str = "") -> int:
    """Serve until interrupted.

    Parameters
    ----------
    host : str
    port : int
    proxies : str
        Addresses or networks of proxies whose word on who asks is taken, separated by commas.

    Returns
    -------
    int
        The exit status.
    """
    if hasattr(os, "geteuid") and os.geteuid() == 0 and "TCALC_WEB_ROOT" not in os.environ:
        message = "tcalc serve does not run as root; TCALC_WEB_ROOT=1 says that you know why"
        print(message, file=sys.stderr)
        return 2
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        config = configured(application(), host, port, proxies)
    except ValueError as problem:
        print(f"--proxies are addresses or networks, as a,b: {problem}", file=sys.stderr)
        return 2
    uvicorn.Server(config).run()
    return 0


def configured(
    app: FastAPI, host: str, port: int, proxies: str = "", settings: Settings = SETTINGS
) -> uvicorn.Config:
    """How an application is served.

    Raises
    ------
    ValueError
        Where the proxies are not told by their addresses.
    """
    return uvicorn.Config(
        app, host=host, port=port, log_config=None, access_log=False, server_header=False,
        proxy_headers=bool(proxies), forwarded_allow_ips=proxies or None, ws="none",
        http=connection_class(networks(proxies), settings), timeout_keep_alive=20,
        limit_concurrency=512, h11_max_incomplete_event_size=settings.body,
    )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="tcalc serve", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--proxies", default="", help="addresses of trusted proxies")
    options = parser.parse_args()
    return serve(options.host, options.port, options.proxies)


if __name__ == "__main__":
    sys.exit(main())
