#!/usr/bin/env bash
# The runs behind this folder, in the order of their worth; each goes on where it stopped (--resume).
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=1
go() { python trainer.py --num_workers 0 --resume "$@"; }

# PanFlute with 8 pipes: tuned step sizes and temperatures of the configs
go --implementation simple-model --gamename panflute-8 --seed 1 --num_seeds 3 --set max_env_steps=24000
go --implementation ER --gamename panflute-8 --seed 1 --num_seeds 3 --set max_env_steps=24000
go --implementation perfect-model --gamename panflute-8 --seed 1 --num_seeds 3 --set max_env_steps=24000 --set group_size=3

# ProcMaze with 3 x 3 cells, replay: without and with the stale observation of the paper's code
small=(--implementation ER --gamename procmaze-3 --seed 1 --num_seeds 2 --set max_env_steps=16000 --set learning_rate=2e-4 --set temperature=0.4)
go "${small[@]}" --exp_name fixed
go "${small[@]}" --exp_name faithful --set "faithful=[stale-observation]"

out=results/model_based
python -m lightning_rl.figures generalisation $out/panflute8 exp_dir/panflute-8/default --bin 2000 \
    --line "13.3:always the right order" --line "1.6:random policy" --title "PanFlute, 8 pipes"
python -m lightning_rl.figures curves $out/procmaze3_ER exp_dir/procmaze-3 --tag eval_greedy/return_mean --group exp_name --bin 1000
python trainer.py --eval_agent exp_dir/panflute-8/default/simple-model/seed_1/last.ckpt --imagine
python benchmarks/bench_model_based.py > $out/bench.txt
