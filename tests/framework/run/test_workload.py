from __future__ import annotations

import pytest

from framework.manifest.fixture import Prompt, Workload
from framework.run.workload import all_arrive_at_start, arrival_step, is_greedy, plain_requests, random_token_ids


def workload(*prompts: Prompt, requests_per_step: int | None = None) -> Workload:
    return Workload(prompts=prompts, sampling={"max_new_tokens": 4}, requests_per_step=requests_per_step)


def test_prompts_become_tokens_and_keep_their_own_sampling() -> None:
    plain = plain_requests(
        workload(
            Prompt(text="ab"),
            Prompt(token_ids=(7, 8), sampling={"max_new_tokens": 1}),
            Prompt(random_length=3, random_seed=1, arrival_step=5),
        ),
        encode=lambda text: [ord(letter) for letter in text],
        vocabulary_size=50,
    )
    assert [request.request_id for request in plain] == ["0", "1", "2"]
    assert [request.token_ids for request in plain[:2]] == [(97, 98), (7, 8)]
    assert plain[2].token_ids == random_token_ids(3, 1, 50)
    assert [request.sampling["max_new_tokens"] for request in plain] == [4, 1, 4]
    assert [request.arrival_step for request in plain] == [0, 0, 5]


def test_random_tokens_depend_on_seed_and_index_alone() -> None:
    assert random_token_ids(4, 3, 1000) == random_token_ids(9, 3, 1000)[:4]
    assert random_token_ids(4, 3, 1000) != random_token_ids(4, 4, 1000)
    assert random_token_ids(3, 0, 1000) == (689, 37, 123)
    assert set(random_token_ids(500, 0, 7)) == set(range(7))


@pytest.mark.parametrize(("index", "step"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2)])
def test_waves_arrive_one_step_after_another(index: int, step: int) -> None:
    assert arrival_step(workload(*[Prompt(text="a")] * 5, requests_per_step=2), index) == step


def test_an_order_is_free_only_if_nobody_waits() -> None:
    assert all_arrive_at_start(workload(Prompt(text="a"), Prompt(text="b", arrival_step=0)))
    assert not all_arrive_at_start(workload(Prompt(text="a"), Prompt(text="b", arrival_step=1)))
    assert not all_arrive_at_start(workload(Prompt(text="a"), Prompt(text="b"), requests_per_step=1))


def test_a_request_that_samples_is_not_greedy() -> None:
    both = workload(Prompt(text="a"), Prompt(text="b", sampling={"temperature": 0.7}))
    assert is_greedy(both, 0)
    assert not is_greedy(both, 1)
