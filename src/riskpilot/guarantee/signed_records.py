"""Records that are files of their own: written with a digest, read where they are whole."""

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from riskpilot.common import Shape, digest_of, kept_in, parse, shown_safely, signed_files
from riskpilot.errors import CertificateError


class SignedRecord:
    """A frozen dataclass of plain JSON values that is kept as a file with its digest."""

    _kind: ClassVar[str]  # what it is called in messages
    _schema: ClassVar[str]
    _form: ClassVar[Shape]
    _absent: ClassVar[frozenset[str]] = frozenset()  # the fields that are not written where None

    def _fields(self) -> dict[str, Any]:
        """Return every field that is written by its name."""
        found: dict[str, Any] = asdict(self)  # type: ignore[call-overload]
        none = {name for name in self._absent if found[name] is None}
        return {name: value for name, value in found.items() if name not in none}

    @property
    def digest(self) -> str:
        """The SHA-256 digest of all fields, which stands for the whole record."""
        return digest_of(self._fields())

    def to_json(self) -> str:
        """Write the record as JSON, with its digest.

        Returns
        -------
        str
            The JSON text, which `from_json` reads.

        Raises
        ------
        CertificateError
            If a field holds what JSON cannot, such as NaN.
        """
        try:
            return signed_files.signed(self._fields())
        except (TypeError, ValueError) as error:
            raise CertificateError(
                f"A {self._kind} holds finite numbers, texts, lists and mappings, but a field of "
                f"this one cannot be written: {error}. Take an untouched copy."
            ) from error

    def save(self, path: str | Path) -> Path:
        """Write the record as JSON and return where it is; never over what must not be lost.

        Parameters
        ----------
        path : str or Path
            The file to write.

        Returns
        -------
        Path
            The same path.

        Raises
        ------
        CertificateError
            If the file cannot be written, or keeps what must not be lost, such as another seal, a
            database, a ledger, the state of a watch or a table of losses.
        """
        text = self.to_json()
        if kept_in(path) == "a seal" and not _says(signed_files.load(path, "seal"), text):
            raise CertificateError(
                f"A seal is never written over, but there is another one in {shown_safely(path)}, "
                f"which cannot be made again once its question was asked. Save this {self._kind} "
                f"in a file of its own: --out another.json in a command."
            )
        return signed_files.save(path, text, self._kind, renewed=f"a {self._kind}")

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote.

        Parameters
        ----------
        text : str
            A record as JSON.

        Returns
        -------
        Certificate or Seal
            The record, every field of it of the kind it must be.

        Raises
        ------
        CertificateError
            If the text is no such record, or was changed after it was written.
        """
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        found = signed_files.read_signed(
            text, cls._kind, cls._schema, names, cls._form, cls._absent
        )
        return cls(**found)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a record from a file.

        Parameters
        ----------
        path : str or Path
            A file that `save` wrote.

        Returns
        -------
        Certificate or Seal
            The record.

        Raises
        ------
        CertificateError
            If the file cannot be read, is no such record, or was changed after it was written.
        """
        return cls.from_json(signed_files.load(path, cls._kind))


def _says(found: str, text: str) -> bool:
    """Tell whether the text of a file is JSON of the same content, in whatever form."""
    try:
        return bool(parse(found) == parse(text))
    except ValueError:
        return False
