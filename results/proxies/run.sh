#!/usr/bin/env bash
# Makes everything in this folder, from the root of the repository; hours on one core.
set -euo pipefail
export OMP_NUM_THREADS=1
out=results/proxies
train() { python trainer.py --num_workers 0 --resume "$@"; }

# Synthetic environments: first stage, then agents with drawn hyper-parameters.
proxies=()
generations=(0 8 8 12 14 14)
for seed in 1 2 3 4 5; do
    train --implementation SE --gamename cartpole-v0 --preset bandit --exp_name bandit --seed "$seed"
    start="exp_dir/cartpole-v0/bandit/SE/seed_$seed"
    cp "$start/config.yaml" "$out/config_cartpole_$seed.yaml"
    train --implementation SE --gamename cartpole-v0 --preset bandit-varied --exp_name varied --seed "$seed" \
        --set start="$start/proxy.pt" --max_epochs "${generations[$seed]}"
    cp "exp_dir/cartpole-v0/varied/SE/seed_$seed/config.yaml" "$out/config_cartpole_varied_$seed.yaml"
    [ "$seed" = 1 ] && name=SE-CartPole-v0 || name="SE-CartPole-$seed-v0"
    cp "exp_dir/cartpole-v0/varied/SE/seed_$seed/proxy.pt" "lightning_rl/proxies/$name.pt"
    proxies+=("$name")
done
judge() { python -m lightning_rl proxies "$@"; }
judge transfer $out/transfer.csv "${proxies[@]}" --agents DDQN DuelingDDQN --count 10 --steps 1000 --set epsilon_decay=0.99
judge transfer $out/transfer.csv "${proxies[@]}" --agents TD3-discrete PPO --count 3 --steps 2000
judge transfer $out/transfer.csv "${proxies[@]}" --agents TD3-discrete --count 2 --steps 5000

judge transfer $out/transfer_small.csv "${proxies[@]}" --agents DDQN DuelingDDQN TD3-discrete PPO --count 10 --real 10 \
    --hyperparameters fixed --steps 600 --set "hidden=[32]" --set batch_size=50 --set learning_rate=3.0e-3 --set tau=0.05 \
    --set epsilon_decay=0.99 --set activation=tanh
draw() { python -m lightning_rl figures "$@"; }
draw proxy-transfer $out/transfer_small_agents $out/transfer_small.csv \
    --title "Five synthetic CartPoles: agents of one set of hyper-parameters, 600 steps, tested on the real CartPole-v0"
judge transitions $out/transitions.csv SE-CartPole-v0 --count 10 --steps 1000 --set epsilon_decay=0.99
draw proxy-histograms $out/histograms $out/transitions.csv

for seed in 1 2 3; do
    train --implementation SE --gamename acrobot --preset bandit --exp_name bandit --seed "$seed"
    cp "exp_dir/acrobot/bandit/SE/seed_$seed/config.yaml" "$out/config_acrobot_$seed.yaml"
    [ "$seed" = 1 ] && name=SE-Acrobot-v1 || name="SE-Acrobot-$seed-v1"
    cp "exp_dir/acrobot/bandit/SE/seed_$seed/proxy.pt" "lightning_rl/proxies/$name.pt"
done
judge transfer $out/transfer_acrobot.csv SE-Acrobot-v1 SE-Acrobot-2-v1 SE-Acrobot-3-v1 --agents DDQN --steps 1000 --set epsilon_decay=0.99

# Reward networks.
for seed in 1 2 3; do
    train --implementation RN --gamename cartpole-v0 --preset fixed-budget --exp_name budget --seed "$seed"
    cp "exp_dir/cartpole-v0/budget/RN/seed_$seed/config.yaml" "$out/config_reward_cartpole_$seed.yaml"
    [ "$seed" = 1 ] && name=RN-CartPole-v0 || name="RN-CartPole-$seed-v0"
    cp "exp_dir/cartpole-v0/budget/RN/seed_$seed/proxy.pt" "lightning_rl/proxies/$name.pt"
done
judge reward-curves $out/reward_curves_cartpole.csv RN-CartPole-v0 RN-CartPole-2-v0 RN-CartPole-3-v0 --agents DDQN --real 10 --steps 5000 --points 50
draw reward-curves $out/rewards_learned $out/reward_curves_cartpole.csv --title CartPole-v0
cliff() { train --implementation RN --gamename cliff --seed 1 --set population=32 --set step_size=0.35 --set center_agents=6 "$@"; }
cliff --exp_name first --max_epochs 13
cliff --exp_name second --max_epochs 5 --set start=exp_dir/cliff/first/RN/seed_1/proxy.pt
cp exp_dir/cliff/second/RN/seed_1/proxy.pt lightning_rl/proxies/RN-Cliff-v0.pt
judge reward-curves $out/reward_curves_cliff.csv RN-Cliff-v0 --agents QL --real 10 --steps 2500 --points 50
judge reward-curves $out/reward_curves_cliff.csv RN-Cliff-v0 --agents QL --real 10 --steps 2500 --points 50 --set epsilon_init=0.01 --set epsilon_min=0.01
for game in mountaincar-continuous halfcheetah; do
    train --implementation RN --gamename "$game" --exp_name pipeline --config "$out/config_reward_$game.yaml" --seed 1
done

for seed in 1 2 3; do
    for reward in additive additive_potential; do
        train --implementation RN --gamename cliff --set reward=$reward --exp_name $reward --seed "$seed" --max_epochs 10
    done
done
judge reward-curves $out/cliff_agents.csv exp_dir/cliff/additive exp_dir/cliff/additive_potential --real 10 --curious 10 --steps 2500
judge grid-rewards $out/cliff_cells.csv exp_dir/cliff/additive exp_dir/cliff/additive_potential --real --set train_episodes=200
draw reward-curves $out/cliff_curves $out/cliff_agents.csv --low -105 --title "Agents with learned rewards on the cliff: ten generations of search"
draw grid-rewards $out/cliff_rewards $out/cliff_cells.csv --title "Rewards on the cliff after ten generations of search"

for seed in 1 2; do
    train --implementation MBRL --gamename cartpole-v0 --exp_name mb --seed "$seed" --max_epochs 30 --set learning_rate=3e-3 \
        --set data_agents=4 --set data_steps=8000 --set eval_interval=100
done
judge transfer $out/supervised_agents.csv exp_dir/cartpole-v0/mb --agents DDQN --count 10 --real 10 --hyperparameters fixed \
    --set "hidden=[32]" --set batch_size=50 --set learning_rate=3.0e-3 --set tau=0.05 --set activation=tanh --set train_episodes=60
draw supervised-model $out/supervised exp_dir/cartpole-v0/mb $out/supervised_agents.csv

judge generations $out/rooms.csv --gamename emptyroom22 --runs 20
draw proxy-success $out/success $out/rooms.csv $out/curves_cartpole.csv:SE --title "Searches for synthetic environments"
judge generations $out/step_sizes_runs.csv --gamename emptyroom22 --runs 48 --seed 100 --set max_epochs=20 \
    --draw "step_size={log: [0.03, 5.0]}" --draw "score_transform={choice: [linear, nes_unnormalised, all_better_max, all_better_sum]}"
draw step-sizes $out/step_sizes $out/step_sizes_runs.csv
