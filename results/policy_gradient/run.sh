#!/usr/bin/env bash
# Makes every figure and CSV of this folder, from the root of the checkout, one run after another on one core.
# It may be stopped and started again; `run.sh tuned`, `run.sh exact` and `run.sh stale` make the parts.
set -euo pipefail
here=results/policy_gradient
python=${PYTHON:-.venv/bin/python}
all=(AAC REINFORCE-combined REINFORCE-baseline REINFORCE-entropy REINFORCE)
export OMP_NUM_THREADS=1

part() { # name, preset, methods, seeds, whether batches are stale, title, further flags of the figure
    local name=$1 preset=$2 methods=$3 seeds=$4 stale=$5 title=$6 runs=()
    shift 6
    for method in $methods; do
        for seed in $seeds; do
            $python trainer.py --implementation "$method" --preset "$preset" --gamename beresheet --exp_name "$name" \
                --set stale_rollouts="$stale" --seed "$seed" --num_workers 0 --resume
            runs+=("exp_dir/beresheet/$name/$method/seed_$seed")
        done
    done
    $python -m lightning_rl.lab.figures policy-gradient "$here/$name" "${runs[@]}" --title "$title" --every 50 "$@" | tee "$here/$name.txt"
}

published=(--reference $here/reference_published.csv)
[[ ${1:-tuned} != tuned ]] || part tuned tuned "${all[*]}" "25 26 27 28 29" false "Beresheet, tuned presets"
[[ ${1:-exact} != exact ]] || part exact exact "${all[*]}" "25 26 27" false \
    "Beresheet, the assignment's hyper-parameters; dashed: published" "${published[@]}"
[[ ${1:-stale} != stale ]] || part stale exact "REINFORCE REINFORCE-entropy REINFORCE-combined" "25 26 27" true \
    "Beresheet, the assignment's hyper-parameters on stale batches (three updates old); dashed: published" "${published[@]}"
