"""Wrong formulas in ``nets/``."""

from mutations.mutation import area

MUTATIONS = [
    *area(
        "nets/noisy_command.py", "methods/upside_down/test_rcp.py::test_the_earlier_rcp_r_asks_for_the_best_return_of_the_newest_twenty_episodes "
        "methods/upside_down/test_rcp.py::test_the_earlier_rcp_a_asks_for_the_highest_advantage_of_a_minibatch_with_the_sd_of_that_one "
        "methods/upside_down/test_rcp.py::test_a_command_can_be_drawn_anew_at_every_step",
        ("(command + sd * noise[..., -1:])", "(command + sd * noise[..., :1])"),
        (" * noise[..., -1:]).clamp(low, high)", " * noise[..., -1:])"),
    ),
    *area(
        "nets/command.py", "nets/test_command_policies.py",
        ("self.net(obs, self.usual_command(command))", "self.net(obs, command * 0)"),
        ("(spread * first).mean() /", "first.mean() /"),
        ("unexplained.var(correction=0) < 0.01", "unexplained.var(correction=0) < 0.0"),
        ("self.guidance if guidance is None else guidance", "self.guidance"),
    ),
    *area(
        "nets/compiling.py", "nets/test_layers.py",
        ("in (nn.Linear, nn.ReLU, nn.ModuleList,", "in (nn.Linear, nn.ReLU, nn.Tanh, nn.ModuleList,"),
        (('(\n'
'            module._forward_hooks\n'
'            or module._forward_pre_hooks\n'
'            or module._backward_hooks\n'
'            or module._backward_pre_hooks\n'
'        )'), 'module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks'),
        ("parameter._backward_hooks or parameter._post", "parameter._post"),
    ),
    *area(
        "nets/layers.py", "methods/upside_down/test_updates_of_rcp.py",
        ("torch._foreach_lerp_(*self._parameters, self.tau)", "torch._foreach_lerp_(*self._parameters, 1 - self.tau)"),
    ),
    *area(
        "nets/layers.py", "methods/upside_down/test_mixes.py",
        ("own.copy_(learned)", "pass"),
        ("module.training = False", "pass"),
        ("module.training = True", "pass"),
    ),
    *area(
        "nets/policies.py", "methods/upside_down/test_updates_of_rcp.py methods/upside_down/test_updates_of_udrl.py",
        ("-(weight * log_prob).mean()", "-log_prob.mean()"),
        ("-log_prob.mean() if weight", "-log_prob.sum() if weight"),
    ),
    *area(
        "nets/fused.py", "nets/test_fused.py",
        ("gates[k] * (F(1) - gates[k] * inverse)", "gates[k] * (F(1) - gates[k])"),
        ("active = net.ungated[rows].reshape(-1)", "pass"),
        ("        grad[k] *= gates[k]\n", ""),
        ("row[k] *= gate[k]", "pass"),
        ("if layer <= net.num_gated", "if layer < net.num_gated"),
        ("grad[k] *= F(1) - active[k] * active[k]", "grad[k] *= F(1) - active[k]"),
        ("if x > _TANH_IS_ONE:", "if False:"),
        ("np.sqrt(np.dot(gradient, gradient)) + 1e-6", "np.sqrt(np.dot(gradient, gradient) + 1)"),
        ("if factor < 1:", "if True:"),
        ("1 - learner.beta2**step", "1 - learner.beta2"),
        ("average[d] += share * (params[d]", "average[d] += (params[d]"),
    ),
    *area(
        "nets/fused_acting.py", "nets/test_acting.py",
        ("output[a, k] + noise[k, a] >", "output[a, k] >"),
        ("if not guidance.any()", "if True"),
        ("actor.usual[1] * horizon", "horizon"),
        ("(command[k, i] - actor.shift[i])", "command[k, i]"),
        ("min(max(scaled, -actor.limit), actor.limit)", "scaled"),
        ("tanh(output[a, k])", "output[a, k]"),
        ("min(max(output[size + a, k], LOG_STD_MIN), LOG_STD_MAX)", "output[size + a, k]"),
        ("if guided is None:", "if True:"),
    ),
    *area(
        "nets/flat.py", "nets/test_fused.py",
        ("weight.copy_(rows[:-1].T)", "weight.copy_(rows[1:].T)"),
        ('state["step"] += updates', "pass"),
        ('write_back(self.learner.exp_avg_sq, self._moments("exp_avg_sq"))', "pass"),
        ("write_back(self.learner.average, self._average)", "pass"),
    ),
    *area(
        "nets/fused_losses.py", "nets/test_fused.py",
        ("            top = max(top, logits[a, k])\n        total", "            pass\n        total"),
        ("weight[k] / F(batch)\n        loss -=", "weight[k]\n        loss -="),
        ("if free == log_std else F(0)", ""),
        ("(F(1) - mean * mean)\n            grad[size", "F(1)\n            grad[size"),
        ("loss, twice = F(0), F(2 / batch)", "loss, twice = F(0), F(1 / batch)"),
    ),
    *area(
        "nets/command.py", "nets/test_command.py lab/test_obedience.py::test_between_two_entries_of_the_table_lies_a_line_but_not_between_two_guidances",
        ("(low, high) if low < high else", "(low, high) if low <= high else"),
        ("            buffer.zero_()", "            pass"),
        ("(table - asked.unsqueeze(-1)).abs().argmin(-1)", "(table - asked.unsqueeze(-1)).argmax(-1)"),
        ("alike & (away <= 0)", "away <= 0"),
        ("asked.clamp(lowest, highest)", "asked"),
        ("parameter.mul_(output_scale)", "pass"),
        ("(self.gate(command) * self.gate_scale)", "self.gate(command)"),
    ),
    *area(
        "nets/gaussian_latent.py", "functional/test_world_model.py",
        ("return 2 * half, half * (1 - half)", "return 2 * half, 2 * half * (1 - half)"),
    ),
    *area(
        "nets/masked.py", "methods/test_action_masks.py",
        ("(obs[..., -output.shape[-1] :] < 0.5, LOWEST)", "(obs[..., : output.shape[-1]] < 0.5, LOWEST)"),
        ("output.shape[-1] :] < 0.5, LOWEST)", "output.shape[-1] :] > 0.5, LOWEST)"),
        ("possible.cumsum(-1) > number.unsqueeze(-1)", "possible.cumsum(-1) >= number.unsqueeze(-1)"),
        ("noise[..., 1] * possible.sum(-1)", "noise[..., 1] * q.shape[-1]"),
        ("return masked(self.net(params, obs), obs)", "return self.net(params, obs)"),
    ),
]  # fmt: skip
