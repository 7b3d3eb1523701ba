"""A real browser, controlled through a pipe: Debian's Chromium without a window."""

import fcntl
import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium")


class Browser:
    """One page of a browser.

    Commands and answers are JSON, each followed by a zero byte. Chromium reads and writes them as files 3 and 4.
    """

    def __init__(self, profile: Path) -> None:
        read_commands, self._write = os.pipe()
        self._read, write_answers = os.pipe()
        options = [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
            "--no-first-run", f"--user-data-dir={profile}",
        ]  # fmt: skip
        ours = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (read_commands, write_answers)]
        nothing = os.open(os.devnull, os.O_RDWR)
        for end in (read_commands, write_answers):
            os.close(end)
        places = [*((nothing, k) for k in (0, 1, 2)), (ours[0], 3), (ours[1], 4)]
        actions = [(os.POSIX_SPAWN_DUP2, source, place) for source, place in places]
        self._process = os.posix_spawn(str(CHROMIUM), [str(CHROMIUM), *options], os.environ, file_actions=actions)
        for end in (*ours, nothing):
            os.close(end)
        self._number, self._buffer, self._session = 0, b"", None
        self.problems: list[str] = []
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self._session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")
        self.requests: list[str] = []

    def __call__(self, method: str, **parameters):
        """Run a command of the DevTools protocol, and record the events that arrive before its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._record(answer)

    def _next(self):
        while b"\0" not in self._buffer:
            part = os.read(self._read, 1 << 16)
            assert part, "the browser has ended"
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)

    def _record(self, event) -> None:
        parameters = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif event.get("method") == "Runtime.exceptionThrown":
            self.problems.append(str(parameters["exceptionDetails"]))
        elif event.get("method") == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.problems.append(str(parameters["args"]))
        elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.problems.append(parameters["entry"]["text"])

    def open(self, address: str) -> None:
        self("Page.navigate", url=address)
        self.until("document.readyState === 'complete'")

    def js(self, expression: str):
        """Return the value of an expression in the page."""
        answer = self("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, expression: str, seconds: float = 20.0):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.js(expression):
                return value
            time.sleep(0.02)
        raise AssertionError(f"never true: {expression}; {self.problems}; {self.js('document.body.innerText')}")

    def key(self, key: str, code: int, text: str = "") -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            typed = {"text": text} if text and kind == "keyDown" else {}
            self("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **typed)

    def type(self, text: str) -> None:
        self("Input.insertText", text=text)

    def close(self) -> None:
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._read)
        os.close(self._write)
