#!/usr/bin/env bash
# From the earlier implementation's RCP-A to ours, one change at a time, seeds 25 - 27. `run.sh 300000` stops every run after 0.3M
# steps; schedules stay those of the whole budget. From the root of the checkout; goes on where it stopped.
set -euo pipefail
here=results/rcp_ablation
steps=${1:-1000000}
runs=()
for preset in original original-lambda original-standardised original-tilted original-critic unweighted unconditioned august default; do
    choice=(--preset $preset)
    [[ $preset == default ]] && choice=()
    per_epoch=2048
    case $preset in original* | august) per_epoch=4000 ;; esac
    bash bash_train.sh --implementation RCP-A --gamename lunarlander --exp_name ablation-$preset "${choice[@]}" \
        --max_epochs $((steps / per_epoch)) --set eval_interval=10 --recording_epoch_interval -1 --resume -- 25 27
    runs+=(exp_dir/lunarlander/ablation-$preset/RCP-A/seed_{25,26,27})
done
.venv/bin/python -m lightning_rl.figures table $here/table.csv "${runs[@]}" --last 5 --tag eval/return_mean \
    --tag eval_greedy/return_mean --tag eval/command_sensitivity --tag train/explained_variance --tag train/entropy
