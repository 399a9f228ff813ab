# Shared by the scripts: where things are.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
export PYTHONPATH="$ROOT/tools${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONDONTWRITEBYTECODE=1
export PATH="$PATH:/usr/sbin:/sbin"

# build PRESET [TARGET...]: configures and builds, two jobs at a time unless BRAID_JOBS says otherwise.
build() {
  local preset=$1
  shift
  cmake --preset "$preset" >&2
  cmake --build --preset "$preset" -j "${BRAID_JOBS:-$(nproc)}" ${1:+--target "$@"} >&2
}
