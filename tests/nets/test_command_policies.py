"""Policies that answer commands louder than they were taught."""

import pytest
import torch

from lightning_rl.functional.distributions import Categorical, Gaussian
from lightning_rl.nets.command import CommandPolicy


class Net(torch.nn.Module):
    """The output is the first number of the command, times 1 and 2."""

    def forward(self, obs, command):
        return command[..., :1] * torch.tensor([1.0, 2.0])


def policy(guidance=0.0, distribution=Categorical):
    return CommandPolicy(Net(), distribution, 2, guidance)


def outputs(policy, command, monkeypatch, *guidance):
    """What the distribution of ``act`` is made from."""
    seen = []

    class Seen(policy.distribution_class):
        def __init__(self, output):
            seen.append(output)
            super().__init__(output)

    monkeypatch.setattr(policy, "distribution_class", Seen)
    policy.act(torch.zeros(len(command), 1), command, torch.zeros(len(command), 2), *guidance)
    return seen[-1].tolist()


def test_guidance_pushes_logits_away_from_those_of_the_usual_command(monkeypatch):
    guided = policy(0.5)
    guided.usual.copy_(torch.tensor([2.0, 0.0]))
    # c = 4: output (4, 8), usual (2, 4): 4 + 0.5 * 2, 8 + 0.5 * 4
    assert outputs(guided, torch.tensor([[4.0]]), monkeypatch) == [[5.0, 10.0]]


def test_a_command_may_have_a_guidance_of_its_own(monkeypatch):
    plain = policy(3.0)
    plain.usual.copy_(torch.tensor([2.0, 0.0]))
    asked, guidance = torch.tensor([[4.0]] * 3), torch.tensor([[0.0], [0.5], [1.0]])
    found = outputs(plain, asked, monkeypatch, guidance)
    assert found == [[4.0, 8.0], [5.0, 10.0], [6.0, 12.0]]


def test_the_usual_return_is_a_line_over_the_horizon():
    fitted = policy()
    horizon = torch.arange(1.0, 9.0)
    luck = torch.tensor([4.0, -4.0]).repeat(4)
    both = torch.stack(
        [torch.cat([3 * horizon + 5 - luck, 3 * horizon + 5 + luck]), horizon.repeat(2)], -1
    )
    fitted.fit_usual(both.reshape(4, 4, 2))
    usual = fitted.usual_command(torch.tensor([[0.0, 2.0], [0.0, 10.0]]))
    torch.testing.assert_close(usual, torch.tensor([[11.0, 2.0], [35.0, 10.0]]))
    single = policy()
    single.fit_usual(torch.tensor([[1.0], [2.0], [6.0]]))
    assert single.usual_command(torch.tensor([[9.0]])).tolist() == [[3.0]]


def test_where_every_step_pays_alike_the_usual_return_is_the_mean():
    fitted = policy()
    horizon = torch.arange(1.0, 9.0)
    fitted.fit_usual(torch.stack([4 * horizon, horizon], dim=-1))
    assert fitted.usual_command(torch.tensor([[0.0, 2.0]])).tolist() == [[18.0, 2.0]]


def test_what_is_learned_from_knows_no_guidance():
    obs, command, action = (
        torch.zeros(3, 1),
        torch.tensor([[1.0], [2.0], [3.0]]),
        torch.tensor([0, 1, 0]),
    )
    guided = policy(2.0)
    guided.usual.copy_(torch.tensor([1.0, 0.0]))
    assert torch.equal(
        guided.executed_log_prob(obs, command, action),
        policy().executed_log_prob(obs, command, action),
    )


def test_normal_distributions_are_pushed_by_their_means():
    output, usual = torch.tensor([[0.2, -0.1, 0.5, 0.25]]), torch.tensor([[0.1, 0.1, 9.0, 9.0]])
    guided = Gaussian.guided(output, usual, torch.tensor(2.0))
    torch.testing.assert_close(guided, torch.tensor([[0.4, -0.5, 0.5, 0.25]]))
    # with one standard deviation it is p(a|c)^(1+w) / p(a|usual)^w: its log density differs from
    # that by a constant
    same = torch.cat([usual[:, :2], output[:, 2:]], dim=-1)
    free = [
        torch.distributions.Normal(x[:, :2], output[:, 2:].exp()) for x in (output, same, guided)
    ]
    actions = torch.tensor([[0.0, 0.0], [1.0, -1.0], [0.3, 2.0]])
    product = sum(
        w * each.log_prob(actions).sum(-1) for w, each in zip((3.0, -2.0), free[:2], strict=True)
    )
    difference = product - free[2].log_prob(actions).sum(-1)
    assert difference.max() - difference.min() == pytest.approx(0.0, abs=1e-4)
