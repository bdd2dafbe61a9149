#!/usr/bin/env bash
# Makes every file of this folder, from the root of the checkout. Goes on where it stopped. Took about an hour on
# four virtual cores, beside other runs.
set -euo pipefail
here=results/rcp_continuous
train() {
    bash bash_train.sh --implementation RCP-A --exp_name continuous --recording_epoch_interval -1 --resume "$@"
}
figures() {  # GAMENAME BIN TITLE
    local runs=(exp_dir/$1/continuous/RCP-A/seed_*)
    .venv/bin/python -m lightning_rl.lab.figures curves $here/$1 "${runs[@]}" --tag eval/return_mean --bin $2 \
        --title "RCP-A on $3: evaluation at one command, actions sampled"
    .venv/bin/python -m lightning_rl.lab.figures table $here/$1-last20.csv "${runs[@]}" --tag eval/return_mean \
        --tag eval_greedy/return_mean --tag eval/command_sensitivity --tag train/entropy --tag eval/length_mean
    cp "${runs[0]}/config.yaml" $here/$1-config-seed_25.yaml
}
train --gamename pendulum -- 25 27
train --gamename lunarlander-continuous -- 25 27
train --gamename halfcheetah --max_epochs 489 -- 25 27  # 1.5M steps of a schedule for 3M
figures pendulum 20000 Pendulum
figures lunarlander-continuous 50000 LunarLanderContinuous
figures halfcheetah 50000 HalfCheetah
for game in lunarlander-continuous halfcheetah; do
    run=exp_dir/$game/continuous/RCP-A/seed_25
    .venv/bin/python trainer.py --eval_agent $run/last.ckpt --eval_command sweep --eval_episodes 20
    cp $run/sweep.csv $here/$game-sweep-seed_25.csv
done
cp exp_dir/lunarlander-continuous/continuous/RCP-A/seed_25/sweep.png $here/lunarlander-continuous-sweep.png
