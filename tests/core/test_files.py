"""What every room uses of files: here, what is done when a process ends."""

from __future__ import annotations

import subprocess
import sys

from steady import PATIENCE

#: Forks a child that ends as a program does, then tells whether its own folder is still there.
FORKS = """
import os, shutil, sys, tempfile
from bittern.files import at_exit
folder = tempfile.mkdtemp()
at_exit(shutil.rmtree, folder)
child = os.fork()
if not child:
    sys.exit()
os.waitpid(child, 0)
print(os.path.isdir(folder), folder)
"""


def test_a_forked_child_leaves_the_end_of_its_parent_to_it(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FORKS],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
        env={"TMPDIR": str(tmp_path)},
    )
    assert done.stdout.startswith("True ")
    assert not list(tmp_path.iterdir())
