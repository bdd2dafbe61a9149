#!/usr/bin/env bash
# Makes every figure and CSV of this folder, from the root of the checkout, one run after another on one core.
# It may be stopped and started again; `run.sh tuned` and `run.sh exact` make the parts.
set -euo pipefail
here=results/policy_gradient
python=${PYTHON:-.venv/bin/python}
methods=(AAC REINFORCE-combined REINFORCE-baseline REINFORCE-entropy REINFORCE)
export OMP_NUM_THREADS=1

part() { # preset, title, further flags of the figure -- seeds
    local preset=$1 title=$2 flags=() runs=()
    shift 2
    while [[ $1 != -- ]]; do flags+=("$1"); shift; done
    shift
    for method in "${methods[@]}"; do
        for seed in "$@"; do
            $python trainer.py --implementation "$method" --preset "$preset" --gamename beresheet --exp_name "$preset" \
                --seed "$seed" --num_workers 0 --resume
            runs+=("exp_dir/beresheet/$preset/$method/seed_$seed")
        done
    done
    $python -m lightning_rl.figures policy-gradient "$here/$preset" "${runs[@]}" --title "$title" --every 50 ${flags[@]+"${flags[@]}"} \
        | tee "$here/$preset.txt"
}

[[ ${1:-tuned} != tuned ]] || part tuned "Beresheet, tuned presets" -- 25 26 27 28 29
[[ ${1:-exact} != exact ]] || part exact "Beresheet, the assignment's hyper-parameters; dashed: published" \
    --reference $here/reference_published.csv -- 25 26 27
