from __future__ import annotations

from engine.config import InferenceConfig
from engine.plan import Plan
from engine.request import FinishReason, Request, RequestState, Sample, SamplingParams
from engine.scheduler import Scheduler

TOKEN = Sample(token_id=7, logprob=-1.0, margin=1.0)
EOS = Sample(token_id=0, logprob=-1.0, margin=1.0)


def scheduler(**values: int | bool) -> Scheduler:
    return Scheduler(InferenceConfig.from_mapping({"block_size_tokens": 4, "num_blocks": 100, **values}))


def queue(scheduler: Scheduler, *prompt_lengths: int, new_tokens: int = 8) -> list[RequestState]:
    states = []
    for index, length in enumerate(prompt_lengths):
        request = Request(str(index), (1,) * length, SamplingParams(max_new_tokens=new_tokens))
        states.append(RequestState.start(request, frozenset({EOS.token_id})))
        scheduler.add(states[-1])
    return states


def launch(scheduler: Scheduler) -> Plan:
    plan = scheduler.plan()
    assert plan is not None
    return plan


def resolve(scheduler: Scheduler, plan: Plan, sample: Sample = TOKEN) -> None:
    for row in plan.rows:
        if row.samples and not row.state.finished:
            row.state.accept(sample)
        scheduler.resolved(row.state)


def lengths(plan: Plan) -> list[int]:
    return [row.length for row in plan.rows]


def test_a_prompt_that_fits_is_computed_whole_and_then_decodes_token_by_token() -> None:
    subject = scheduler()
    queue(subject, 5)
    first = launch(subject)
    assert (lengths(first), first.rows[0].samples, first.rows[0].is_decode) == ([5], True, False)
    second = launch(subject)
    assert (lengths(second), second.rows[0].start, second.rows[0].is_decode) == ([1], 5, True)


def test_a_plan_never_needs_an_unresolved_sample() -> None:
    subject = scheduler()
    queue(subject, 5, new_tokens=4)
    plans = [launch(subject) for _ in range(4)]  # none of them is resolved
    assert [plan.rows[0].start for plan in plans] == [0, 5, 6, 7]
    assert subject.plan() is None, "a row never runs past a known max_new_tokens"


def test_admission_is_first_in_first_out_even_if_a_later_prompt_would_fit() -> None:
    subject = scheduler(max_tokens=10)
    queue(subject, 8, 8, 1)
    assert lengths(launch(subject)) == [8]


def test_decode_rows_come_before_prefill_rows() -> None:
    subject = scheduler(max_tokens=10)
    queue(subject, 8, 9)
    resolve(subject, launch(subject))
    assert lengths(launch(subject)) == [1, 9]


def test_the_row_budget_bounds_the_requests_that_hold_a_slot() -> None:
    subject = scheduler(max_requests=2)
    queue(subject, 3, 3, 3)
    assert len(launch(subject).rows) == 2


def test_a_long_prompt_is_split_and_only_its_last_chunk_samples() -> None:
    subject = scheduler(max_tokens=8, enable_chunked_prefill=True)
    queue(subject, 20)
    plans = [launch(subject) for _ in range(3)]
    assert [lengths(plan) for plan in plans] == [[8], [8], [4]]
    assert [plan.rows[0].samples for plan in plans] == [False, False, True]
    assert all(plan.has_chunk for plan in plans)


def test_the_last_chunk_is_never_a_single_token() -> None:
    subject = scheduler(max_tokens=8, enable_chunked_prefill=True)
    queue(subject, 17)
    assert [lengths(launch(subject)) for _ in range(3)] == [[8], [7], [2]]


def test_without_chunked_prefill_a_prompt_waits_for_a_step_that_holds_it() -> None:
    subject = scheduler(max_tokens=8)
    queue(subject, 4, 6)
    first = launch(subject)
    assert lengths(first) == [4]
    resolve(subject, first)
    assert lengths(launch(subject)) == [1, 6]


def test_a_prompt_is_admitted_only_if_the_pool_has_blocks_for_all_of_it() -> None:
    subject = scheduler(num_blocks=3)
    queue(subject, 8, 5)
    assert lengths(launch(subject)) == [8]
    assert subject.pool.num_free == 1


