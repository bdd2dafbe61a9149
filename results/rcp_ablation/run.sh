#!/usr/bin/env bash
# From the earlier implementation's RCP-A to ours, one change at a time: seeds 25 - 27, 0.5M steps each.
# From the root of the checkout; goes on where it stopped. About two hours on two cores.
set -euo pipefail
here=results/rcp_ablation
runs=()
for preset in august original original-lambda original-standardised original-tilted original-critic default unweighted unconditioned; do
    choice=(--preset $preset)
    [[ $preset == default ]] && choice=()
    bash bash_train.sh --implementation RCP-A --gamename lunarlander --exp_name ablation-$preset "${choice[@]}" \
        --set max_env_steps=500000 --resume -- 25 27
    runs+=(exp_dir/lunarlander/ablation-$preset/RCP-A/seed_{25,26,27})
done
.venv/bin/python -m lightning_rl.figures table $here/table.csv "${runs[@]}" --last 5 --tag eval/return_mean \
    --tag eval_greedy/return_mean --tag eval/command_sensitivity --tag train/explained_variance --tag train/entropy
