"""A PostgreSQL server of one's own: on loopback, in a temporary folder, gone at the end."""

import importlib.util
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy

_DEBIAN = Path("/usr/lib/postgresql")
_USER = "riskpilot"
_CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
)


class NoServerError(RuntimeError):
    """PostgreSQL's programs are not on this machine."""


def binaries() -> Path:
    """The folder of initdb and pg_ctl: on the PATH, as Debian installs it, or from pgserver."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    versions = sorted(_DEBIAN.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if versions:
        return versions[-1].parent
    package = importlib.util.find_spec("pgserver")
    if package is not None and package.origin is not None:
        return Path(package.origin).parent / "pginstall" / "bin"
    raise NoServerError(
        "PostgreSQL's initdb is neither on the PATH nor in Debian's place. Install the package "
        "postgresql of the system, or pgserver with pip."
    )


@dataclass(frozen=True)
class Server:
    """A server that can be stopped, started and made to crash.

    ``address``: where it is, with a password in it.
    """

    address: str
    _run: Callable[..., None]
    _options: str

    def stop(self, *, crash: bool = False) -> None:
        """End the server: in order, with every connection closed, or as a crash would."""
        self._run("pg_ctl", "-m", "immediate" if crash else "fast", "stop")

    def start(self) -> None:
        """Start the server again and wait until it answers."""
        self._run("pg_ctl", "-w", "-o", self._options, "start")

    def cut_connections(self) -> int:
        """Cut every connection to the server but the one that does it; return how many."""
        engine = sqlalchemy.create_engine(self.address)
        try:
            with engine.connect() as connection:
                return len(connection.exec_driver_sql(_CUT).all())
        finally:
            engine.dispose()


@contextmanager
def server(*, durable: bool = False) -> Iterator[str]:
    """Start a server and give its address, with a password in it; stop it at the end.

    ``durable``: write to the disk at every commit, as a real one does.
    """
    with controlled_server(durable=durable) as one:
        yield one.address


@contextmanager
def controlled_server(*, durable: bool = False) -> Iterator[Server]:
    """Start a server that can be stopped and started; stop it at the end."""
    programs = binaries()
    # The server refuses to run as root; any other user will do.
    user = "nobody" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="riskpilot-pg-"))
    password = "pw-" + secrets.token_hex(12)
    secret = folder / "password"
    secret.write_text(password)
    if user is not None:
        shutil.chown(folder, user)
        shutil.chown(secret, user)
    data, port = folder / "data", _free_port()

    def run(program: str, *arguments: str) -> None:
        with (folder / "log").open("a") as log:
            subprocess.run(
                [str(programs / program), "-D", str(data), *arguments],
                user=user,
                cwd=folder,
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
    if not durable:
        options += " -c fsync=off"
    try:
        run(
            "initdb",
            "-U",
            _USER,
            "-A",
            "scram-sha-256",
            f"--pwfile={secret}",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        )
        run("pg_ctl", "-w", "-o", options, "start")
        address = f"postgresql+psycopg://{_USER}:{password}@127.0.0.1:{port}/postgres"
        one = Server(address, run, options)
        try:
            yield one
        finally:
            with suppress(subprocess.CalledProcessError):  # it may be stopped already
                one.stop(crash=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
