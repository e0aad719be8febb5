"""Tests that `make test` (`--rotate`) runs on some days only: the slowest, and one of two twins.

The turn of a test follows from its name and the day (`SAMPLE_DAY`), so that every day has its share, and every test has
its day. A test that has changed, or whose subject has, is run by its name: `pytest tests/test_release.py`.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable
from typing import Final

from tests.support.sampling import DAY

# Tests that take much processor time, most of them a second or more, and how many days pass from one turn to the next.
SLOW: Final = {
    "tests/agent/test_canaries.py": 3,
    "tests/agent/test_first_day.py": 4,
    "tests/agent/test_page.py": 4,
    "tests/agent/test_passkeys.py": 4,
    "tests/agent/test_second_factor.py": 4,
    "tests/agent/test_sessions.py": 3,
    "tests/agent/test_socket.py": 3,
    "tests/agent/test_transfer.py": 3,
    "tests/cli/test_backup.py::test_memory_is_flat": 4,
    "tests/cli/test_database.py": 2,
    "tests/cli/test_invite.py": 2,
    "tests/cli/test_operators.py": 2,
    "tests/cli/test_web_verify.py": 3,
    "tests/client/hostile/test_attacks.py": 3,
    "tests/client/hostile/test_blindness.py::test_the_server_is_blind": 2,
    "tests/client/test_account.py::test_every_flipped_bit_of_a_keyring": 3,
    "tests/client/test_batches.py::test_a_second_run_with_the_same_uids": 2,
    "tests/client/test_convergence.py::test_a_planted_fault_is_caught": 4,
    "tests/client/test_kill.py": 2,
    "tests/client/test_light_install.py": 3,
    "tests/client/test_light_install.py::test_peoples_commands_need_only_the_client": 4,
    "tests/client/test_light_install.py::test_the_five_lines_run_on_a_light_install": 4,
    "tests/client/test_lost_responses.py": 2,
    "tests/client/test_move.py": 2,
    "tests/client/test_move_kill.py": 4,
    "tests/client/test_offline_vaults.py": 2,
    "tests/client/test_passkeys_in_chromium.py": 2,
    "tests/client/test_refused.py": 2,
    "tests/client/test_restore.py": 2,
    "tests/client/test_rotation.py::test_a_rotation_that_is_killed": 2,
    "tests/client/test_two_processes.py": 2,
    "tests/client/test_vectors.py::test_a_second_implementation_agrees": 4,
    "tests/export/test_export_page.py": 3,
    "tests/export/test_import.py::test_an_import_that_broke_off": 2,
    "tests/export/test_kill.py": 2,
    "tests/faults/test_backup.py": 2,
    "tests/faults/test_idle_streams.py": 4,
    "tests/faults/test_kill.py": 2,
    "tests/faults/test_operating_guide.py": 4,
    "tests/faults/test_retention.py": 4,
    "tests/items/test_hostile_files.py::test_a_text_of_one_gigabyte": 4,
    "tests/items/test_hostile_files.py::test_members_of_wrong_types": 2,
    "tests/items/test_hostile_files.py::test_ten_thousand_items": 4,
    "tests/js/test_adoption.py": 2,
    "tests/js/test_batches.py": 2,
    "tests/js/test_convergence.py": 2,
    "tests/js/test_guide.py": 3,
    "tests/js/test_hostile.py::test_a_replica_sees_through_it": 3,
    "tests/js/test_interop_accounts.py": 2,
    "tests/js/test_item_formats.py::test_a_plan_is_made_alike": 2,
    "tests/js/test_item_formats.py::test_files_are_read_in_a_browser": 2,
    "tests/js/test_item_formats.py::test_heavy_files_take_little": 4,
    "tests/js/test_item_formats.py::test_ten_thousand_items": 4,
    "tests/js/test_item_work.py": 4,
    "tests/js/test_items.py::test_the_vectors_hold_in_a_browser": 2,
    "tests/js/test_javascript.py": 3,
    "tests/js/test_live.py": 2,
    "tests/js/test_move.py": 2,
    "tests/js/test_offline_vaults.py": 2,
    "tests/js/test_operations.py": 2,
    "tests/js/test_package.py": 2,
    "tests/js/test_pages.py": 2,
    "tests/js/test_passkeys_in_chromium.py": 2,
    "tests/js/test_react_in_chromium.py": 2,
    "tests/js/test_replica.py": 2,
    "tests/js/test_replica_file.py": 3,
    "tests/js/test_replica_in_chromium.py": 2,
    "tests/js/test_replica_restores.py": 4,
    "tests/js/test_vectors_in_chromium.py": 2,
    "tests/mcp/test_commands.py": 2,
    "tests/mcp/test_mcp.py": 2,
    "tests/operating/test_backup_folder.py::test_every_failed_attempt": 4,
    "tests/operating/test_backup_stream.py": 3,
    "tests/operating/test_damage_while_serving.py": 2,
    "tests/operating/test_damaged_log.py": 3,
    "tests/operating/test_destinations.py": 4,
    "tests/operating/test_foreign_locks.py::test_nobody_waits_for_ever": 4,
    "tests/operating/test_hardening.py": 3,
    "tests/operating/test_impossible_backups.py": 3,
    "tests/operating/test_killed_restore.py": 4,
    "tests/operating/test_latest_backup.py": 2,
    "tests/operating/test_log_recovery.py": 3,
    "tests/operating/test_monitoring.py": 2,
    "tests/operating/test_not_an_archive.py": 4,
    "tests/operating/test_operating_guide_as_user.py": 4,
    "tests/operating/test_owners.py": 2,
    "tests/operating/test_planted_links.py": 3,
    "tests/operating/test_point_in_time.py": 4,
    "tests/operating/test_postgres_away.py": 2,
    "tests/operating/test_random_damage.py": 3,
    "tests/operating/test_read_only_doctor.py": 3,
    "tests/operating/test_restore_target.py": 3,
    "tests/operating/test_salvage.py": 3,
    "tests/operating/test_settings_file.py": 3,
    "tests/operating/test_systemd_unit.py": 4,
    "tests/operating/test_unfinished_backups.py::test_the_half_of_a_killed": 4,
    "tests/operating/test_unreadable_rows.py": 2,
    "tests/programs/test_canaries.py::test_no_canary": 2,
    "tests/programs/test_commands.py": 2,
    "tests/programs/test_with_agent.py": 4,
    "tests/security/test_buffers.py": 3,
    "tests/security/test_code_guessing.py::test_a_wrong_code_takes_as_long": 2,
    "tests/security/test_decoding.py": 3,
    "tests/security/test_event_loop.py": 4,
    "tests/security/test_held_lists.py": 2,
    "tests/security/test_leaks.py": 2,
    "tests/security/test_matrix.py::test_the_matrix_of_a_narrowed_server": 2,
    "tests/security/test_memory_budget.py": 4,
    "tests/security/test_random_ceremonies.py": 2,
    "tests/security/test_timing.py::test_a_planted_delay": 4,
    "tests/security/test_timing.py::test_known_and_unknown": 2,
    "tests/security/test_transport.py::test_a_follower": 2,
    "tests/security/test_write_only_keys.py": 2,
    "tests/server/test_batch_and_singles.py": 2,
    "tests/server/test_http_differential.py::test_a_planted_fault": 4,
    "tests/server/test_listeners.py": 2,
    "tests/server/test_lost_notifications.py": 2,
    "tests/server/test_passkeys_in_chromium.py": 2,
    "tests/server/test_scheduled_backups.py": 2,
    "tests/server/test_timestamps.py::test_the_machines_clock_may_jump": 2,
    "tests/server/test_tracing.py": 2,
    "tests/server/test_web_app.py": 2,
    "tests/store/test_copy.py": 3,
    "tests/store/test_crafted_archives.py": 2,
    "tests/store/test_engine.py::test_writes_of_one_account_end": 2,
    "tests/store/test_indexes.py::test_a_combined_write": 4,
    "tests/store/test_lazy_driver.py": 3,
    "tests/store/test_migrations.py::test_killed": 2,
    "tests/store/test_migrations.py::test_ten_nodes": 2,
    "tests/store/test_restore.py": 2,
    "tests/test_documents.py::test_the_longer_example": 2,
    "tests/test_documents.py::test_the_tour_of_the_client": 2,
    "tests/test_generated.py::test_the_javascript_reference": 2,
    "tests/test_import_cycles.py::test_a_planted_circle_is_found": 4,
    "tests/test_mutation.py": 4,
    "tests/test_project_files.py::test_what_is_subclassed": 2,
    "tests/test_release.py": 4,
    "tests/test_types.py": 3,
    "tests/upgrade": 3,
    "tests/web": 4,
}
# Folders and files whose tests are alike for both values of a parameter: one of the two has its turn each day.
TWINS: Final = {
    "tests/cli/": ("sqlite", "postgres"),
    "tests/client/test_lost_responses.py": ("sqlite", "postgres"),
    "tests/client/": ("blocking", "awaiting"),
    "tests/export/": ("sqlite", "postgres"),
    "tests/operating/": ("sqlite", "postgres"),
    "tests/security/": ("sqlite", "postgres"),
    "tests/server/": ("sqlite", "postgres"),
    "tests/web/": ("sqlite", "postgres"),
}


_PREFIXES: Final = tuple(SLOW)


def on_other_days(names: Iterable[str], day: int = int(DAY)) -> set[str]:
    """Those of these tests, by their node ids, that have their turn on another day."""
    given = set(names)
    return {name for name in given if not _is_of_today(name, given, day)}


def _is_of_today(name: str, given: set[str], day: int) -> bool:
    """A slow test has its turn once in every few days; of two twins the one has this turn, and the other the next.

    Which of these days it is moves on, and so do the twins: a row that is collected every second or fourth day
    (sampling.py) would otherwise never meet its turn, or always that of one engine.
    """
    both = sorted(_twins(name) & given)
    number, days = zlib.crc32(both[0].encode()), _days(name)
    turn, of_turn = divmod(day, days)
    return of_turn == (number + turn // 2) % days and both[(turn + turn // 4 + number // days) % len(both)] == name


@functools.cache
def _days(name: str) -> int:
    """How many days pass from one turn of a test, or of its twin, to the next."""
    if not name.startswith(_PREFIXES):
        return 1
    return max(days for prefix, days in SLOW.items() if name.startswith(prefix))


def _twins(name: str) -> set[str]:
    """A test with either value in the place of the one that it has; the test alone where it has no twin."""
    folder = next((folder for folder in TWINS if name.startswith(folder)), None)
    if folder is None:
        return {name}
    first, second = TWINS[folder]
    function, bracket, parameters = name.partition("[")
    parts = parameters.removesuffix("]").split("-")
    at = next((at for at, part in enumerate(parts) if part in {first, second}), None)
    if not bracket or at is None:
        return {name}
    return {f"{function}[{'-'.join([*parts[:at], value, *parts[at + 1 :]])}]" for value in (first, second)}
