"""The container image: Debian's essential packages and Braid's, installed by mmdebstrap, made into an image by buildah.

Run it with only the capability NET_ADMIN and the device /dev/net/tun. /etc/braid must hold braid.yaml and the identity
that it names.
"""

import os
import pathlib
import shutil
import tarfile
import tempfile

from lab.boot import MIRROR
from lab.netns import run

_HOOKS = "/usr/share/mmdebstrap/hooks/file-mirror-automount"  # lets --include name a file
_FOLDERS = ("run/braid", "var/lib/braid")  # folders of control socket and state; on other systems systemd makes them
_LEFT_OUT = ("doc", "man", "locale", "lintian", "bash-completion")


class Store:
    """A folder with its own images, separate from the host's. Use as a context manager."""

    def __init__(self):
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="braid-image-", dir="/var/tmp"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.buildah("rm", "--all", check=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    def words(self, *command):
        """The command line of a buildah command."""
        return ["buildah", "--root", self._folder / "store", "--runroot", self._folder / "run",
                "--storage-driver", "vfs", *command]

    def buildah(self, *command, **options):
        return run(*self.words(*command), timeout=600, **options).strip()

    def make(self, package, suite, epoch):
        """An image with that package; returns its name."""
        root = self._folder / "root.tar"
        exclude = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _LEFT_OUT]
        run("mmdebstrap", "--quiet", "--variant=essential", f"--hook-dir={_HOOKS}", *exclude,
            f"--include=systemd-standalone-sysusers,{package.resolve()}", suite, root, MIRROR,
            timeout=1200, env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)})
        with tarfile.open(root, "a") as archive:  # mmdebstrap empties /run
            for name in _FOLDERS:
                folder = tarfile.TarInfo(f"./{name}")
                folder.type, folder.mode, folder.mtime = tarfile.DIRTYPE, 0o755, epoch
                archive.addfile(folder)
        container = self.buildah("from", "scratch")
        self.buildah("add", "--quiet", container, root, "/")
        root.unlink()
        self.buildah("config", "--entrypoint", '["/usr/bin/braidd"]', "--cmd", "--config /etc/braid/braid.yaml",
                     "--volume", "/etc/braid", "--stop-signal", "SIGTERM", container)
        self.buildah("commit", "--quiet", "--timestamp", str(epoch), container, "localhost/braid")
        self.buildah("rm", container)
        return "localhost/braid"

    def save(self, image, file):
        """Writes an archive that podman, docker and skopeo load."""
        file.unlink(missing_ok=True)
        self.buildah("push", "--quiet", image, f"oci-archive:{file}:braid")
