"""``tapebot backup`` and ``tapebot restore``."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bot.cli.tape import printable
from bot.cli.terminal import says_yes
from bot.core.errors import BackupFailed, SettingsError
from bot.core.i18n import _, ngettext
from bot.runtime.app.daily_backup import check_in_files, configured_key
from bot.runtime.settings import ENV_FILE, TOML_FILE, Settings
from bot.transfer.backup import BackupResult, create_backup, open_key, restore_backup
from bot.transfer.backup_key import passphrase_key

_SHORTEST_PASSPHRASE = 10


def backup(settings: Settings, to: Path | None, recipients: Sequence[str], keep: int | None) -> int:
    """Make a backup; tapebot may run meanwhile.

    Returns:
        1 if tapes in the home are damaged; the backup is made all the same. Else 0.

    Raises:
        SettingsError: There is no folder, no passphrase, or the data is in a database.
        BackupFailed: It cannot be made, or does not read back.
        OSError: A disk refused.
    """
    check_in_files(settings)
    folder = to or settings.backup_to
    if folder is None:
        raise SettingsError(
            _("name the folder of backups: tapebot backup --to FOLDER, or set TAPEBOT_BACKUP_TO")
        )
    key = configured_key(settings, recipients) or passphrase_key(_new_passphrase())
    made = create_backup(
        settings.home,
        folder.expanduser().absolute(),
        key,
        datetime.now(UTC),
        keep=keep,
    )
    print(
        _(
            "saved\t{path}: {counts}; unpacked and checked",
            path=printable(str(made.path)),
            counts=_counts(made),
        )
    )
    print(_("signed by\t{signer}", signer=made.read.signer))
    for name in made.removed:
        print(_("removed\t{name}", name=name))
    print(_("A .env outside of the home folder is not part of it: keep a copy of it yourself."))
    return _tell_damage(made)


def restore(
    settings: Settings, backup: Path, identity: Path | None, signer: str | None = None
) -> int:
    """Restore a backup to the home of the settings, which must be empty.

    Returns:
        1 if tapes in it are damaged; they are restored all the same. Else 0.

    Raises:
        BackupFailed: The home is not empty, the key does not fit, the backup is damaged or mixed, or
            it is not known to be the owner's and nobody confirmed it.
        OSError: A disk refused; the home is unchanged.
    """
    check_in_files(settings)

    def passphrase() -> str:
        if settings.backup_passphrase is not None:
            return settings.backup_passphrase.get_secret_value()
        return getpass.getpass(_("Passphrase: "))

    key, told = open_key(backup, passphrase, identity)
    done = restore_backup(
        backup,
        settings.home,
        key,
        signer=signer or told,
        confirm=_confirm,
    )
    print(
        _(
            "restored\t{path}: {counts}, as of {taken}",
            path=printable(str(done.path)),
            counts=_counts(done),
            taken=done.read.taken,
        )
    )
    if done.erased:
        print(
            ngettext(
                "erased\t{n} entry or file that was erased since",
                "erased\t{n} entries and files that were erased since",
                done.erased,
            )
        )
    print(
        _(
            "What was erased since is erased again, as far as `erased.jsonl` beside the backup names "
            "it. Now start tapebot."
        )
    )
    return _tell_damage(done)


def _confirm(home: Path, signer: str) -> bool:
    """Show what a backup that anybody may have made would set, and ask for a yes."""
    told = [
        _("Nothing tells that this is a backup of yours. It is signed by {signer}.", signer=signer)
    ]
    for path in sorted(home.iterdir()):
        if path.name.casefold() in (TOML_FILE, ENV_FILE.name) and path.is_file():
            told.append(_("Its {name} says:", name=printable(path.name)))
            lines = path.read_text("utf-8", "backslashreplace").splitlines()
            told.extend(f"  {printable(line)}" for line in lines)
    told.append(
        _(
            "Also who may use tapebot, what tools, skills and programs may do without a question, and "
            "what is scheduled would count as it says."
        )
    )
    print("\n".join(told))
    if not sys.stdin.isatty():
        raise BackupFailed(
            _(
                "Nothing was restored: nobody is here to say yes. If this signer is the one that "
                "`tapebot backup` printed, add --signed-by {signer}",
                signer=signer,
            )
        )
    return says_yes(_("Restore it? [y/N] "))


def _new_passphrase() -> str:
    if not sys.stdin.isatty():
        raise SettingsError(
            _(
                "set TAPEBOT_BACKUP_PASSPHRASE or TAPEBOT_BACKUP_RECIPIENTS: nobody is here to type "
                "a passphrase"
            )
        )
    while True:
        first = getpass.getpass(
            _(
                "New passphrase (at least {least} characters): ",
                least=_SHORTEST_PASSPHRASE,
            )
        )
        if len(first) < _SHORTEST_PASSPHRASE:
            print(_("That is too short."))
        elif first != getpass.getpass(_("Again: ")):
            print(_("The two differ."))
        else:
            print(_("Without this passphrase nobody can open the backup. Write it down."))
            return first


def _counts(result: BackupResult) -> str:
    counts = (
        ngettext("{n} tape", "{n} tapes", result.tapes.tapes),
        ngettext("{n} file", "{n} files", result.read.count),
        ngettext("{n} byte", "{n} bytes", result.read.size),
    )
    return ", ".join(counts)


def _tell_damage(result: BackupResult) -> int:
    for problem in result.tapes.problems:
        print(_("damaged\t{problem}", problem=printable(str(problem))), file=sys.stderr)
    if result.tapes.problems:
        print(_("an earlier backup may hold what is damaged"), file=sys.stderr)
    return 1 if result.tapes.problems else 0
