"""What a certificate has to be trusted for, because nothing that was brought along shows it."""

import optuna

from riskpilot.common import how_many
from riskpilot.guarantee import Certificate, Seal, custom_name
from riskpilot.selection import Configs, ended_rows, first_examples

FILE_LEDGER_KNOWS = "number, date and versions, which the ledger beside the table knows"
FILE_LEDGER_IS_OLD = (
    "that nobody wrote the ledger beside the table anew; an earlier copy of it would show it"
)


def trusted_parts(
    certificate: Certificate,
    configs: Configs | None,
    study: optuna.Study | None,
    seal: Seal | None,
) -> list[str]:
    """List what nobody can compare with anything that was brought along."""
    trusted = []
    own = custom_name(certificate.procedure)
    if own is not None:
        trusted.append(
            f"that the procedure {own!r} keeps the chance of any false pass at delta: it is not "
            f"riskpilot's own"
        )
    if certificate.sequential is not None:
        trusted.append("that the order in which labels came did not depend on their losses")
    if certificate.judge is not None:
        trusted.append(
            "that the judge was fixed before the calibration labels were seen, and that the "
            "examples that it scored without a label come from where the labelled ones do"
        )
    if certificate.known_order:
        trusted.append("that the testing order was known before any of the losses")
    if certificate.evaluated:
        trusted.append(_foretold(certificate))
    if study is not None and seal is None:
        trusted.append(
            "that nobody wrote the whole storage anew, ledger included; a seal made beforehand or "
            "an earlier copy would show it"
        )
    if study is None and certificate.trials is None:
        trusted.append(
            "date and versions, and that no other question was put to the same losses: there is "
            "no ledger"
            if certificate.use["ledger"] is None
            else FILE_LEDGER_KNOWS
        )
    elif study is None:
        trusted.append(
            "number, date, versions, trials and seed of the search, which the study's ledger knows"
        )
    if study is None and configs is None and certificate.configs is not None:
        trusted.append("which configuration each row of the losses stands for")
    if study is None and certificate.space is not None:
        trusted.append("the search space over which the risks were smoothed")
    if seal is not None:
        trusted.append(
            "that nobody looked at the calibration losses before the seal was made, or replaced "
            "them since: a seal holds nothing of them"
        )
        also = "" if study is not None else ", its study and how many questions that had been asked"
        trusted.append(f"the seal's date and versions{also}: what counts is when its keeper got it")
    if seal is not None and seal.questions:
        earlier = how_many(seal.questions, "earlier question")
        trusted.append(f"what the maker of the seal had learned from {earlier}")
    return trusted


def _foretold(certificate: Certificate) -> str:
    """Say which validation losses nobody evaluated, and what hangs on them."""
    return (
        f"the validation losses of {ended_rows(certificate)} after the first "
        f"{first_examples(certificate)}: a race foretold them, and they had a say in the order of "
        f"the test and in the free objective; calibration losses are never foretold"
    )
