#!/usr/bin/env bash
# From the earlier implementation's RCP-A to ours, one change at a time, seeds 25 - 27, 1M steps. The default's own runs are those of
# results/rcp_lunarlander/run.sh. From the root of the checkout; goes on where it stopped. Took two hours and 20 minutes on four
# virtual cores, beside other runs.
set -euo pipefail
here=results/rcp_ablation
earlier=(original august original-lambda original-standardised original-tilted original-critic)
ours=(unweighted unconditioned)
train() {  # STEPS_PER_EPOCH PRESET...
    local per_epoch=$1 preset
    shift
    for preset; do
        bash bash_train.sh --implementation RCP-A --gamename lunarlander --exp_name ablation-$preset --preset $preset \
            --max_epochs $((1000000 / per_epoch)) --set eval_interval=10 --recording_epoch_interval -1 --resume -- 25 27
    done
}
train 4000 "${earlier[@]}"
train 2048 "${ours[@]}"
table() {  # NAME LAST PRESET...: a run's last evaluations, which cover 0.2M steps
    local out=$here/$1.csv last=$2
    shift 2
    .venv/bin/python -m lightning_rl.lab.figures table "$out" "${@/#/exp_dir/lunarlander/ablation-}" --last "$last" --tag eval/return_mean \
        --tag eval_greedy/return_mean --tag eval/command_sensitivity --tag train/explained_variance --tag train/entropy
}
table earlier 5 "${earlier[@]}"
table ours 10 "${ours[@]}"
.venv/bin/python -m lightning_rl.lab.figures curves $here/curves results/rcp_lunarlander/RCP-A.csv:default \
    exp_dir/lunarlander/ablation-{unconditioned,unweighted,original-critic,original-lambda,original} --tag eval/return_mean --bin 50000 \
    --title "RCP-A on LunarLander, one change at a time: evaluation at one command, actions sampled"
