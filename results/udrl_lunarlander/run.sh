#!/usr/bin/env bash
# Makes every file of this folder, from the root of the checkout; about an hour on two cores.
set -euo pipefail
here=results/udrl_lunarlander
for task in lunarlander lunarlander-sparse; do
    bash bash_train.sh --implementation UDRL --gamename $task --exp_name paper --max_epochs 100000 \
        --set max_env_steps=5000000 --set eval_interval=50 -- 25 27
done
for name in dense sparse; do
    task=lunarlander
    [[ $name == dense ]] || task=lunarlander-sparse
    .venv/bin/python -m lightning_rl.lab.figures curves $here/$name exp_dir/$task/paper/UDRL/seed_{25,26,27} --bin 100000 \
        --legend "lower right" \
        --title "UDRL, $task: training return, actions sampled" \
        --reference "$here/reference_paper_$name.csv:paper, mean of 20 seeds" \
        --reference "$here/reference_earlier_$name.csv:earlier implementation, mean of 5 seeds"
done
