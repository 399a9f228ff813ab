"""Target of the erasure code: the cost of coding on one CPU core."""

import json
import subprocess

from lab import binary, median

from . import target

REPETITIONS = 9
SYMBOLS, PARITIES, SYMBOL_BYTES = 30, 3, 1400  # as in bench/coding_bench.cc


def _nanoseconds():
    """CPU time of one iteration of each benchmark, the median of all repetitions."""
    done = subprocess.run([binary("bench_coding"), f"--benchmark_repetitions={REPETITIONS}",
                           "--benchmark_min_time=0.1",
                           "--benchmark_enable_random_interleaving=true", "--benchmark_format=json"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    times = {}
    for run in json.loads(done.stdout)["benchmarks"]:
        if run.get("error_occurred"):
            raise RuntimeError(f"{run['run_name']}: {run['error_message']}")
        if run["run_type"] == "iteration":
            times.setdefault(run["run_name"], []).append(run["cpu_time"])
    return {name: median(values) for name, values in times.items()}


@target("recovery.7",
        f"source data per second of one core that BlockEncoder turns into parities, K={SYMBOLS} M={PARITIES}, "
        f"{SYMBOL_BYTES}-byte symbols; median of {REPETITIONS}", "GB/s", at_least=5.0, programs=["bench_coding"])
def coding():
    time = _nanoseconds()

    def gigabytes(name):
        return SYMBOLS * SYMBOL_BYTES / time[name]

    def rate(name):
        return round(gigabytes(name), 2)

    detail = {"xor_gb_s": rate("Xor"), "xor_gb_s_wanted": 30,
              "copying the symbols included_gb_s": rate("EncodeWithCopy"),
              "jerasure alone, 3 parities_gb_s": rate(f"Jerasure/{PARITIES}"),
              "jerasure alone, 1 parity_gb_s": rate("Jerasure/1"),
              "decode_us (1, 2, 3 missing)": [round(time[f"Decode/{lost}"] / 1000, 2) for lost in (1, 2, 3)],
              "decode_us_wanted (3 missing)": 20,
              "encoder_ns_per_packet": round(time["EncoderAdd"], 1),
              "decoder_ns_per_packet (0, 4, 32 open blocks)": [round(time[f"DecoderSymbol/{n}"], 1)
                                                               for n in (0, 4, 32)]}
    return gigabytes("Encode"), detail


@target("recovery.7b",
        f"time of {PARITIES} parities of {SYMBOLS} symbols of {SYMBOL_BYTES} bytes by BlockEncoder / of copying these "
        f"once and adding them up {PARITIES} times by a plain loop; medians of {REPETITIONS} that take turns",
        "ratio", at_most=2.0, programs=["bench_coding"])
def coding_against_the_machine():
    time = _nanoseconds()
    return time["Encode"] / (time["Copy"] + time["PlainXor"]), {
        f"{name}_us": round(time[name] / 1000, 2) for name in ("Encode", "EncodeWithCopy", "Copy", "PlainXor")}
