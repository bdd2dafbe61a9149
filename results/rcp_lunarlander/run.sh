#!/usr/bin/env bash
# Makes every file of this folder, from the root of the checkout: seeds 25 - 29, RCP-A to 1M and RCP-R to 4M steps.
# Goes on where it stopped. RCP-R's five runs took 25 minutes side by side on four virtual cores.
set -euo pipefail
here=results/rcp_lunarlander
python=.venv/bin/python
for method in RCP-A RCP-R; do
    bash bash_train.sh --implementation $method --gamename lunarlander --exp_name results --resume -- 25 29
    runs=(exp_dir/lunarlander/results/$method/seed_{25,26,27,28,29})
    $python -m lightning_rl.lab.figures curves $here/$method "${runs[@]}" --tag eval/return_mean --bin 50000 \
        --title "$method on LunarLander: evaluation at one command, actions sampled" \
        --reference "$here/reference_paper_$method.csv:paper, mean of 5 seeds" \
        --reference "$here/reference_awr.csv:AWR, mean of 10 published runs"
    $python -m lightning_rl.lab.figures table $here/$method-last20.csv "${runs[@]}" --tag eval/return_mean \
        --tag eval_greedy/return_mean --tag eval/command_sensitivity --tag train/explained_variance --tag train/entropy \
        --tag eval/length_mean
    for seed in 25 26 27 28 29; do
        run=exp_dir/lunarlander/results/$method/seed_$seed
        $python trainer.py --eval_agent $run/last.ckpt --eval_command sweep
        cp $run/sweep.csv $here/$method-sweep-seed_$seed.csv
        cp $run/config.yaml $here/$method-config-seed_$seed.yaml
    done
    cp exp_dir/lunarlander/results/$method/seed_26/sweep.png $here/$method-sweep.png
done
