#!/usr/bin/env bash
# Makes every file of this folder, from the root of the checkout. Goes on where it stopped; about ten minutes on two cores.
set -euo pipefail
here=results/rcp_continuous
bash bash_train.sh --implementation RCP-A --gamename pendulum --exp_name continuous --recording_epoch_interval -1 --resume -- 25 27
runs=(exp_dir/pendulum/continuous/RCP-A/seed_{25,26,27})
.venv/bin/python -m lightning_rl.figures curves $here/pendulum "${runs[@]}" --tag eval/return_mean --bin 20000 \
    --title "RCP-A on Pendulum: evaluation at one command, actions sampled"
.venv/bin/python -m lightning_rl.figures table $here/pendulum-last20.csv "${runs[@]}" --tag eval/return_mean \
    --tag eval_greedy/return_mean --tag eval/command_sensitivity --tag train/entropy
cp "${runs[0]}/config.yaml" $here/pendulum-config-seed_25.yaml
