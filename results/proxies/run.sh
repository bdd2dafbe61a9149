#!/usr/bin/env bash
# Makes everything in this folder, from the root of the repository; hours on one core.
set -euo pipefail
export OMP_NUM_THREADS=1
for seed in 1 2 3 4 5; do
    python trainer.py --implementation SE --gamename cartpole-v0 --preset bandit --exp_name bandit --seed "$seed" --num_workers 0 --resume
    cp "exp_dir/cartpole-v0/bandit/SE/seed_$seed/config.yaml" "results/proxies/config_cartpole_$seed.yaml"
done
proxies=(lightning_rl/proxies/SE-CartPole-v0.pt lightning_rl/proxies/SE-CartPole-{2,3,4,5}-v0.pt)
python benchmarks/transfer_proxies.py results/proxies/transfer.csv "${proxies[@]}" --agents DDQN --steps 1000 --count 5 --epsilon_decay 0.99
python benchmarks/evolve_rooms.py results/proxies/rooms.csv
python benchmarks/bench_bilevel.py --steps 1000
