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
        ("self.guidance if guidance is None else guidance", "self.guidance"),
    ),
    *area(
        "nets/layers.py", "nets/test_layers.py",
        ("active.append(x.clone())", "active.append(x)"),
        ("value=-1 / self.gate_scale", "value=-1"),
        ("grad *= factors[number]", "pass"),
        ("if layer.weight.requires_grad", "if True"),
        ("in (nn.Linear, nn.ReLU, nn.ModuleList)", "in (nn.Linear, nn.ReLU, nn.Tanh, nn.ModuleList)"),
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
        "nets/policies.py", "nets/test_layers.py",
        ("pullback(score * -weight.unsqueeze(-1))", "pullback(score * weight.unsqueeze(-1))"),
        ("torch.full_like(obs[:, 0], 1 / len(obs))", "torch.ones_like(obs[:, 0])"),
    ),
    *area(
        "nets/command.py", "nets/test_command.py lab/test_obedience.py::test_between_two_entries_of_the_table_lies_a_line_but_not_between_two_guidances",
        ("(low, high) if low < high else", "(low, high) if low <= high else"),
        ("            buffer.zero_()", "            pass"),
        ("np.abs(table - asked).argmin()", "min(np.searchsorted(table, asked), len(table) - 1)"),
        ("parameter.mul_(output_scale)", "pass"),
        ("(self.gate(command) * self.gate_scale)", "self.gate(command)"),
    ),
    *area(
        "nets/gaussian_latent.py", "functional/test_world_model.py",
        ("return 2 * half, half * (1 - half)", "return 2 * half, 2 * half * (1 - half)"),
    ),
]  # fmt: skip
