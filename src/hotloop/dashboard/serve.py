"""`hotloop.dashboard`'s way from a folder to a page in the browser: keys, socket, link, server."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hotloop.core.errors import MissingExtraError, RunError
from hotloop.core.own_folders import NoFolder, cache_base, own_folder
from hotloop.core.program import install_command
from hotloop.dashboard.guard import LOOPBACK, Keys

SESSION_SECONDS = 24 * 3600.0
"""How long a browser that was let in once is let in again after the server was started anew."""
MOST_HEADER_BYTES = 2**17
"""Every program on localhost adds its cookies to the browser's one jar; h11's own limit is 16 KiB."""


def require_extra() -> None:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtraError("the dashboard needs starlette and uvicorn", install_command("dashboard")) from None


def require_folder(folder: Path) -> Path:
    if not folder.is_dir():
        raise RunError(f"there is no folder `{folder}`", "give a folder of runs or of other logs")
    return Path(os.path.abspath(folder))


def serve(
    folder: str | Path = "runs",
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    control: bool = False,
    browser: bool = True,
    tell: Callable[[str], None] = lambda link: None,
) -> None:
    """Show a folder until Ctrl-C. `tell` is given the link, which holds the token, before anything else happens."""
    require_extra()
    import uvicorn

    from hotloop.dashboard.server import BACKLOG, Dashboard, listening
    from hotloop.dashboard.waiting import MOST_CONNECTIONS, Connection

    path = require_folder(Path(folder))
    opened = listening(host, port)
    bound = opened.getsockname()[1]
    dashboard = Dashboard(path, control=control, keys=keys_for(path, bound), hosts={*LOOPBACK, host})
    shown = f"[{host}]" if ":" in host else {"0.0.0.0": "localhost"}.get(host, host)
    link = f"http://{shown}:{bound}/?token={dashboard.keys.token}"
    tell(link)
    if browser and not os.environ.get("SSH_CONNECTION"):
        with suppress(webbrowser.Error, OSError):
            webbrowser.open(link)
    config = uvicorn.Config(
        dashboard.app,
        log_config=None,
        access_log=False,  # it would hold the token
        server_header=False,
        proxy_headers=False,
        http=Connection,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=2,
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        backlog=BACKLOG,
    )
    uvicorn.Server(config).run(sockets=[opened])


def keys_for(folder: Path, port: int) -> Keys:
    """A token of its own for every start. The cookie's secret stays for a day, so that a page that is open goes on
    when the server is started anew on its port."""
    name = hashlib.sha256(os.fsencode(f"{os.path.realpath(folder)}:{port}")).hexdigest()[:16]
    cookie = f"hotloop-{name[:8]}"
    try:
        file = own_folder(cache_base() / "hotloop" / "dashboard") / f"session-{name}.json"
    except NoFolder:
        return Keys(cookie)
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(file.read_text())
        if time.time() - float(kept["time"]) < SESSION_SECONDS and len(str(kept["session"])) >= 40:
            return Keys(cookie, session=str(kept["session"]))
    made = Keys(cookie)
    with suppress(OSError):
        fresh = file.with_name(f".{file.name}-{secrets.token_hex(4)}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            json.dump({"session": made.session, "time": time.time()}, stream)
        os.replace(fresh, file)
    return made


def save_chart(folder: str | Path, query: str, out: str | Path) -> int:
    """The chart that a page's link or command names, as SVG or CSV, without a server; the number of its runs."""
    from hotloop.dashboard.curves import as_csv_file, as_svg_file, chosen, request_from
    from hotloop.dashboard.library import Library
    from hotloop.runs.files import write_file

    library = Library(require_folder(Path(folder)))
    try:
        library.scan()
        request = request_from(query)
        runs = len(chosen(library, request.ids))
        if not runs:
            raise RunError(f"none of the chart's runs is in {folder}", "give the folder that the page was opened with")
        as_csv = Path(out).suffix == ".csv"
        text = "".join(as_csv_file(library, request)) if as_csv else as_svg_file(library, request)
        write_file(Path(out), text.encode("utf-8", "replace"))
        return runs
    finally:
        library.index.close()
