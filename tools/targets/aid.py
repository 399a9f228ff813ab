"""Target of faults that users met: each has an end-to-end check with real kernels, which failed before the fix."""

import os
import subprocess
import sys

from . import require, target
from ._builds import ROOT

E2E = ROOT / "tests" / "e2e"
SECONDS = 300  # that one check may take
# {fault: (file, its checks)}. BRAID_BIN in the environment selects other programs; with those of commit 5daa8cea each
# check fails.
CHECKS = {
    "a peer's stream openings had no ration": ("streams_test.py", [
        "Openings.test_a_peer_opens_no_more_streams_than_its_ration"]),
    "connections of strangers were taken over": ("streams_test.py", [
        "Strangers.test_without_forwarding_nothing_gets_through",
        "Strangers.test_with_forwarding_they_are_packets_and_the_firewalls",
        "Strangers.test_interfaces_that_come_and_go",
        "Strangers.test_an_edges_uplink"]),
    "peers reached special destinations": ("router_test.py", [
        "SpecialDestinations.test_no_packet_gets_there",
        "SpecialDestinations.test_no_stream_gets_there"]),
    "a lock that anybody could hold": ("lifecycle_test.py", [
        "Places.test_who_locks_the_sockets_folder_holds_nobody_up",
        "Places.test_a_start_hears_that_it_is_to_end",
        "Places.test_a_second_daemon_ends_at_once_and_has_changed_nothing"]),
    "the same of setup and join": ("join_test.py", ["Joining.test_who_locks_the_folder_holds_nobody_up"]),
    "streams were in no total": ("streams_test.py", ["Streams.test_totals_are_what_crossed_the_lan"]),
    "streams were not on the page": ("web_test.py", ["Streams.test_what_crosses_as_streams_is_in_every_total"]),
    "IPv6 left in clear": ("routes_test.py", [
        "Everything.test_beside_a_default_route_with_a_metric",
        "Everything.test_beside_a_default_route_by_router_advertisement",
        "Everything.test_a_reload_takes_it_away_and_others_do_not",
        "HostsOwnRoutes.test_a_default_route_without_a_metric",
        "Everything.test_a_family_that_is_left_out_is_told"]),
    "LANs were chosen by name": ("join_test.py", [
        "Joining.test_lans_are_chosen_by_what_links_are_and_not_by_their_names"]),
    "nobody made the state folder": ("lifecycle_test.py", [
        "Places.test_the_state_folder_is_made_and_used",
        "Places.test_the_configured_state_folder_is_made_and_used",
        "Places.test_the_state_folder_is_the_users_as_whom_it_runs",
        "Places.test_where_the_state_folder_cannot_be_made_packets_are_carried"]),
    "no host heard of ICMP errors": ("icmp_test.py", [
        "Errors.test_hosts_and_applications_learn_the_mtu",
        "Errors.test_a_connection_to_nobody_fails_at_once",
        "Errors.test_a_connection_to_a_peer_that_is_away_fails_at_once",
        "OnATapDevice.test_applications_learn_the_mtu"]),
    "a path that was dead one way was active": ("failover_test.py", [
        "OneWay.test_both_gateways_and_their_doctors_know_it"]),
}


def passes(file, check):
    """True when the check passes. The output of a failure is written to standard error."""
    done = subprocess.run([sys.executable, E2E / file, check], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "tools")}, timeout=SECONDS)
    # A name that no longer exists, or a skipped check, proves nothing.
    good = done.returncode == 0 and "Ran 1 test" in done.stdout and "skipped" not in done.stdout
    if not good:
        sys.stderr.write(f"--- {file} {check}\n{done.stdout[-3000:]}\n")
    return good


def checks_value(checks, run=passes):
    """(checks that fail, detail)"""
    failed, count = {}, 0
    for what, (file, names) in checks.items():
        bad = [name for name in names if not run(file, name)]
        count += len(names)
        if bad:
            failed[what] = bad
    detail = {"checks": count, "failed": failed}
    require(detail, count > 0, "no check was made")
    return sum(map(len, failed.values())), detail


@target("aid.3", "end-to-end checks of faults that users met (strangers and special destinations, locks, totals, IPv6 "
        "in clear, LANs by name, the state folder, ICMP errors, paths dead one way) that fail", "checks", at_most=0,
        programs=["braidd", "braidctl", "braid-web", "linkemu", "openings"])
def checks():
    return checks_value(CHECKS)
