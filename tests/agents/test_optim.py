from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.optim import Adam
from torch.optim.optimizer import register_optimizer_step_post_hook

from lightning_rl.agents.optim import MemberAdam
from lightning_rl.agents.replay import track

N, D = 5, 40


def gradients(steps):
    return (
        torch.randn(steps, N, D, generator=torch.Generator().manual_seed(1))
        * torch.logspace(-3, 2, N)[:, None]
    )


@pytest.mark.parametrize("max_norm", [None, 0.5])
def test_one_stack_equals_n_adams(max_norm):
    """Own learning rates, steps and norms."""
    rates = [1e-4, 3e-4, 1e-3, 1e-2, 0.1]
    start = torch.randn(N, D)
    params = nn.Parameter(start.clone())
    adam = MemberAdam(params, rates, max_grad_norm=max_norm)
    rows = [start[n].clone().requires_grad_() for n in range(N)]
    alone = [torch.optim.Adam([row], lr=rate) for row, rate in zip(rows, rates, strict=True)]
    for step, grad in enumerate(gradients(60)):
        active = torch.tensor([(step + n) % (n + 1) == 0 for n in range(N)])
        params.grad = grad
        adam.step(active=active)
        for n in active.nonzero().flatten().tolist():
            rows[n].grad = grad[n].clone()
            if max_norm is not None:
                torch.nn.utils.clip_grad_norm_([rows[n]], max_norm)
            alone[n].step()
    for n in range(N):
        state = alone[n].state[rows[n]]
        assert adam.num_steps[n] == state["step"]
        torch.testing.assert_close(params.data[n], rows[n].detach(), rtol=2e-6, atol=1e-6)
        torch.testing.assert_close(adam.moments["exp_avg"][n], state["exp_avg"], rtol=1e-5, atol=0)
        torch.testing.assert_close(
            adam.moments["exp_avg_sq"][n], state["exp_avg_sq"], rtol=1e-5, atol=0
        )


def stepped(max_norm=None):
    """Members after a step that all of them took."""
    params = nn.Parameter(torch.randn(N, D))
    adam = MemberAdam(params, 0.1, max_grad_norm=max_norm)
    params.grad = torch.randn(N, D)
    adam.step(active=torch.ones(N, dtype=torch.bool))
    return params, adam, params.detach().clone(), {k: v.clone() for k, v in adam.rows().items()}


@pytest.mark.parametrize("bad", [1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("max_norm", [None, 0.5])
def test_inactive_members_do_not_change_at_all_whatever_their_gradient(bad, max_norm):
    params, adam, before, state = stepped(max_norm)
    active = torch.tensor([True, False, True, False, True])
    params.grad = torch.randn(N, D)
    params.grad[1], params.grad[3, 0] = bad, bad
    adam.step(active=active)
    assert torch.equal(params[~active], before[~active])
    for name, value in adam.rows().items():
        assert torch.equal(value[~active], state[name][~active])
    assert params.isfinite().all()
    assert not torch.equal(params[active], before[active])


@pytest.mark.parametrize("decay", [0.0, 0.01])
def test_members_that_always_step_together_take_one_pass(decay):
    """As members that step apart, and as ``torch.optim.AdamW`` with a decay that is scaled by
    the learning rate.
    """
    one, two, three = (nn.Parameter(torch.linspace(-1, 1, N * D).view(N, D)) for _ in range(3))
    together, apart = (
        MemberAdam(x, rate, (0.9, 0.99), 1e-5, decay, 0.5)
        for x, rate in ((one, 0.02), (two, [0.02] * N))
    )
    known = torch.optim.AdamW([three], 0.02, (0.9, 0.99), 1e-5, decay / 0.02)
    for grad in gradients(20):
        for x in (one, two):
            x.grad = grad.clone()
        norm = grad.norm(dim=1, keepdim=True)
        three.grad = grad * (0.5 / (norm + 1e-6)).clamp(max=1)
        together.step()
        apart.step(active=torch.ones(N, dtype=torch.bool))
        known.step()
    assert together.num_steps.tolist() == apart.num_steps.tolist() == [20] * N
    torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(one, three, rtol=1e-5, atol=1e-6)


def test_its_state_is_that_of_an_optimizer_of_torch():
    params, adam, _, _ = stepped()
    other = nn.Parameter(params.detach().clone())
    copy = MemberAdam(other, 0.5)
    copy.load_state_dict(deepcopy(adam.state_dict()))
    for x, optimizer in ((params, adam), (other, copy)):
        x.grad = torch.ones(N, D)
        optimizer.step(active=torch.ones(N, dtype=torch.bool))
    assert torch.equal(params, other)
    assert copy.num_steps.tolist() == [2] * N


def test_a_loaded_state_is_where_the_block_is():
    """The counts too, which torch leaves where they were, as they are called ``step``."""
    _, adam, _, _ = stepped()
    elsewhere = MemberAdam(nn.Parameter(torch.zeros(N, D, device="meta")), 0.5)
    elsewhere.load_state_dict(deepcopy(adam.state_dict()))
    assert {value.device.type for value in elsewhere.rows().values()} == {"meta"}


def test_targets_of_inactive_members_stay_whatever_their_parameters_are():
    target = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    track(
        target,
        torch.tensor([[2.0, 3.0], [float("nan"), float("inf")]]),
        0.5,
        torch.tensor([True, False]),
    )
    assert target.tolist() == [[1.5, 2.5], [3.0, 4.0]]


def test_first_step_is_the_learning_rate_along_the_sign():
    """By hand: with both moments corrected, the first step is lr * g / (|g| + eps)."""
    params = nn.Parameter(torch.zeros(2, 2))
    params.grad = torch.tensor([[3.0, -4.0], [0.5, 0.0]])
    MemberAdam(params, [0.1, 0.2]).step()
    torch.testing.assert_close(params.detach(), torch.tensor([[-0.1, 0.1], [-0.2, 0.0]]))


@pytest.mark.parametrize(
    "make", [lambda params: Adam([params], 0.1), lambda params: MemberAdam(params, 0.1)]
)
def test_hooks_around_a_step_are_called_whenever_there_are_some(make):
    params, seen = nn.Parameter(torch.zeros(2, 3)), []
    params.grad = torch.ones(2, 3)
    adam = make(params)
    adam.step()
    adam.register_step_pre_hook(lambda *_: seen.append(params[0, 0].item()))
    adam.register_step_post_hook(lambda *_: seen.append(params[0, 0].item()))
    adam.step()
    assert seen == pytest.approx([-0.1, -0.2])
    everywhere = register_optimizer_step_post_hook(lambda *_: seen.append("everywhere"))
    adam.step()
    everywhere.remove()
    adam.step()
    assert seen.count("everywhere") == 1
    assert len(seen) == 7


def test_a_learning_rate_that_has_fallen_to_zero_changes_nothing():
    params = torch.nn.Parameter(torch.ones(2, 3))
    optimizer = MemberAdam(params, 0.1)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, 2)
    seen = []
    for _ in range(4):
        params.grad = torch.ones(2, 3)
        optimizer.step()
        schedule.step()
        seen.append(params.detach().clone())
    assert not torch.equal(seen[0], seen[1])
    assert torch.equal(seen[2], seen[1])
    assert torch.equal(seen[3], seen[1])