def test_when_blocks_run_out_the_oldest_goes_on_and_the_younger_one_pauses() -> None:
    subject = scheduler(num_blocks=3)
    old, young = queue(subject, 4, 4)
    resolve(subject, launch(subject))
    plan = launch(subject)
    assert [row.state for row in plan.rows] == [old]
    assert subject.paused_request_count_peak == 1
    assert len(young.blocks) == 1, "a paused request keeps what it holds"


def test_nobody_is_admitted_while_a_request_is_paused() -> None:
    subject = scheduler(num_blocks=3, max_requests=3)
    queue(subject, 4, 4)
    resolve(subject, launch(subject))
    queue(subject, 1)
    assert len(launch(subject).rows) == 1


def test_when_all_are_paused_the_youngest_is_evicted_and_its_blocks_serve_the_next_plan() -> None:
    subject = scheduler(num_blocks=2)
    old, young = queue(subject, 4, 4)
    resolve(subject, launch(subject))
    assert subject.plan() is None, "the eviction yields nothing for the plan that evicts"
    assert (subject.preemption_count, subject.evicted_block_count) == (1, 1)
    assert [row.state for row in launch(subject).rows] == [old]
    assert young.samples == [TOKEN], "what an evicted request has generated stays"


def test_an_evicted_request_is_computed_again_with_what_it_had_generated() -> None:
    subject = scheduler(num_blocks=2)
    old, young = queue(subject, 4, 4, new_tokens=2)
    resolve(subject, launch(subject))
    assert subject.plan() is None
    resolve(subject, launch(subject))
    assert old.finish_reason is FinishReason.LENGTH
    (row,) = launch(subject).rows
    assert (row.state, row.start, row.token_ids, row.samples) == (young, 0, (1, 1, 1, 1, TOKEN.token_id), True)


def test_a_recomputation_longer_than_a_step_is_split_even_where_prompts_are_not() -> None:
    subject = scheduler(num_blocks=4, max_tokens=8)
    old, young = queue(subject, 7, 7, new_tokens=4)
    for _ in range(3):
        resolve(subject, launch(subject))
    assert subject.plan() is None
    assert young.evicted
    for _ in range(2):
        resolve(subject, launch(subject))
    assert old.finished
    plans = [launch(subject) for _ in range(2)]
    assert [lengths(plan) for plan in plans] == [[7], [2]]
    assert [plan.rows[0].samples for plan in plans] == [False, True]


def test_a_request_that_turns_out_to_have_ended_while_evicted_leaves_the_queue() -> None:
    subject = scheduler(num_blocks=2)
    _, young = queue(subject, 4, 4)
    first = launch(subject)
    assert subject.plan() is None, "evicts while the first plan is in flight"
    assert young.evicted
    assert subject.pool.num_free == 0, "its blocks stay its own while a plan in flight names them"
    resolve(subject, first, EOS)
    assert young.finish_reason is FinishReason.STOP
    assert not subject.has_requests
    assert subject.pool.num_free == 2


def test_nobody_is_evicted_while_a_running_request_is_about_to_end() -> None:
    subject = scheduler(num_blocks=2)
    (ending,) = queue(subject, 4, new_tokens=1)
    queue(subject, 4)
    first = launch(subject)
    assert ending.fully_promised
    assert subject.plan() is None
    assert subject.preemption_count == 0
    resolve(subject, first)
    assert len(launch(subject).rows) == 1


def test_blocks_and_slot_come_free_when_the_last_plan_that_names_them_resolves() -> None:
    subject = scheduler(num_blocks=4)
    (state,) = queue(subject, 3)
    first, second = launch(subject), launch(subject)
    resolve(subject, first, EOS)
    assert state.finished
    assert subject.pool.num_free == 3
    resolve(subject, second)
    assert subject.pool.num_free == 4


def test_a_cancelled_request_frees_at_once_what_no_plan_in_flight_names() -> None:
    subject = scheduler(num_blocks=4)
    running, waiting = queue(subject, 3, 3)
    subject.cancel(waiting)
    resolve(subject, launch(subject))
    subject.cancel(running)
    assert subject.pool.num_free == 4
    assert not subject.has_requests
