"""Wrong formulas in ``evolution/``."""

from mutations.mutation import area

MUTATIONS = [
    *area(
        "evolution/strategies.py", "evolution/test_steps.py evolution/test_strategies.py methods/test_inner_seeds.py",
        ("i.sign * std * noise", "std * noise"),
        ('"inner agent", self.generation, item.agent', '"inner agent", 0, item.agent'),
        ('"inner agent", self.generation, item.agent)', '"inner agent", self.generation, 0)'),
    ),
    *area(
        "evolution/strategies.py", "evolution/test_steps.py evolution/test_strategies.py methods/test_inner_seeds.py",
        ("cfg.center_agents + k if cfg.shared_agents", "cfg.center_agents if cfg.shared_agents"),
        ("for k in range(cfg.num_grad_evals)", "for k in range(1)"),
        ("grouped.mean(-1)", "grouped.amin(-1)"),
        ('cfg.keep == "last" or baseline > float(', 'cfg.keep == "last" or baseline >= float('),
        ('cfg.keep == "last" or baseline > float(', "baseline > float("),
        ("self.best_score.fill_(baseline)", "self.best_score.fill_(float(candidates.max()))"),
        ("self.cfg.noise_std * self.cfg.noise_decay**generation", "self.cfg.noise_std * self.cfg.noise_decay"),
        ("self.noise_std(generation) * self.evolved.float()", "self.cfg.noise_std * self.evolved.float()"),
        ("self.noise(generation) * self.noise_std(generation)", "self.noise(generation) * self.cfg.noise_std"),
        ("signed = signed * sign.to(signed.dtype).unsqueeze(1)", "pass"),
        ("self.cfg.step_decay**generation", "self.cfg.step_decay"),
    ),
    *area(
        "evolution/variants.py", "evolution/test_steps.py evolution/test_strategies.py methods/test_inner_seeds.py",
        (('\n'
'            plus, minus, self.noise(generation), self.noise_std(generation)\n'
'        '), 'plus, minus, self.noise(generation), self.cfg.noise_std'),
        ("self.mean.grad, self.log_std.grad = -mean, -log_std * self.evolved", "self.mean.grad, self.log_std.grad = -mean, -0 * log_std"),
        ("self.mean.grad, self.log_std.grad = -mean,", "self.mean.grad, self.log_std.grad = mean,"),
        ("torch.cat([sign * drawn for sign in self.cfg.signs])", "torch.cat([drawn for sign in self.cfg.signs])"),
        ("es.snes_std_rate(int(self.evolved.sum()))", "es.snes_std_rate(len(self.evolved))"),
        ('x, -score', 'x, score'),
        ('"evolution noise", generation, 0)', '"evolution noise", 0, 0)'),
    ),
    *area(
        "evolution/executors.py", "evolution/test_executors.py::test_shards_come_back_in_order",
        ("parts[i % len(parts)][i // len(parts)]", "parts[i // len(parts) % len(parts)][i % len(parts) % len(parts[-1])]"),
        ("range(min(count, len(items)))", "range(count)"),
    ),
    *area(
        "evolution/strategies.py", "methods/test_inner_seeds.py",
        ("if cfg.shared_agents else len(items)", "if cfg.shared_agents else cfg.center_agents + k"),
        ("if cfg.shared_agents else len(items)", "if cfg.shared_agents else len(items) - cfg.center_agents"),
    ),
    *area(
        "evolution/executors.py", "evolution/test_executors.py::test_processes_give_the_same_outcomes",
        ("            self._pool = None", "            pass"),
        ("self.processes = max(processes, 1)", "self.processes = processes"),
    ),
]  # fmt: skip
