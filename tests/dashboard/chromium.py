"""A real browser for tests and pictures: Chromium, driven through a pipe by its DevTools protocol.

Needs nothing but the browser itself (Debian's package `chromium`).
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--headless=new", "--remote-debugging-pipe", "--no-first-run", "--no-sandbox", "--disable-gpu"]
FLAGS += ["--hide-scrollbars", "--disable-dev-shm-usage", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--force-color-profile=srgb"]


class Page:
    """One tab. `errors` are the exceptions and the refusals of the page's policy that it told of."""

    def __init__(self, process: subprocess.Popen[bytes], out: int, into: int) -> None:
        self._process, self._out, self._into = process, out, into
        self._count, self._rest = 0, b""
        self.errors: list[str] = []
        made = self._ask("Target.createTarget", {"url": "about:blank"}, session="")
        attached = self._ask("Target.attachToTarget", {"targetId": made["targetId"], "flatten": True}, session="")
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._ask(method, parameters, self._session)

    def _ask(self, method: str, parameters: dict[str, Any], session: str) -> dict[str, Any]:
        self._count += 1
        asked = {"id": self._count, "method": method, "params": parameters} | (
            {"sessionId": session} if session else {}
        )
        os.write(self._out, json.dumps(asked).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self._count:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return dict(message["result"])
            self._note(message)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._into, 2**20)
            if not part:
                raise RuntimeError("the browser has ended")
            self._rest += part
        first, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(first))

    def _note(self, message: dict[str, Any]) -> None:
        told = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.errors.append(str(details.get("exception", {}).get("description") or details["text"]))
        if message.get("method") == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.errors.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")

    def open(self, address: str) -> None:
        self.ask("Page.navigate", url=address)

    def run(self, script: str) -> Any:
        """The value of an expression, a promise's included."""
        done = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            raise RuntimeError(str(done["exceptionDetails"].get("exception", {}).get("description")))
        return done["result"].get("value")

    def wait(self, script: str, seconds: float = 30.0) -> Any:
        """Until an expression is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(RuntimeError):
                if found := self.run(f"Boolean({script})"):
                    return found
            time.sleep(0.1)
        raise AssertionError(
            f"not within {seconds:g} s: {script}\n{self.run('document.body.innerText')[:1500]}\n{self.errors}"
        )

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.ask(
                "Input.dispatchKeyEvent", type=kind, key=key, text=key if len(key) == 1 and kind == "keyDown" else ""
            )

    def size(self, width: int, height: int, dark: bool = False) -> None:
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, file: Path, whole: bool = False) -> None:
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))


@contextlib.contextmanager
def chromium() -> Iterator[Page]:
    assert BROWSER is not None
    (to_read, out), (into, to_write) = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:

        def descriptors() -> None:
            # by way of high numbers: one of the pipes may be number 3 or 4 itself
            high = [fcntl.fcntl(number, fcntl.F_DUPFD, 50) for number in (to_read, to_write)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        process = subprocess.Popen(
            [BROWSER, *FLAGS, f"--user-data-dir={profile}"],
            preexec_fn=descriptors,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        try:
            yield Page(process, out, into)
        finally:
            process.kill()
            process.wait()
            os.close(out)
            os.close(into)
