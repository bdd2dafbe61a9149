#!/usr/bin/env bash
# Trains a range of seeds in parallel with GNU parallel, one process on one core for each seed:
#   bash bash_train.sh --implementation UDRL --gamename lunarlander --exp_name paper -- 25 29
# Flags before -- are given to trainer.py; after it stand the first and the last seed. Environment variables: JOBS is how many
# seeds run at once (default: one per core), PYTHON the interpreter (default: that of .venv).
set -euo pipefail

fail() {
    echo "error: $1" >&2
    exit 2
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
flags=()
while (($#)) && [[ $1 != -- ]]; do
    flags+=("$1")
    shift
done
[[ ${1:-} == -- && $# -eq 3 ]] || fail "expected FLAGS -- FIRST_SEED LAST_SEED, e.g. --gamename lunarlander -- 25 29"
first=$2 last=$3
[[ $first =~ ^[0-9]+$ && $last =~ ^[0-9]+$ ]] || fail "seeds '$first' '$last' are not whole numbers, e.g. -- 25 29"
first=$((10#$first)) last=$((10#$last)) # 08 is no octal number
((first <= last)) || fail "first seed $first is above last seed $last; swap them"
for flag in ${flags[@]+"${flags[@]}"}; do
    [[ $flag != --seed* ]] || fail "--seed is set for each run; give the range after --"
    [[ $flag != --use_tune && $flag != --eval_agent* ]] || fail "${flag%%=*} trains no range of seeds; use trainer.py alone"
    [[ $flag != --num_seeds* ]] || fail "--num_seeds: here each seed is a run of its own; leave it out, or use trainer.py alone"
done
jobs=${JOBS:-$(nproc 2>/dev/null || sysctl -n hw.ncpu)}
[[ $jobs =~ ^[1-9][0-9]*%?$ ]] || fail "JOBS=$jobs is no number of runs from 1 on, e.g. JOBS=2 or JOBS=50%"
command -v parallel >/dev/null || fail "GNU parallel is not installed; install it with: sudo apt-get install parallel"

python=${PYTHON:-$here/.venv/bin/python}
[[ -x $(command -v "$python") ]] || fail "'$python' is not there; run 'make train' once, or set PYTHON"

# One thread per process: else N processes would start N threads each on N cores.
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
workers=(--num_workers 0)
for flag in ${flags[@]+"${flags[@]}"}; do
    [[ $flag != --num_workers* ]] || workers=()
done
# Ctrl-C reaches only parallel, which sends SIGTERM to the seeds. They leave within ten seconds. Meanwhile parallel ignores a
# second Ctrl-C, but not a SIGTERM.
exec parallel --quote --line-buffer --halt soon,fail=100% --termseq TERM,15000,KILL,25 --jobs "$jobs" \
    "$python" "$here/trainer.py" ${flags[@]+"${flags[@]}"} ${workers[@]+"${workers[@]}"} --seed {} \
    ::: $(seq "$first" "$last")
