#!/usr/bin/env bash
# Makes what is here: the search, then every trial's settings again in one process. From the root of the repository, with '.[bohb]'.
set -euo pipefail
here=results/search_three_levels
logdir=${1:-exp_dir}

python trainer.py --implementation SE --gamename emptyroom22 --exp_name three --logdir "$logdir" --executor ray --num_workers 2 \
    --use_tune --tune algorithm=bohb --tune trials=16 --tune seeds=2 --tune "budget={max_epochs: 18}" --tune reports=9
cp "$logdir"/emptyroom22/three/SE/tune/{best.yaml,trials.csv,search.csv,search.png,search.svg} "$here"

python - "$logdir" "$here/serial.csv" <<'PYTHON'
import csv
import sys
from pathlib import Path

import yaml

from lightning_rl.run.train import RunOptions
from lightning_rl.lab.tuning.space import load_tune_config
from lightning_rl.lab.tuning.trial import Plan, read_reports, run_trial

logdir, out = map(Path, sys.argv[1:])
tune = {"algorithm": "bohb", "seeds": 2, "budget": {"max_epochs": 18}, "reports": 9}
options = RunOptions("SE", "emptyroom22", exp_name="serial", logdir=logdir, num_workers=0)
plan = Plan(options, load_tune_config("SE", "emptyroom22", tune))
rows = []
for reports in sorted((logdir / "emptyroom22/three/SE/tune").glob("*/reports.csv")):
    trial = reports.parent
    again = run_trial(plan, trial.name, yaml.safe_load((trial / "settings.yaml").read_text()))
    there = read_reports(trial)
    for _ in there:
        next(again)
    for ray, serial in zip(there, read_reports(plan.trial_folder(trial.name)), strict=True):
        seeds = ray["seed_scores"], serial["seed_scores"]
        rows.append([trial.name, ray["budget"], ray["score"], serial["score"], *seeds])
with out.open("w", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["trial", "max_epochs", "score_ray", "score_serial", "seed_scores_ray", "seed_scores_serial"])
    writer.writerows(rows)
print("the same" if all(row[2] == row[3] and row[4] == row[5] for row in rows) else "different", len(rows), "scores")
PYTHON
