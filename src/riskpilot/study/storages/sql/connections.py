"""Connections to a database, and its errors as Optuna raises them."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy
from optuna.exceptions import StorageInternalError
from sqlalchemy.exc import IntegrityError, SQLAlchemyError


@contextmanager
def opening_errors() -> Iterator[None]:
    """Raise an error of SQLAlchemy as one of Optuna's, in the same words."""
    try:
        yield
    except SQLAlchemyError as error:
        raise StorageInternalError(str(error)) from error


@contextmanager
def clear_errors() -> Iterator[None]:
    """Raise an error of the database as Optuna does.

    A broken constraint is let through: it says that another worker has written the same row.
    """
    try:
        yield
    except IntegrityError:
        raise
    except SQLAlchemyError as error:
        raise StorageInternalError(
            f"The database did not answer as it should ({type(error).__name__}). Check that it "
            f"runs and can be reached."
        ) from error


@contextmanager
def autocommit(engine: sqlalchemy.Engine) -> Iterator[sqlalchemy.Connection]:
    """Open a connection on which every statement is a transaction of its own."""
    with clear_errors(), engine.connect() as connection:
        yield connection.execution_options(isolation_level="AUTOCOMMIT")
