"""Tests that `make test` (`--rotate`) runs on some days only: the slow ones, and one of two twins.

The turn of a test follows from its name and the day (`SAMPLE_DAY`), so that every day has its share, and every test has
its day. A test that has changed, or whose subject has, is run by its name: `pytest tests/test_release.py`.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable
from typing import Final

from tests.kit.sampling import DAY

# Tests that take much processor time, and how many days pass from one turn to the next: seven where a test takes more
# than half a second, fewer where it takes less. The longest name that a test's begins with decides. The tests of a file
# that is named have their turn together, and on other days the file is not even imported; those of a folder, or of a
# name with `::`, have turns of their own. No more than seven days, so that twins run within two weeks. On its day, a
# test begins the earlier the further up it stands.
SLOW: Final = {
    # These take longest.
    "tests/web/": 7,
    "tests/js/": 7,
    "tests/js/test_guide.py::": 7,
    "tests/js/test_javascript.py::": 7,
    "tests/client/test_vectors.py::test_a_second_implementation_agrees": 7,
    "tests/test_types.py::": 7,
    "tests/test_release.py::": 7,
    "tests/security/test_matrix.py::test_the_matrix_on_postgresql": 3,
    "tests/security/test_matrix.py::test_the_whole_matrix": 3,
    "tests/operating/test_operating_guide_as_user.py::": 7,
    "tests/operating/test_systemd_unit.py::": 7,
    "tests/programs/test_canaries.py": 7,
    # And all others.
    "tests/agent/": 2,
    "tests/agent/test_canaries.py::": 7,
    "tests/agent/test_first_day.py": 7,
    "tests/agent/test_items.py::test_a_machine_reads_with_a_token_and_no_agent": 7,
    "tests/agent/test_output.py::test_a_full_disk_of_the_account_is_told": 7,
    "tests/agent/test_page.py": 7,
    "tests/agent/test_passkeys.py": 7,
    "tests/agent/test_second_factor.py": 7,
    "tests/agent/test_sessions.py": 7,
    "tests/agent/test_socket.py::": 5,
    "tests/agent/test_transfer.py": 7,
    "tests/cli/": 2,
    "tests/cli/test_backup.py::test_memory_is_flat": 7,
    "tests/cli/test_database.py": 5,
    "tests/cli/test_invite.py": 4,
    "tests/cli/test_migrate.py::test_who_migrates_by_hand_decides_when": 7,
    "tests/cli/test_operators.py": 7,
    "tests/cli/test_second_factor.py::test_the_doctor_tells_of_a_lost_secret": 7,
    "tests/cli/test_web_verify.py": 7,
    "tests/client/hostile/test_attacks.py::": 4,
    "tests/client/hostile/test_blindness.py::test_the_server_is_blind": 4,
    "tests/client/hostile/test_planted.py": 3,
    "tests/client/test_account.py::test_every_flipped_bit_of_a_keyring": 7,
    "tests/client/test_account_restores.py": 3,
    "tests/client/test_adoption.py": 3,
    "tests/client/test_batches.py::test_a_batch_stays_within_the_limits_of_the_server": 7,
    "tests/client/test_batches.py::test_a_second_run_with_the_same_uids": 4,
    "tests/client/test_batches.py::test_many_documents_are_created_replaced_and_deleted": 7,
    "tests/client/test_client.py::test_a_walk_goes_through_pages": 7,
    "tests/client/test_convergence.py::": 7,
    "tests/client/test_epochs.py": 3,
    "tests/client/test_error_causes.py::test_every_single_typo_is_found": 7,
    "tests/client/test_kill.py": 7,
    "tests/client/test_light_install.py": 7,
    "tests/client/test_lost_responses.py": 4,
    "tests/client/test_move.py": 5,
    "tests/client/test_move_kill.py": 7,
    "tests/client/test_move_lies.py::test_a_new_server_that_did_not_keep_all_is_found_out": 7,
    "tests/client/test_offline_vaults.py": 5,
    "tests/client/test_parents.py": 3,
    "tests/client/test_passkey_lies.py": 3,
    "tests/client/test_passkeys_in_chromium.py": 7,
    "tests/client/test_refused.py": 4,
    "tests/client/test_replica.py::": 3,
    "tests/client/test_replica.py::test_a_first_download_that_is_cut_off": 7,
    "tests/client/test_restore.py": 5,
    "tests/client/test_retries.py::test_tokens_are_exchanged_by_themselves": 7,
    "tests/client/test_rotation.py::test_a_rotation_that_is_killed_at_any_step_is_finished": 7,
    "tests/client/test_saved_sessions.py::test_programs_that_refresh_at_the_same_time": 7,
    "tests/client/test_seal.py::test_a_row_stays_in_its_place": 4,
    "tests/client/test_seal.py::test_no_key_seals_twice": 4,
    "tests/client/test_seal.py::test_what_is_sealed_opens": 4,
    "tests/client/test_two_processes.py": 7,
    "tests/client/test_typed_values.py::test_values_come_back_as_their_type": 7,
    "tests/contract/test_durability.py::test_end_amid_writes": 7,
    "tests/contract/test_hostile_bodies.py::test_malformed": 7,
    "tests/contract/test_hostile_bodies.py::test_nasty_values": 7,
    "tests/contract/test_lists.py::test_everything_without_a_limit": 7,
    "tests/export/test_export_page.py": 7,
    "tests/export/test_import.py::": 3,
    "tests/export/test_import.py::test_a_bad_line_is_refused_by_its_number": 7,
    "tests/export/test_import.py::test_a_device_that_reads_meanwhile_misses_nothing": 7,
    "tests/export/test_import.py::test_a_file_that_is_not_whole_is_refused": 7,
    "tests/export/test_import.py::test_an_import_that_broke_off_goes_on": 7,
    "tests/export/test_import.py::test_from_one_engine_to_the_other": 7,
    "tests/export/test_import.py::test_two_who_send_the_same_file_at_once": 7,
    "tests/export/test_keyrings.py::test_a_bad_line_of_keys_is_refused_by_its_number": 7,
    "tests/export/test_kill.py": 7,
    "tests/faults/": 7,
    "tests/items/test_hostile_files.py::test_a_text_of_one_gigabyte": 7,
    "tests/items/test_hostile_files.py::test_many_entries_with_one_file_of_keepass": 7,
    "tests/items/test_hostile_files.py::test_members_of_wrong_types": 7,
    "tests/items/test_hostile_files.py::test_ten_thousand_items": 7,
    "tests/items/test_hostile_files.py::test_zip_bombs_and_paths": 7,
    "tests/js/test_client.py": 3,
    "tests/js/test_invitations.py": 3,
    "tests/js/test_items.py": 4,
    "tests/js/test_operations.py": 3,
    "tests/js/test_passkeys.py": 3,
    "tests/js/test_retries.py": 3,
    "tests/js/test_second_factor.py": 4,
    "tests/js/test_tokens.py": 3,
    "tests/mcp/test_commands.py": 4,
    "tests/mcp/test_mcp.py::": 5,
    "tests/operating/": 2,
    "tests/operating/test_backup_clock.py::test_a_backup_from_the_future_does_not_stop_the_schedule": 7,
    "tests/operating/test_backup_folder.py::test_every_failed_attempt": 7,
    "tests/operating/test_backup_stream.py": 7,
    "tests/operating/test_damage_while_serving.py": 5,
    "tests/operating/test_damaged_log.py::": 7,
    "tests/operating/test_destinations.py::": 7,
    "tests/operating/test_foreign_locks.py::test_nobody_waits_for_ever": 7,
    "tests/operating/test_hardening.py::": 7,
    "tests/operating/test_help.py::test_the_menu_names_every_command": 7,
    "tests/operating/test_impossible_backups.py": 7,
    "tests/operating/test_killed_restore.py": 7,
    "tests/operating/test_latest_backup.py": 5,
    "tests/operating/test_leaked_secret.py::test_an_export_under_way_breaks_off": 7,
    "tests/operating/test_log_pipe.py": 7,
    "tests/operating/test_log_recovery.py": 7,
    "tests/operating/test_monitoring.py": 7,
    "tests/operating/test_not_an_archive.py::": 7,
    "tests/operating/test_owners.py": 5,
    "tests/operating/test_planted_links.py": 7,
    "tests/operating/test_point_in_time.py": 7,
    "tests/operating/test_postgres_away.py": 7,
    "tests/operating/test_random_damage.py": 7,
    "tests/operating/test_read_only_doctor.py": 7,
    "tests/operating/test_restore_target.py": 7,
    "tests/operating/test_salvage.py": 7,
    "tests/operating/test_settings_file.py": 7,
    "tests/operating/test_unfinished_backups.py::test_the_half_of_a_killed": 7,
    "tests/operating/test_unreadable_rows.py": 4,
    "tests/programs/": 2,
    "tests/programs/test_commands.py": 4,
    "tests/programs/test_with_agent.py::": 7,
    "tests/security/test_buffers.py": 7,
    "tests/security/test_code_guessing.py::test_a_wrong_code_takes_as_long": 7,
    "tests/security/test_decoding.py::": 4,
    "tests/security/test_event_loop.py::": 7,
    "tests/security/test_findings.py::test_a_right_password_in_a_burst_is_one_guess_among_many": 7,
    "tests/security/test_fuzz.py::test_nonsense_is_refused_and_nothing_more": 7,
    "tests/security/test_held_lists.py::": 4,
    "tests/security/test_invitations.py::test_a_code_is_no_oracle_for_emails": 7,
    "tests/security/test_invitations.py::test_of_many_at_once_one_registers": 7,
    "tests/security/test_leaks.py": 7,
    "tests/security/test_limits.py::test_who_goes_on_guessing_waits_longer_and_longer": 7,
    "tests/security/test_matrix.py::test_the_matrix_of_a_narrowed_server": 7,
    "tests/security/test_memory_budget.py": 7,
    "tests/security/test_passkeys.py::test_a_throttled_address_still_logs_in": 7,
    "tests/security/test_passkeys.py::test_limits": 7,
    "tests/security/test_passkeys_planted.py::test_no_attack_succeeds": 7,
    "tests/security/test_planted.py::": 4,
    "tests/security/test_prelogin.py::test_a_burst_of_questions_is_counted_one_by_one": 7,
    "tests/security/test_prelogin.py::test_who_logs_in_is_not_held_up": 7,
    "tests/security/test_random_ceremonies.py::": 5,
    "tests/security/test_secrets.py::test_a_hash_of_other_parameters_is_made_anew_at_login": 7,
    "tests/security/test_timing.py::": 5,
    "tests/security/test_tokens.py::test_no_forged_refresh_token_is_taken": 7,
    "tests/security/test_transport.py::test_a_client_that_does_not_read_is_cut_off_and_holds_up_nobody": 7,
    "tests/security/test_transport.py::test_a_follower": 4,
    "tests/security/test_transport.py::test_a_server_that_stops_does_not_wait_for_who_does_not_read": 7,
    "tests/security/test_write_only_keys.py::": 4,
    "tests/server/test_batch.py::test_a_thousand_operations": 7,
    "tests/server/test_batch_and_singles.py": 7,
    "tests/server/test_events.py::test_random_comings_and_goings_miss_nothing": 7,
    "tests/server/test_http_differential.py::test_a_planted_fault": 7,
    "tests/server/test_http_differential.py::test_generated_streams": 7,
    "tests/server/test_listeners.py": 4,
    "tests/server/test_lost_notifications.py": 4,
    "tests/server/test_metrics.py::test_many_processes_tell_one_sum_that_never_falls": 7,
    "tests/server/test_passkeys_in_chromium.py": 7,
    "tests/server/test_readiness.py::test_a_database_that_takes_no_writes_is_not_ready_until_it_does": 7,
    "tests/server/test_scheduled_backups.py": 4,
    "tests/server/test_timestamps.py::test_the_machines_clock_may_jump": 4,
    "tests/server/test_tracing.py": 7,
    "tests/server/test_trash.py::test_its_owner_empties_the_trash": 7,
    "tests/server/test_trash.py::test_no_transaction_throws_away_much": 7,
    "tests/server/test_usage_and_quotas.py::test_counts_are_exact_whatever_happens": 7,
    "tests/server/test_vault_history.py::test_a_page_is_bounded": 7,
    "tests/server/test_web_app.py": 4,
    "tests/store/test_combined_writes.py::test_a_uid_is_never_a_vaults_and_a_documents": 7,
    "tests/store/test_copy.py::": 7,
    "tests/store/test_crafted_archives.py": 7,
    "tests/store/test_engine.py::test_writes_of_one_account_end_when_the_database_is_away": 7,
    "tests/store/test_indexes.py::": 7,
    "tests/store/test_lazy_driver.py": 7,
    "tests/store/test_migrations.py::test_killed_at_any_statement_and_started_again_it_finishes": 7,
    "tests/store/test_migrations.py::test_ten_nodes_may_start_at_once": 7,
    "tests/store/test_purge_steps.py": 5,
    "tests/store/test_read_batches.py::test_many_reads_are_few_queries_and_each_has_its_own_row": 7,
    "tests/store/test_restore.py::": 7,
    "tests/sync/": 5,
    "tests/test_architecture.py::test_imports_point_inward": 7,
    "tests/test_archive.py::test_a_sealed_archive_that_was_changed_is_refused": 7,
    "tests/test_documents.py::test_the_five_lines_run": 4,
    "tests/test_documents.py::test_the_longer_example": 4,
    "tests/test_documents.py::test_the_tour_of_the_client": 4,
    "tests/test_generated.py::test_the_javascript_reference": 4,
    "tests/test_import_cycles.py::test_a_planted_circle_is_found": 7,
    "tests/test_import_cycles.py::test_no_import_leads_back": 7,
    "tests/test_memory.py": 7,
    "tests/test_mutation.py": 7,
    "tests/test_processes.py::test_streams_folder_variables_and_exit_code": 7,
    "tests/test_project_files.py::test_what_is_subclassed": 4,
    "tests/test_wire.py::test_a_body_is_read_in_steps_as_it_is_at_once": 7,
    "tests/test_wire.py::test_any_object_is_read_or_refused": 7,
    "tests/upgrade/": 7,
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


LAST: Final = len(SLOW)
_SEED: Final = 46
_PLACES: Final = {name: at for at, name in enumerate(SLOW)}


def on_other_days(names: Iterable[str], day: int = int(DAY)) -> set[str]:
    """Those of these tests, by their node ids, that have their turn on another day."""
    given = set(names)
    return {name for name in given if not _is_of_today(name, given, day)}


def is_file_of_another_day(path: str, day: int = int(DAY)) -> bool:
    """Whether no test of this file has its turn today."""
    return (day + _hash(path)) % SLOW.get(path, 1) != 0


def rank(name: str) -> int:
    """The place of a test in the order in which tests begin: the longest first; LAST for all that are not slow."""
    return _PLACES.get(_entry(name), LAST)


def _is_of_today(name: str, given: set[str], day: int) -> bool:
    """A slow test has its turn once in so many days; of two twins the one has this turn, and the other the next."""
    twins, entry = sorted(_twins(name)), _entry(name)
    both, number = [one for one in twins if one in given], _hash(twins[0])
    turn, of_turn = divmod(day + (_hash(entry) if entry.endswith(".py") else number), SLOW.get(entry, 1))
    return of_turn == 0 and both[(turn + number // 8) % len(both)] == name


def _hash(text: str) -> int:
    """A number that spreads tests and files over days: with this seed, no day takes much longer than another."""
    return zlib.crc32(text.encode(), _SEED)


def _entry(name: str) -> str:
    """The entry of a test among the slow ones; none is empty."""
    return max((entry for entry in _entries(name.partition("::")[0]) if name.startswith(entry)), key=len, default="")


@functools.cache
def _entries(path: str) -> list[str]:
    """The entries of a file, of its folders and of its tests."""
    return [entry for entry in SLOW if entry.startswith(path) or path.startswith(entry)]


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
