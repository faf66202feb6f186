"""`hotloop dashboard [FOLDER]`."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.errors import SettingsError
from hotloop.core.terminal import print_line, say


def run(words: list[str]) -> int:
    parser = VerbParser(
        "dashboard",
        "Show the runs below a folder as a live page in the browser: a table, curves, where the time goes, the agent\n"
        "at play. Reads logs of other programs too (TensorBoard, Stable-Baselines3, CSV). The first line is the link.",
        "hotloop dashboard runs --no-browser",
    )
    parser.add_argument("folder", nargs="?", default="runs", help="where the runs are (default: runs)")
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="port to listen on (default: 8127, or a free one)"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine alone)")
    parser.add_argument("--no-browser", action="store_true", help="print the link and open no browser")
    parser.add_argument("--control", action="store_true", help="let the page stop, resume, extend and evaluate runs")
    parser.add_argument("--chart", metavar="QUERY", help="write one chart of the page and end: what its command says")
    parser.add_argument("--out", type=Path, metavar="FILE", help="with --chart: an .svg or .csv file")
    arguments = parser.parse_args(words)
    if (arguments.chart is None) != (arguments.out is None):
        raise SettingsError("`--chart` and `--out` go together", "the page shows the whole command under a chart")
    from hotloop.dashboard.serve import save_chart, serve

    if arguments.chart is not None:
        say(f"wrote {arguments.out}: {save_chart(arguments.folder, arguments.chart, arguments.out)} runs")
        return 0

    def tell(link: str) -> None:
        if arguments.json:
            print_json({"url": link, "folder": arguments.folder, "control": arguments.control})
        else:
            print_line(link, flush=True)
        if arguments.host not in ("127.0.0.1", "localhost", "::1"):
            say(
                "others on the network can reach this address; the token alone keeps them out, and nothing is encrypted"
            )
        port = urlsplit(link).port
        say(f"Ctrl-C ends it; on another machine `ssh -L {port}:localhost:{port} HOST` brings it here")

    if not 0 <= arguments.port <= 65535:
        raise SettingsError(f"`--port` is {arguments.port}, expected 1 to 65535")
    try:
        serve(
            arguments.folder,
            host=arguments.host,
            port=arguments.port,
            control=arguments.control,
            browser=not arguments.no_browser,
            tell=tell,
        )
    except KeyboardInterrupt:
        say("the dashboard has ended; what is being trained goes on")
    return 0
