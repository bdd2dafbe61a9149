import pytest
import torch

from lightning_rl.agents.base import track
from lightning_rl.agents.optim import MemberAdam

N, D = 5, 40


def gradients(steps):
    return torch.randn(steps, N, D, generator=torch.Generator().manual_seed(1)) * torch.logspace(-3, 2, N)[:, None]


@pytest.mark.parametrize("max_norm", [None, 0.5])
def test_one_stack_equals_n_adams(max_norm):
    """Own learning rates, steps and norms."""
    rates = [1e-4, 3e-4, 1e-3, 1e-2, 0.1]
    start = torch.randn(N, D)
    params = start.clone()
    adam = MemberAdam(params, torch.tensor(rates, dtype=torch.float64), max_grad_norm=max_norm)
    rows = [start[n].clone().requires_grad_() for n in range(N)]
    alone = [torch.optim.Adam([row], lr=rate) for row, rate in zip(rows, rates, strict=True)]
    for step, grad in enumerate(gradients(60)):
        active = torch.tensor([(step + n) % (n + 1) == 0 for n in range(N)])
        adam.step(params, grad, active)
        for n in active.nonzero().flatten().tolist():
            rows[n].grad = grad[n].clone()
            if max_norm is not None:
                torch.nn.utils.clip_grad_norm_([rows[n]], max_norm)
            alone[n].step()
    for n in range(N):
        state = alone[n].state[rows[n]]
        assert adam.num_steps[n] == state["step"]
        torch.testing.assert_close(params[n], rows[n].detach(), rtol=2e-6, atol=1e-6)
        torch.testing.assert_close(adam.exp_avg[n], state["exp_avg"], rtol=1e-5, atol=0)
        torch.testing.assert_close(adam.exp_avg_sq[n], state["exp_avg_sq"], rtol=1e-5, atol=0)


def test_inactive_members_do_not_change_at_all():
    params = torch.randn(N, D)
    adam = MemberAdam(params, torch.full((N,), 0.1))
    adam.step(params, torch.randn(N, D), torch.ones(N, dtype=torch.bool))
    before, state = params.clone(), {k: v.clone() for k, v in adam.state_dict().items()}
    active = torch.tensor([False, True, False, False, False])
    adam.step(params, torch.randn(N, D), active)
    assert torch.equal(params[~active], before[~active])
    assert not torch.equal(params[active], before[active])
    for name, value in adam.state_dict().items():
        assert torch.equal(value[~active], state[name][~active])


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("max_norm", [None, 0.5])
def test_no_gradient_whatever_reaches_an_inactive_member(bad, max_norm):
    params = torch.randn(N, D)
    adam = MemberAdam(params, torch.full((N,), 0.1), max_grad_norm=max_norm)
    adam.step(params, torch.randn(N, D), torch.ones(N, dtype=torch.bool))
    before, state = params.clone(), {k: v.clone() for k, v in adam.state_dict().items()}
    active = torch.tensor([True, False, True, False, True])
    grad = torch.randn(N, D)
    grad[1], grad[3, 0] = bad, bad
    adam.step(params, grad, active)
    assert torch.equal(params[~active], before[~active])
    for name, value in adam.state_dict().items():
        assert torch.equal(value[~active], state[name][~active])
    assert params.isfinite().all()
    assert not torch.equal(params[active], before[active])


def test_targets_of_inactive_members_stay_whatever_their_parameters_are():
    target = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    track(target, torch.tensor([[2.0, 3.0], [float("nan"), float("inf")]]), 0.5, torch.tensor([True, False]))
    assert target.tolist() == [[1.5, 2.5], [3.0, 4.0]]


def test_first_step_is_the_learning_rate_along_the_sign():
    """By hand: with both moments corrected, the first step is lr * g / (|g| + eps)."""
    params = torch.zeros(2, 2)
    MemberAdam(params, torch.tensor([0.1, 0.2])).step(params, torch.tensor([[3.0, -4.0], [0.5, 0.0]]), torch.tensor([True, True]))
    torch.testing.assert_close(params, torch.tensor([[-0.1, 0.1], [-0.2, 0.0]]))


def test_keeping_rows_goes_on_as_before():
    params = torch.randn(N, D)
    adam = MemberAdam(params, torch.full((N,), 0.1))
    first, second = gradients(2)
    everyone = torch.ones(N, dtype=torch.bool)
    adam.step(params, first, everyone)
    rows = torch.tensor([3, 1])
    some, other = params[rows], MemberAdam(params, torch.full((N,), 0.1))
    other.load_state_dict(adam.state_dict())
    other.keep(rows)
    adam.step(params, second, everyone)
    other.step(some, second[rows], everyone[:2])
    assert torch.equal(some, params[rows])


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match=r"learning_rate must be \[N\] = \[5\], got \[1\]"):
        MemberAdam(torch.zeros(N, D), torch.zeros(1))
    adam = MemberAdam(torch.zeros(N, D), torch.zeros(N))
    with pytest.raises(ValueError, match="other tensors than MemberAdam: exp_avg"):
        adam.load_state_dict({k: v for k, v in adam.state_dict().items() if k != "exp_avg"})
