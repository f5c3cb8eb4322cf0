"""Debian's Chromium, driven by Selenium: one browser without a window, whose log is looked at.

What a page writes to the log of its console, or what the content policy refuses, is a mistake of
the page: ``Browser.check`` fails for each line. Pictures of pages are kept where
``BITTERN_PICTURES`` says; without it none are taken.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steady import PATIENCE, wait_until

_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--window-size=1180,900", "--force-device-scale-factor=1"),
    "--hide-scrollbars",
)
#: Colours of a picture: pages are flat, and so files are small.
_COLOURS = 128


def why_no_browser() -> str | None:
    """Say what is missing for a browser, or None when nothing is."""
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"no {' and no '.join(missing)}: scripts/chromium.sh says how" if missing else None


class Browser:
    """A browser and the address of a service."""

    def __init__(self, driver: Any, address: str) -> None:
        self.driver = driver
        self.address = address

    def open(self, path: str) -> None:
        """Go to a page."""
        self.driver.get(f"{self.address}{path}")

    def all(self, css: str) -> list[Any]:
        """The elements that a selector finds now."""
        from selenium.webdriver.common.by import By

        return list(self.driver.find_elements(By.CSS_SELECTOR, css))

    def wait(self, script: str, *given: Any) -> Any:
        """What a script returns for the page, once that is something; the page is complete then.

        It is one step: pages may be drawn anew at any time.
        """
        found: list[Any] = []
        whole = f"if (document.readyState !== 'complete') return null; {script}"

        def happened() -> bool:
            found[:] = [self.driver.execute_script(whole, *given)]
            return bool(found[0])

        wait_until(happened)
        return found[0]

    def one(self, css: str) -> Any:
        """The element of a selector, when it is there."""
        return self.wait("return document.querySelector(arguments[0])", css)

    def text(self, css: str) -> str:
        """The text of all elements of a selector now."""
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText)"
        return " ".join(self.driver.execute_script(script, css))

    def shows(self, css: str, words: str) -> None:
        """Wait until an element has these words."""
        wait_until(lambda: words in self.text(css))

    def value(self, css: str) -> str:
        """What is in a field; empty if it is not there now."""
        script = "return document.querySelector(arguments[0])?.value ?? ''"
        return str(self.driver.execute_script(script, css))

    def fill(self, css: str, text: str) -> None:
        """Put a text into a field at once, as pasting does."""
        self.wait(
            "const field = document.querySelector(arguments[0]);"
            "if (!field) return false;"
            "field.value = arguments[1];"
            "for (const kind of ['input', 'change'])"
            "  field.dispatchEvent(new Event(kind, {bubbles: true}));"
            "return true;",
            css,
            text,
        )

    def press(self, *keys: str) -> None:
        """Press keys, one after the other, where the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def hold(self, held: str, key: str) -> None:
        """Press a key while another is held."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).key_down(held).send_keys(key).key_up(held).perform()

    def click(self, css: str) -> None:
        """Click an element, when it can be."""
        self.wait(
            "const found = document.querySelector(arguments[0]);"
            "if (!found || found.disabled) return false;"
            "found.click();"
            "return true;",
            css,
        )

    def run(self, script: str) -> Any:
        """Run a script in the page, and return what it returns."""
        return self.driver.execute_script(script)

    def check(self) -> None:
        """Nothing was written to the log since the last look, nothing refused by the policy."""
        log = self.driver.get_log("browser")
        assert not [each for each in log if "status of 4" not in each["message"]], log

    def picture(self, name: str) -> None:
        """Keep a picture of the page, small, if somebody wants pictures."""
        folder = os.environ.get("BITTERN_PICTURES")
        if not folder:
            return
        from PIL import Image

        height = self.run("return document.documentElement.scrollHeight")
        self.driver.set_window_size(1180, min(1100, max(600, height)))
        whole = Image.open(io.BytesIO(self.driver.get_screenshot_as_png())).convert("RGB")
        small = whole.quantize(_COLOURS, dither=Image.Dither.NONE)
        Path(folder).mkdir(parents=True, exist_ok=True)
        small.save(Path(folder) / f"{name}.png", optimize=True)
        self.driver.set_window_size(1180, 900)


@contextlib.contextmanager
def browsing(address: str, folder: Path) -> Iterator[Browser]:
    """Start a browser with a profile of its own, and end it."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*_FLAGS, f"--user-data-dir={folder}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_page_load_timeout(PATIENCE)
    driver.set_script_timeout(PATIENCE)
    try:
        yield Browser(driver, address)
    finally:
        driver.quit()
