#!/usr/bin/env bash
# Makes everything in this folder, from the root of the repository; hours on one core.
set -euo pipefail
export OMP_NUM_THREADS=1
for seed in 1 2 3 4 5; do
    python trainer.py --implementation SE --gamename cartpole-v0 --preset bandit --exp_name bandit --seed "$seed" --num_workers 0 --resume
    cp "exp_dir/cartpole-v0/bandit/SE/seed_$seed/config.yaml" "results/proxies/config_cartpole_$seed.yaml"
done
proxies=(SE-CartPole-v0 SE-CartPole-{2,3,4,5}-v0)
evaluate="python -m lightning_rl evaluate"
figures="python -m lightning_rl figures"
$evaluate transfer results/proxies/transfer_fixed.csv "${proxies[@]}" --agents DDQN DuelingDDQN TD3-discrete PPO --count 10 --real 10 \
    --hyperparameters fixed --steps 600 --set "hidden=[32]" --set batch_size=50 --set learning_rate=3.0e-3 --set tau=0.05 \
    --set epsilon_decay=0.99 --set activation=tanh
$figures proxy-transfer results/proxies/transfer_fixed_hyperparameters results/proxies/transfer_fixed.csv \
    --title "Five synthetic CartPoles: agents of one set of hyper-parameters, 600 steps, tested on the real CartPole-v0"
$evaluate transitions results/proxies/transitions.csv SE-CartPole-v0 --count 10 --steps 1000 --set epsilon_decay=0.99
$figures proxy-histograms results/proxies/histograms results/proxies/transitions.csv
$evaluate generations results/proxies/rooms.csv --gamename emptyroom22 --runs 20
$figures proxy-success results/proxies/success results/proxies/rooms.csv results/proxies/curves_cartpole.csv:SE \
    --title "Searches for synthetic environments"
python benchmarks/bench_bilevel.py --steps 1000
