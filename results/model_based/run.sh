#!/usr/bin/env bash
# The runs behind this folder, in the order of their worth; each goes on where it stopped (--resume).
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=1
three() { python trainer.py --num_workers 0 --resume --seed 1 --num_seeds 3 --set group_size=3 --implementation "$@"; }

# PanFlute with 5 pipes: all five agents; the simple model also with the paper's rule for bits
for agent in ER perfect-model simple-model gaussian-latent categorical-latent; do
    three "$agent" --gamename panflute-5 --set max_env_steps=6000
done
three simple-model --gamename panflute-5 --exp_name logit-bits --set max_env_steps=6000 --set "faithful=[logit-bits]"

# PanFlute with 8 pipes: tuned step sizes and temperatures of the configs
for agent in simple-model ER perfect-model; do
    three "$agent" --gamename panflute-8 --set max_env_steps=24000
done

# the low-data regime: ten updates a step
for agent in simple-model ER perfect-model gaussian-latent categorical-latent; do
    three "$agent" --gamename panflute-5 --exp_name low-data --preset low-data --set max_env_steps=1500
done
three ER --gamename panflute-5 --exp_name low-data-1e-4 --preset low-data --set max_env_steps=1500 --set learning_rate=1e-4 --set temperature=0.1

# ProcMaze with 3 x 3 cells, values of the measured reference; replay also with the stale observation of the paper's code
same=(--set learning_rate=2e-4 --set temperature=0.4)
for agent in simple-model gaussian-latent categorical-latent; do three "$agent" --gamename procmaze-3 --set max_env_steps=12000; done
for agent in perfect-model ER; do
    three "$agent" --gamename procmaze-3 --set max_env_steps=12000 "${same[@]}"
done
three ER --gamename procmaze-3 --exp_name faithful --set max_env_steps=12000 "${same[@]}" --set "faithful=[stale-observation]"

# ButtonGrid with 3 x 3 cells and 3 buttons
for agent in perfect-model simple-model ER gaussian-latent categorical-latent; do
    three "$agent" --gamename buttongrid-3 --set max_env_steps=10000
done

out=results/model_based
compare() { python -m lightning_rl.lab.figures generalisation "$@"; }
compare $out/panflute5 exp_dir/panflute-5/default --bin 500 --title "PanFlute, 5 pipes" \
    --line "22.2:always the right order" --line "4:random policy"
compare $out/panflute5_bits exp_dir/panflute-5/{default,logit-bits}/simple-model --bin 500 --title "PanFlute, 5 pipes: bits by probability (default) or by logit" \
    --line "22.2:always the right order" --line "4:random policy"
compare $out/panflute8 exp_dir/panflute-8/default --bin 2000 --title "PanFlute, 8 pipes" \
    --line "13.3:always the right order" --line "1.6:random policy"
compare $out/lowdata exp_dir/panflute-5/low-data{,-1e-4} --bin 100 --title "PanFlute, 5 pipes: low-data regime" \
    --line "22.2:always the right order" --line "4:random policy"
compare $out/procmaze3 exp_dir/procmaze-3/default --bin 1000 --title "ProcMaze, 3 x 3" --line=-3:optimum
compare $out/buttongrid3 exp_dir/buttongrid-3/default --bin 1000 --title "ButtonGrid, 3 x 3, 3 buttons" --line "17.5:optimum" --line "2.1:random policy"
python trainer.py --eval_agent exp_dir/panflute-8/default/simple-model/seed_1/last.ckpt --imagine
for agent in ER simple-model; do # peak memory of thirty seeds
    /usr/bin/time -f "$agent: %M kB" python trainer.py --num_workers 0 --implementation $agent --gamename procmaze --exp_name memory \
        --num_seeds 30 --set max_env_steps=200 --set steps_per_epoch=100 --set learning_starts=100
done
